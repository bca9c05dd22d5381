/* search/scan.c - scan fast: one-bit codes by packs, then eight-bit codes, then vectors.
 *
 * Packs of rows are gone through cell by cell (row/cells.c), those first whose rows may be nearest. First the words of a
 * pack's rows are tested: a pack with no admissible row costs no more. Of the others the one-bit codes give each row an
 * estimate and its standard deviation (code/bits.c), thirty-two at a time. A row whose estimate plus CONFIDENCE deviations
 * is below the floor is passed over; the others are asked for their own word and terms and scored by their eight-bit
 * code, and the best of them, somewhat more than wanted (carag_sketch_room), at last by what is kept of their vectors.
 * The floor is the lowest eight-bit score among those, so it rises as better rows are found, and how many rows survive
 * follows the data: no number of candidates is tuned to a collection. It ends with the cells that may hold a row above
 * the floor; where few rows are admissible, and few of those near the query, too few to trust what cells hardly exceed, with
 * the last cell.
 *
 * The nearest cells alone are scanned for a walk over the graph (hnsw/search.c), too, which begins with what they gave.
 * A scan goes on after a walk that was given up, with what that has found and met: no row is scored again.
 *
 * Not exact, by three margins: a true neighbour is lost when its estimate errs by more than CONFIDENCE deviations
 * beyond its own margin over the floor, when eight-bit rounding moves it out of those kept, or when it is further
 * from the centre of its cell, in the direction of the query, than the cells' reach. bench/ann measures what that
 * costs: recall stays above 0.99 in every cell.
 *
 * Which packs hold an admissible row is learned from the words of all their rows; or, where few are admissible, the
 * nearest cells were not enough and there is no copy by word, from the classes: their rows are marked, and no other word
 * is read.
 *
 * By words. If a tenth of the rows is admissible, half of the packs hold one, and most of what is read belongs to
 * inadmissible rows. So when the nearest cells have given a floor, and the words that pass have fewer rows than the packs that
 * the other cells would open, all rows of those words are read instead, from a copy of their codes (row/sorted.c): on a
 * million rows, a tenth or a twentieth of them admissible, in half the time. No cell is passed over then: a pack holds
 * rows of five or six, one of which is nearly always within reach. Where audiences close most of what the words open, the
 * copy's rows of the open classes are read: with 49,000 classes, one row in twenty open, in a sixth of the time that marks
 * took. Rejected: codes row by row, class by class; they were no faster than packs of cells. Rejected: that thousands of rows wait, and are scored in rounds, the most promising first;
 * a quarter fewer codes are read, but too late to be fetched ahead, and a million rows take a fifth longer.
 *
 * What is read, and what comes through, follows from counts and integer sums that are the same on every kernel, so the
 * answer does not depend on the machine.
 */
#include "carag_internal.h"
#include "ranks.h"
#include "search/search.h"
#include "search/span.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE 2.0F /* standard deviations by which an estimate may be too low */
#define TRIED_ROWS (CARAG_CELL_ROWS / 8) /* rows of the first cells; how many are open decides whether it may stop */
#define PROBED_ROWS 64 /* rows of the cells nearest to a query by which its plan is chosen */
#define ROWS_PER_CELL 8 /* rows in the pool of a walk for each cell that is scanned before it */
#define FIRST_CELLS 12 /* cells before it is decided whether the others are read by cell or by word: they give the floor */
#define PACKS_AHEAD 4 /* packs of a word that are fetched before they are read */
#define CLASSES_AHEAD 8 /* classes whose codes are fetched before they are read */
#define LINE 64 /* bytes of a line of cache */
#define WAITING_ROWS 16 /* rows of near cells that wait for their eight-bit codes to be read together, */
#define MOST_WAITING (CARAG_BLOCK - CARAG_PACK) /* and of any cells: the most promising first, so that few others are read */

static float floor_of(const carag_scan *job)
{
    const carag_heap *found = &job->scratch->found;
    return found->count == job->room ? found->items[0].similarity : -INFINITY;
}

static void fetch(const void *from, size_t size)
{
    for (size_t byte = 0; byte < size; byte += LINE)
        __builtin_prefetch((const char *)from + byte);
}

/* ---------------------------------------------------------------- eight-bit codes */

