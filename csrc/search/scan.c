/* search/scan.c - scan fast: one-bit codes by packs, then eight-bit codes, then vectors.
 *
 * Packs of rows are gone through cell by cell (row/cells.c), those first whose rows may be nearest. First the words of a
 * pack's rows are tested: a pack with no admissible row costs no more. Of the others the one-bit codes give each row an
 * estimate and its standard deviation (code/bits.c), thirty-two at a time. A row whose estimate plus CONFIDENCE deviations
 * is below the floor is passed over; the others are asked for their own word and terms and scored by their eight-bit
 * code, and the best of them, somewhat more than wanted (carag_sketch_room), at last by what is kept of their vectors.
 * The floor is the lowest eight-bit score among those, so it rises as better rows are found, and how many rows survive
 * follows the data: no number of candidates is tuned to a collection. It ends with the cells that may hold a row above
 * the floor; where few rows are admissible, too few to trust what cells hardly exceed, with the last cell.
 *
 * A walk over the graph that was given up hands on what it has found and met: the scan begins with its floor, and scores
 * no row again.
 *
 * Not exact, by three margins: a true neighbour is lost when its estimate errs by more than CONFIDENCE deviations
 * beyond its own margin over the floor, when eight-bit rounding moves it out of those kept, or when it is further
 * from the centre of its cell, in the direction of the query, than the cells' reach. bench/ann measures what that
 * costs: recall stays above 0.99 in every cell.
 *
 * Which packs hold an admissible row is learned from the words of all their rows; or, where few are admissible and the
 * nearest cells were not enough, from the classes: their rows are marked, and no other word is read.
 *
 * Rejected: one-bit codes row by row beside, to be read class by class where few rows are admissible. At a twentieth of
 * 200,000 rows that is a quarter faster, at a twentieth of a million no faster, and a row takes as many bytes again.
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
#define STOP_MIN_SHARE 64 /* where less than 1/64 of the rows in cells are admissible, a scan goes to the last cell */
#define STOP_MIN_ROWS CARAG_CELL_ROWS /* admissible rows below which it does, too */
#define TRIED_ROWS (CARAG_CELL_ROWS / 8) /* rows of the first cells; how many are open decides whether it may stop */
#define FEW_SHARE 12 /* where less than 1/12 of the rows are admissible, */
#define FEW_FACTOR 2.0 /* so many times their share of the rows tried must be open */
#define MARK_MAX_SHARE 8 /* where at most 1/8 of the rows are admissible, they are marked rather than all words tested, */
#define MARK_AFTER 4 /* once as many words were tested as 1/4 of their number: rows near the query may be enough */
#define LINE 64 /* bytes of a line of cache */
#define WAITING_ROWS 16 /* rows that wait for their eight-bit codes to be read together */

/* What one scan works with. */
typedef struct scan {
    const carag_reader *reader;
    const carag_selection *selection;
    carag_scratch *scratch;
    carag_effort *effort;
    const uint64_t *marks; /* of the rows that may be open; NULL: by their words */
    size_t room;
    size_t waiting; /* rows in scratch->numbers, their upper estimates in scratch->scores */
} scan;

static float floor_of(const scan *job)
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

static void score_codes(const scan *job, const uint32_t *rows, size_t count)
{
    carag_scratch *scratch = job->scratch;
    const carag_codes *codes = &job->reader->view->codes;
    const carag_query *query = &scratch->query;
    carag_kernel_get()->dot8(codes->bytes, codes->stride, rows, count, query->codes, codes->stride, scratch->dots);
    for (size_t i = 0; i < count; i++) {
        const float score = carag_ordered(query->scale * codes->scales[rows[i]] * (float)scratch->dots[i]);
        const carag_near near = {score, rows[i]};
        if (carag_heap_accepts(&scratch->found, job->room, near))
            carag_heap_keep(&scratch->found, job->room, near);
    }
    job->effort->distance_computations += count;
}

/* Of those waiting, the admissible ones that were not met before, and that the floor, which may have risen meanwhile,
 * still lets through. While there is none, the most promising first, which make one. */