static void score_codes(carag_scan *job, const uint32_t *rows, size_t count)
{
    carag_scratch *scratch = job->scratch;
    const carag_codes *codes = &job->reader->view->codes;
    const carag_query *query = &scratch->query;
    carag_kernel_get()->dot8(codes->bytes, codes->stride, rows, count, query->codes, codes->stride, scratch->dots);
    for (size_t i = 0; i < count; i++) {
        const float score = carag_ordered(query->scale * codes->scales[rows[i]] * (float)scratch->dots[i]);
        const carag_near near = {score, rows[i]};
        scratch->kept[job->scored++] = near;
        if (carag_heap_accepts(&scratch->found, job->room, near))
            carag_heap_keep(&scratch->found, job->room, near);
    }
    job->effort->distance_computations += count;
}

/* Of those waiting, the admissible ones that were not met before, and that the floor, which may have risen meanwhile,
 * still lets through. Without a floor yet, the most promising first, which give one. */
static void score_waiting(carag_scan *job)
{
    uint64_t ranks[CARAG_BLOCK];
    uint32_t rows[CARAG_BLOCK];
    carag_scratch *scratch = job->scratch;
    size_t count = 0;
    size_t first = 0;
    for (size_t i = 0; i < job->waiting; i++) {
        const uint32_t row = scratch->numbers[i];
        if (carag_passes(job->reader, job->selection, row) && carag_visited_insert(&scratch->visited, row))
            ranks[count++] = carag_rank(scratch->scores[i], (uint32_t)i);
    }
    if (count > job->room) {
        carag_ranks_keep(ranks, count, job->room);
        for (; first < job->room; first++)
            rows[first] = scratch->numbers[carag_rank_index(ranks[first])];
        score_codes(job, rows, first);
    }
    const float floor = floor_of(job);
    size_t left = 0;
    for (size_t i = first; i < count; i++)
        if (carag_rank_similarity(ranks[i]) >= floor)
            rows[left++] = scratch->numbers[carag_rank_index(ranks[i])];
    score_codes(job, rows, left);
    job->waiting = 0;
}

static void let_wait(carag_scan *job, uint32_t row, float upper)
{
    const carag_codes *codes = &job->reader->view->codes;
    fetch(codes->bytes + (size_t)row * codes->stride, codes->stride);
    __builtin_prefetch(&codes->scales[row]);
    __builtin_prefetch((const void *)&job->reader->view->words[row]);
    job->scratch->numbers[job->waiting] = row;
    job->scratch->scores[job->waiting++] = upper;
}

/* ---------------------------------------------------------------- one-bit codes */

/* Rows of one cell, or of none, some of which are open. */
static void estimate_span(carag_scan *job, const carag_span *span, uint32_t lanes, const carag_pack_sight *sight)
{
    carag_scratch *scratch = job->scratch;
    const float floor = floor_of(job);
    float uppers[CARAG_PACK];
    uint32_t left = carag_span_estimate(span, lanes, &job->reader->view->bits, &scratch->query, sight, floor, uppers);
    job->effort->estimates += (uint32_t)__builtin_popcount(lanes);
    for (; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        let_wait(job, carag_span_row(span, lane), uppers[lane]);
    }
    if (job->waiting >= (floor > -INFINITY ? job->patience : MOST_WAITING))
        score_waiting(job);
}

/* Of the rows of a span whose words pass, those whose terms do. */
static uint32_t by_terms(const carag_scan *job, const carag_span *span, uint32_t passing)
{
    uint32_t open = 0;
    for (; passing; passing &= passing - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(passing);
        const carag_terms terms = job->reader->view->terms[carag_span_row(span, span->first + i)];
        open |= (uint32_t)carag_terms_pass(&job->selection->test, terms) << i;
    }
    return open;
}

/* The rows of a span that may be open, as bits. */
static uint32_t open_rows(const carag_scan *job, const carag_span *span)
{
    const _Atomic(uint32_t) *words = job->reader->view->words;
    const carag_predicate *predicate = job->selection->test.predicate;
    if (job->marks)
        return carag_span_marked(span, job->marks);
    const uint32_t passing =
        job->all_open ? (uint32_t)(((uint64_t)1 << span->count) - 1)
                      : carag_kernel_get()->open(words + (span->is_ordered ? span->position : 0),
                                                 span->is_ordered ? carag_iota : span->rows, span->count,
                                                 predicate->pairs, predicate->pair_count);
    return job->is_near && job->selection->test_terms ? by_terms(job, span, passing) : passing;
}

/* The first position from `at` on whose row may be open, as far as marks tell without looking rows up. */
static uint32_t skip_closed(const carag_scan *job, uint32_t at, uint32_t end)
{
    const carag_cells *cells = job->reader->view->cells;
    if (!job->marks || (at < cells->rows && !cells->is_ordered))
        return at;
    uint64_t bits = job->marks[at / 64] >> at % 64 << at % 64;
    for (at -= at % 64; bits == 0 && at + 64 < end;)
        bits = job->marks[(at += 64) / 64];
    at += bits ? (uint32_t)__builtin_ctzll(bits) : 64;
    return at < end ? at : end;
}

static void scan_positions(carag_scan *job, uint32_t at, uint32_t end, carag_sight centre)
{
    const carag_view *view = job->reader->view;
    const size_t pack_bytes = carag_pack_bytes(8 * view->bits.words);
    const carag_pack_sight sight = carag_sight_of_pack(centre, CONFIDENCE);
    while ((at = skip_closed(job, at, end)) < end) {
        uint32_t room[CARAG_PACK];
        const carag_span span = carag_span_at(view, at, end, room);
        const uint32_t open = open_rows(job, &span);
        at += span.count;
        if (open == 0)
            continue;
        if (at < end && !job->marks)
            fetch(span.pack + pack_bytes, pack_bytes);
        estimate_span(job, &span, open << span.first, &sight);
    }
}

/* ---------------------------------------------------------------- by words */

/* Where the query is as seen from the centres of the cells of a pack. */
static carag_pack_sight look_at(const carag_scratch *scratch, const uint16_t cells[CARAG_PACK])
{
    carag_pack_sight sight;
    for (uint32_t lane = 0; lane < CARAG_PACK; lane++) {
        sight.near[lane] = scratch->nears[cells[lane]];
        sight.away[lane] = scratch->aways[cells[lane]];
    }
    return sight;
}

/* Scan the rows at these places, which all have the same word. */
static void scan_places(carag_scan *job, uint32_t place, uint32_t end)
{
    const carag_sorted *sorted = job->reader->view->sorted;
    const size_t pack_bytes = carag_pack_bytes(8 * sorted->bits.words);
    while (place < end) {
        const uint32_t first = place % CARAG_PACK;
        const carag_span span = {.pack = sorted->bits.packs + place / CARAG_PACK * pack_bytes,
                                 .rows = sorted->rows + place,
                                 .first = first,
                                 .count = end - place < CARAG_PACK - first ? end - place : CARAG_PACK - first};
        if (end - place > PACKS_AHEAD * CARAG_PACK)
            fetch(span.pack + PACKS_AHEAD * pack_bytes, pack_bytes);
        const carag_pack_sight sight = look_at(job->scratch, sorted->cells + place - first);
        estimate_span(job, &span, carag_span_lanes(&span), &sight);
        place += span.count;
    }
}

/* The rows of the open classes, each a run of a few places; those of later ones are fetched meanwhile. */
static void scan_classes(carag_scan *job)
{
    const carag_sorted *sorted = job->reader->view->sorted;
    const carag_selection *selection = job->selection;
    const size_t pack_bytes = carag_pack_bytes(8 * sorted->bits.words);
    for (uint32_t i = 0; i < selection->count && selection->classes[i] < sorted->classes; i++) {
        if (i + CLASSES_AHEAD < selection->count && selection->classes[i + CLASSES_AHEAD] < sorted->classes) {
            const uint32_t place = sorted->starts[selection->classes[i + CLASSES_AHEAD]];
            fetch(sorted->bits.packs + place / CARAG_PACK * pack_bytes, pack_bytes);
            fetch(sorted->rows + place, CARAG_PACK * sizeof *sorted->rows);
            fetch(sorted->cells + place / CARAG_PACK * CARAG_PACK, CARAG_PACK * sizeof *sorted->cells);
        }
        scan_places(job, sorted->starts[selection->classes[i]], sorted->ends[selection->classes[i]]);
    }
}