static void score_waiting(scan *job)
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
    if (scratch->found.count == 0 && count > job->room) {
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

static void let_wait(scan *job, uint32_t row, float upper)
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
static void estimate_span(scan *job, const carag_span *span, uint32_t lanes, carag_sight centre)
{
    carag_scratch *scratch = job->scratch;
    const float floor = floor_of(job);
    float uppers[CARAG_PACK];
    uint32_t left = carag_span_estimate(span, lanes, &job->reader->view->bits, &scratch->query, centre, CONFIDENCE,
                                        floor, uppers);
    job->effort->estimates += (uint32_t)__builtin_popcount(lanes);
    for (; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        let_wait(job, carag_span_row(span, lane), uppers[lane]);
    }
    if (job->waiting >= (floor > -INFINITY ? WAITING_ROWS : CARAG_BLOCK - CARAG_PACK))
        score_waiting(job);
}

/* The rows of a span that may be open, as bits. */
static uint32_t open_rows(const scan *job, const carag_span *span)
{
    const carag_predicate *predicate = job->selection->test.predicate;
    if (job->marks)
        return carag_span_marked(span, job->marks);
    return carag_kernel_get()->open(job->reader->view->words, span->rows, span->count, predicate->pairs,
                                    predicate->pair_count);
}

static void scan_positions(scan *job, uint32_t at, uint32_t end, carag_sight centre)
{
    const carag_view *view = job->reader->view;
    const size_t pack_bytes = carag_pack_bytes(8 * view->bits.words);
    while (at < end) {
        uint32_t room[CARAG_PACK];
        const carag_span span = carag_span_at(view, at, end, room);
        const uint32_t open = open_rows(job, &span);
        at += span.count;
        if (open == 0)
            continue;
        if (at < end && !job->marks)
            fetch(span.pack + pack_bytes, pack_bytes);
        estimate_span(job, &span, open << span.first, centre);
    }
}

/* Whether a scan may stop before the last cell, when the first cells show that near rows are open. Decided by counts
 * alone, so that a scan is the same on every machine. */
bool carag_scan_stops(const carag_view *view, const carag_selection *selection)
{
    return view->cells && selection->admissible * STOP_MIN_SHARE >= view->cells->rows &&
           selection->admissible >= STOP_MIN_ROWS;
}

/* Of the rows of the first cells, the part that must be open for a scan to stop before the last one: where few rows are
 * admissible, what cells hardly exceed can be relied on only when they are those near the query. */
static double least_rate(const carag_reader *reader, const carag_selection *selection)
{
    const double share = (double)selection->admissible / (double)reader->rows;
    return share * FEW_SHARE < 1.0 ? FEW_FACTOR * share : 0.0;
}

/* Have in cache what a cell needs before it is scanned: it lies anywhere, and is too small for processors to foresee. The
 * packs with marked rows; or words, of which rows of a cell mostly follow each other as positions do, and its first pack. */
static void fetch_cell(const scan *job, uint32_t cell)
{
    const carag_view *view = job->reader->view;
    const size_t pack_bytes = carag_pack_bytes(8 * view->bits.words);
    const uint32_t begin = cell ? view->cells->cells[cell - 1].end : 0;
    const uint32_t end = view->cells->cells[cell].end;
    if (!job->marks) {
        fetch(view->cells->members + begin, (end - begin) * sizeof(uint32_t));
        fetch((const void *)(view->words + begin), (end - begin) * sizeof(uint32_t));
        fetch(view->bits.packs + begin / CARAG_PACK * pack_bytes, pack_bytes);
        return;
    }
    for (uint32_t at = begin; at < end;) {
        uint32_t room[CARAG_PACK];
        const carag_span span = carag_span_at(view, at, end, room);
        if (span.is_ordered && carag_span_marked(&span, job->marks))
            fetch(span.pack, pack_bytes);
        at += span.count;
    }
}

/* From here on go by marks, where it is cheaper to mark the rows that may be open than to test the words of all. */
static void mark_open(scan *job)
{
    if (job->selection->admissible * MARK_MAX_SHARE > job->reader->rows)
        return;
    carag_mark(job->reader, job->selection, job->scratch->marks);
    job->marks = job->scratch->marks;
}

/* Cell after cell, until none is left that may hold a row above the floor. */
static void scan_cells(scan *job)
{
    const carag_cells *cells = job->reader->view->cells;
    const carag_scratch *scratch = job->scratch;
    const double rate = least_rate(job->reader, job->selection);
    const uint64_t before = job->effort->estimates;
    bool stops = carag_scan_stops(job->reader->view, job->selection);
    uint64_t tested = 0;
    for (uint32_t i = 0; i < cells->count; i++) {
        if (!job->marks && tested >= job->selection->admissible / MARK_AFTER && tested >= TRIED_ROWS)
            mark_open(job);
        const uint32_t cell = scratch->cells[i];
        const uint32_t begin = cell ? cells->cells[cell - 1].end : 0;
        const uint32_t end = cells->cells[cell].end;
        const float floor = stops ? floor_of(job) : -INFINITY;
        if (scratch->uppers[cell] + scratch->grade < floor)
            break;
        if (i + 1 < cells->count)
            fetch_cell(job, scratch->cells[i + 1]);
        if (scratch->uppers[cell] < floor)
            continue;
        scan_positions(job, begin, end, carag_sight_of(cells, scratch, cell));
        if (tested < TRIED_ROWS && tested + (end - begin) >= TRIED_ROWS)
            stops = stops && (double)(job->effort->estimates - before) >= rate * (double)(tested + (end - begin));
        tested += end - begin;
    }
}

/* Leave about the `limit` nearest admissible rows in scratch->found. Requires room for carag_sketch_room(limit) there;
 * where it goes on from a walk, what that left in scratch. */
void carag_scan_sketch(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch,
                       size_t limit, bool goes_on, carag_effort *effort)
{
    const carag_view *view = reader->view;
    scan job = {.reader = reader, .selection = selection, .scratch = scratch, .effort = effort,
                .room = carag_sketch_room(limit)};
    if (!goes_on)
        scratch->found.count = 0;
    for (size_t i = 0; i < scratch->found.count; i++) /* a walk leaves out what all scores share */
        scratch->found.items[i].similarity *= scratch->query.scale;
    carag_query_sketch(&view->bits, reader->index->params.dim, &scratch->query);
    if (view->cells)
        carag_rank_cells(view->cells, scratch);
    scan_positions(&job, view->cells ? view->cells->rows : 0, reader->rows, scratch->query.of_mean);
    if (view->cells)
        scan_cells(&job);
    score_waiting(&job);
    carag_visited_clear(&scratch->visited);
    if (job.marks)
        memset(scratch->marks, 0, ((size_t)reader->rows / 64 + 1) * sizeof *scratch->marks);
    carag_rerank_found(reader, scratch, limit, effort);
}