static void scan_passing_words(carag_scan *job)
{
    const carag_sorted *sorted = job->reader->view->sorted;
    for (uint32_t w = 0; w < sorted->count; w++)
        if (carag_word_passes(job->selection->test.predicate, sorted->words[w]))
            scan_places(job, sorted->firsts[w], sorted->firsts[w] + sorted->sizes[w]);
}

/* A row of which the copy does not say where to look for it. */
static void let_wait_if_open(carag_scan *job, uint32_t row)
{
    if (!carag_passes(job->reader, job->selection, row))
        return;
    let_wait(job, row, INFINITY);
    if (job->waiting >= job->patience)
        score_waiting(job);
}

/* All rows in cells, by the copy of their codes in the order of words, or of classes where terms close most of what words
 * open. That may be older than their words: rows that were moved or added since are looked at, too. */
static void scan_words(carag_scan *job)
{
    const carag_view *view = job->reader->view;
    const carag_catalog *catalog = view->catalog;
    const carag_sorted *sorted = view->sorted;
    job->patience = MOST_WAITING;
    job->effort->estimates -= job->opened; /* which are met again, and count once */
    for (uint32_t c = 0; c < view->cells->count; c++)
        job->scratch->aways[c] = CONFIDENCE * carag_sight_of(view->cells, job->scratch, c).away;
    if (carag_is_cut(job->selection))
        scan_classes(job);
    else
        scan_passing_words(job);
    const uint32_t moved = atomic_load_explicit(&catalog->moved_count, memory_order_acquire);
    for (uint32_t i = 0; i < moved; i++)
        let_wait_if_open(job, catalog->moved[i].row);
    for (uint32_t row = sorted->covered; row < view->cells->rows; row++)
        let_wait_if_open(job, row);
}

/* ---------------------------------------------------------------- by cells */

/* Have in cache what a cell needs before it is scanned: it lies anywhere, and is too small for processors to foresee. The
 * packs with marked rows; or words, of which rows of a cell mostly follow each other as positions do, and its first pack. */
static void fetch_cell(const carag_scan *job, uint32_t cell)
{
    const carag_view *view = job->reader->view;
    const size_t pack_bytes = carag_pack_bytes(8 * view->bits.words);
    const uint32_t begin = cell ? view->cells->cells[cell - 1].end : 0;
    const uint32_t end = view->cells->cells[cell].end;
    if (!job->marks) {
        if (!view->cells->is_ordered)
            fetch(view->cells->members + begin, (end - begin) * sizeof(uint32_t));
        if (!job->all_open)
            fetch((const void *)(view->words + begin), (end - begin) * sizeof(uint32_t));
        fetch(view->bits.packs + begin / CARAG_PACK * pack_bytes, pack_bytes);
        return;
    }
    if (!view->cells->is_ordered)
        return;
    for (uint32_t at = begin; (at = skip_closed(job, at, end)) < end; at = (at / CARAG_PACK + 1) * CARAG_PACK)
        fetch(view->bits.packs + at / CARAG_PACK * pack_bytes, pack_bytes);
}

/* From here on go by marks, where it is cheaper to mark the rows that may be open than to test the words of all. It is not
 * where there is a copy by word: what goes on by cells then is about to end. Nor before as many words were tested as rows
 * would be marked: those near the query may be enough, unless their words say little. */
static void mark_open(carag_scan *job)
{
    if (!carag_may_mark(job->reader, job->selection))
        return;
    carag_mark(job->reader, job->selection, job->scratch->marks);
    job->marks = job->scratch->marks;
}

/* Begin to scan for about the `limit` nearest admissible rows. Nothing is read yet but the centres of cells. Requires
 * room for carag_sketch_room(limit) rows in scratch->found. */
carag_scan carag_scan_begin(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch,
                            size_t limit, carag_effort *effort)
{
    const carag_view *view = reader->view;
    scratch->found.count = 0;
    carag_query_encode(reader->index, &view->codes, &scratch->query);
    carag_query_sketch(&view->bits, reader->index->params.dim, &scratch->query);
    if (view->cells)
        carag_rank_cells(view->cells, scratch);
    carag_scan job = {.reader = reader, .selection = selection, .scratch = scratch, .effort = effort,
                      .room = carag_sketch_room(limit), .all_open = selection->labelled == reader->rows,
                      .stops = view->cells != NULL, .patience = WAITING_ROWS};
    if (view->cells && carag_is_cut(selection) && !carag_has_copy(reader, selection))
        mark_open(&job);
    return job;
}

/* Of the rows in the cells nearest to the query, the part that is open. Ranks the cells, and reads of their rows nothing
 * but words and terms. */
double carag_scan_rate(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch)
{
    const carag_cells *cells = reader->view->cells;
    uint32_t tested = 0;
    uint32_t opened = 0;
    carag_query_encode(reader->index, &reader->view->codes, &scratch->query);
    carag_rank_cells(cells, scratch);
    for (uint32_t next = 0; next < cells->count && tested < PROBED_ROWS; next++) {
        const uint32_t cell = scratch->cells[next];
        const uint32_t end = cells->cells[cell].end;
        for (uint32_t at = cell ? cells->cells[cell - 1].end : 0; at < end; at++, tested++)
            opened += carag_passes(reader, selection, carag_row_at(reader->view, at));
    }
    return (double)opened / (double)tested;
}

/* Cells that are scanned before a walk with so wide a pool. */
uint32_t carag_probed(const carag_cells *cells, size_t ef)
{
    const size_t wanted = (ef + ROWS_PER_CELL - 1) / ROWS_PER_CELL;
    return wanted < cells->count ? (uint32_t)wanted : cells->count;
}

/* Cell after cell, until `count` of them are done and as many rows found as are kept; true when no cell is left that may
 * hold a row above the floor. */
bool carag_scan_cells(carag_scan *job, uint32_t count)
{
    const carag_cells *cells = job->reader->view->cells;
    const carag_scratch *scratch = job->scratch;
    const uint64_t before = job->effort->estimates - job->opened;
    job->is_near = count < cells->count;
    bool is_done = true;
    for (; job->next < cells->count; job->next++) {
        if (!job->marks && count == cells->count && job->tested >= job->selection->admissible)
            mark_open(job);
        const uint32_t cell = scratch->cells[job->next];
        const uint32_t begin = cell ? cells->cells[cell - 1].end : 0;
        const uint32_t end = cells->cells[cell].end;
        const float floor = job->stops ? floor_of(job) : -INFINITY;
        if (scratch->uppers[cell] + scratch->grade < floor)
            break;
        if (job->next >= count)
            score_waiting(job);
        if (job->next >= count && scratch->found.count == job->room) {
            is_done = false;
            break;
        }
        if (job->next + 1 < cells->count)
            fetch_cell(job, scratch->cells[job->next + 1]);
        if (scratch->uppers[cell] < floor)
            continue;
        scan_positions(job, begin, end, carag_sight_of(cells, scratch, cell));
        job->opened = job->effort->estimates - before;
        const bool is_trying = job->tested < TRIED_ROWS;
        job->tested += end - begin;
        if (is_trying && job->tested >= TRIED_ROWS)
            job->stops = job->stops && carag_plan_stops(job->reader, job->selection,
                                                        (double)job->opened / (double)job->tested);
    }
    score_waiting(job);
    return is_done;
}

/* Empty what the next search expects empty. */
void carag_scan_leave(carag_scan *job)
{
    carag_visited_clear(&job->scratch->visited);
    if (job->marks)
        memset(job->scratch->marks, 0, ((size_t)job->reader->rows / 64 + 1) * sizeof *job->scratch->marks);
}

/* Scan the first cells, which give a floor. Whether the rest is scanned by words: those have fewer rows than what is still
 * within reach. */
bool carag_scan_goes_by_words(carag_scan *job)
{
    return carag_has_copy(job->reader, job->selection) && !carag_scan_cells(job, FIRST_CELLS) &&
           carag_plan_by_words(job);
}

/* Scan what is left, and leave about the `limit` nearest admissible rows in scratch->found. */
void carag_scan_finish(carag_scan *job, size_t limit)
{
    const carag_view *view = job->reader->view;
    if (view->cells && carag_scan_goes_by_words(job))
        scan_words(job);
    else if (view->cells)
        carag_scan_cells(job, view->cells->count);
    scan_positions(job, view->cells ? view->cells->rows : 0, job->reader->rows, job->scratch->query.of_mean);
    score_waiting(job);
    carag_scan_leave(job);
    carag_rerank_found(job->reader, job->scratch, limit, job->effort);
}
