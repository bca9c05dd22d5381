/* search/scan.c - scan fast: one-bit codes of the admissible rows, then eight-bit codes, then vectors.
 *
 * For each block of admissible rows the one-bit codes give an estimate and its standard deviation (code/bits.c). A row
 * whose estimate plus CONFIDENCE deviations is below the floor is passed over; the others are scored by their eight-bit
 * code, and the best of them, somewhat more than wanted (carag_sketch_room), at last by what is kept of their vectors.
 * The floor is the lowest eight-bit score among those, so it rises as better rows are found, and how many rows survive
 * follows the data: no number of candidates is tuned to a collection.
 *
 * Not exact, by three margins: a true neighbour is lost when its estimate errs by more than CONFIDENCE deviations
 * beyond its own margin over the floor, when eight-bit rounding moves it out of those kept, or when it is further
 * from the centre of its cell, in the direction of the query, than the cells' reach. bench/ann measures what that
 * costs: recall stays above 0.99 in every cell.
 *
 * In which order. With few admissible rows, class by class: no other row is looked at. With many, cell by cell
 * (row/cells.c), those first whose rows may be nearest, until none is left that may hold a row above the floor; members
 * that are not admissible cost a word test. The first cells are a trial: when the rows near the query are mostly closed
 * it goes on class by class; and a policy that admits few rows, but those near the query, goes by cells, too.
 *
 * What is read, and what comes through, follows from counts and integer sums that are the same on every kernel, so the
 * answer does not depend on the machine.
 */
#include "carag_internal.h"
#include "ranks.h"
#include "search/search.h"

#include <math.h>

#define CONFIDENCE 1.8F /* standard deviations by which an estimate may be too low */
#define CELLS_MIN_SHARE 12 /* a scan goes by cells where at least 1/12 of the rows in cells are admissible */
#define PROBE_MIN_SHARE 64 /* where at least 1/64 of the rows in cells are admissible, a scan tries the first cells */
#define MIN_ROWS_BY_CELLS CARAG_CELL_ROWS /* admissible rows below which a scan goes by classes */
#define PROBED_ROWS (CARAG_CELL_ROWS / 8) /* rows of the first cells that are tested before a scan decides */
#define PROBE_FACTOR 2.0 /* times the admissible share of all rows: the share of probed rows a trial needs to go on */
#define FAR_FACTOR 0.5 /* times the admissible share of all rows: the share of probed rows any other scan needs */
#define FAR_MIN_SHARE 3 /* a scan by cells goes on in any case where at least 1/3 of the rows are admissible */
#define MAX_CLOSED_FACTOR 2 /* rows whose words pass, per admissible row, above which a scan goes by classes */

/* The eight-bit scores of the rows that came through; requires their uppers at or above the floor of then. */
static void score_codes(const carag_reader *reader, carag_scratch *scratch, const uint32_t *rows, size_t count,
                        size_t room)
{
    const carag_codes *codes = &reader->view->codes;
    const carag_query *query = &scratch->query;
    carag_kernel_get()->dot8(codes->bytes, codes->stride, rows, count, query->codes, codes->stride, scratch->dots);
    for (size_t i = 0; i < count; i++) {
        const float score = carag_ordered(query->scale * codes->scales[rows[i]] * (float)scratch->dots[i]);
        const carag_near near = {score, rows[i]};
        if (carag_heap_accepts(&scratch->found, room, near))
            carag_heap_keep(&scratch->found, room, near);
    }
}

/* What one scan works with. */
typedef struct sketch {
    const carag_reader *reader;
    const carag_selection *selection;
    carag_scratch *scratch;
    carag_effort *effort;
    size_t room;
    bool test_terms; /* rows come with their words tested only */
} sketch;

static float floor_of(const sketch *job)
{
    const carag_heap *found = &job->scratch->found;
    return found->count == job->room ? found->items[0].similarity : -INFINITY;
}

static size_t keep_open(const sketch *job, uint32_t *rows, float *uppers, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (carag_terms_pass(&job->selection->test, job->reader->view->terms[rows[i]])) {
            rows[kept] = rows[i];
            uppers[kept++] = uppers[i];
        }
    return kept;
}

/* While there is no floor: the promising rows first, which make one, then those of the others that it lets through.
 * Returns how many were scored. */
static size_t score_promising(const sketch *job, uint32_t *rows, const float *uppers, size_t count)
{
    uint64_t ranks[CARAG_BLOCK];
    uint32_t sorted[CARAG_BLOCK];
    for (size_t i = 0; i < count; i++)
        ranks[i] = carag_rank(uppers[i], (uint32_t)i);
    carag_ranks_keep(ranks, count, job->room);
    for (size_t i = 0; i < job->room; i++)
        sorted[i] = rows[carag_rank_index(ranks[i])];
    score_codes(job->reader, job->scratch, sorted, job->room, job->room);
    const float floor = floor_of(job);
    size_t left = 0;
    for (size_t i = job->room; i < count; i++)
        if (carag_rank_similarity(ranks[i]) >= floor)
            sorted[left++] = rows[carag_rank_index(ranks[i])];
    score_codes(job->reader, job->scratch, sorted, left, job->room);
    return job->room + left;
}

/* The rows in scratch->numbers, whose words pass. */
static void sketch_block(const sketch *job, size_t count)
{
    const carag_kernel *kernel = carag_kernel_get();
    const carag_bits *bits = &job->reader->view->bits;
    carag_scratch *scratch = job->scratch;
    const carag_query *query = &scratch->query;
    uint32_t *rows = scratch->numbers;
    kernel->bits(bits->codes, bits->words, rows, count, &query->bits, scratch->dots);
    size_t left = kernel->screen(bits->factors, rows, scratch->dots, count, query->base, query->slope, query->intercept,
                                 query->tilt, query->spread, floor_of(job), rows, scratch->scores);
    if (job->test_terms)
        left = keep_open(job, rows, scratch->scores, left);
    if (scratch->found.count == 0 && left > job->room)
        left = score_promising(job, rows, scratch->scores, left);
    else
        score_codes(job->reader, scratch, rows, left, job->room);
    job->effort->estimates += count;
    job->effort->distance_computations += left;
}

/* Class after class: no row is looked at that is not admissible. */
static void scan_by_classes(const sketch *job)
{
    carag_walk walk = carag_walk_begin(job->reader, job->selection);
    for (size_t count; (count = carag_walk_next(&walk, carag_kernel_get(), job->scratch->numbers)) > 0;)
        sketch_block(job, count);
}

/* ---------------------------------------------------------------- by cells */

static size_t admit(const sketch *job, const uint32_t *rows, size_t count, uint32_t *out_rows)
{
    const carag_predicate *predicate = job->selection->test.predicate;
    return carag_kernel_get()->admit(job->reader->view->words, rows, count, predicate->pairs, predicate->pair_count,
                                     out_rows);
}

/* Rows that are in no cell. */
static void scan_tail(const sketch *job)
{
    uint32_t *rows = job->scratch->numbers;
    uint32_t row = job->reader->view->cells->rows;
    while (row < job->reader->rows) {
        size_t count = 0;
        for (; count < CARAG_BLOCK && row < job->reader->rows; row++)
            rows[count++] = row;
        count = admit(job, rows, count, rows);
        if (count > 0)
            sketch_block(job, count);
    }
}

/* Members of a cell whose words pass; returns how many. Requires room for `count` of them. */
static size_t admit_members(const sketch *job, uint32_t at, size_t count, uint32_t *out_rows)
{
    return admit(job, job->reader->view->cells->members + at, count, out_rows);
}

/* Cell after cell, until none is left that may hold a row above the floor. Returns false, and what was found is void,
 * when less than `least_rate` of the first PROBED_ROWS members are open. */
static bool scan_by_cells(const sketch *job, double least_rate)
{
    const carag_cells *cells = job->reader->view->cells;
    carag_scratch *scratch = job->scratch;
    bool goes_on = true;
    bool is_probed = false;
    size_t count = 0;  /* rows waiting in scratch->numbers */
    size_t tested = 0; /* members, and how many of their words passed */
    size_t passed = 0;
    scan_tail(job);
    const float grade = carag_rank_cells(cells, scratch);
    for (uint32_t i = 0; i < cells->count && goes_on; i++) {
        const uint32_t cell = scratch->cells[i];
        const float floor = floor_of(job);
        if (scratch->uppers[cell] + grade < floor)
            break;
        if (scratch->uppers[cell] < floor)
            continue;
        const uint32_t end = cells->cells[cell].end;
        for (uint32_t at = cell ? cells->cells[cell - 1].end : 0; at < end;) {
            const size_t room = CARAG_BLOCK - count;
            const size_t taken = end - at < room ? end - at : room;
            const size_t open = admit_members(job, at, taken, scratch->numbers + count);
            at += (uint32_t)taken;
            tested += taken;
            passed += open;
            count += open;
            if (count >= CARAG_BLOCK / 2) {
                sketch_block(job, count);
                count = 0;
            }
        }
        if (!is_probed && tested >= PROBED_ROWS) {
            goes_on = (double)passed >= least_rate * (double)tested;
            is_probed = true;
        }
    }
    if (count > 0 && goes_on)
        sketch_block(job, count);
    return goes_on;
}

/* Whether cells are worth their order: many rows are admissible, or, which a probe will show, many near the query.
 * Decided by counts alone, so that a scan is the same on every machine. */
carag_order carag_scan_order(const carag_view *view, const carag_selection *selection)
{
    if (!view->cells || selection->labelled > MAX_CLOSED_FACTOR * selection->admissible ||
        selection->admissible * PROBE_MIN_SHARE < view->cells->rows || selection->admissible < MIN_ROWS_BY_CELLS)
        return CARAG_BY_CLASSES;
    return selection->admissible * CELLS_MIN_SHARE >= view->cells->rows ? CARAG_BY_CELLS : CARAG_BY_PROBE;
}

/* Of the first members, what must be open for an order by cells to go on. */
static double least_rate(const carag_reader *reader, const carag_selection *selection, carag_order order)
{
    const double share = (double)selection->admissible / (double)reader->rows;
    return share * (order == CARAG_BY_PROBE ? PROBE_FACTOR : share * FAR_MIN_SHARE < 1.0 ? FAR_FACTOR : 0.0);
}

/* Leave about the `limit` nearest admissible rows in scratch->found. Requires room for carag_sketch_room(limit) there.
 */
void carag_scan_sketch(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch,
                       size_t limit, carag_effort *effort)
{
    const carag_order order = carag_scan_order(reader->view, selection);
    sketch job = {.reader = reader, .selection = selection, .scratch = scratch, .effort = effort,
                  .room = carag_sketch_room(limit), .test_terms = selection->test_terms};
    scratch->found.count = 0;
    carag_query_sketch(&reader->view->bits, reader->index->params.dim, &scratch->query, CONFIDENCE);
    if (order == CARAG_BY_CLASSES ||
        !scan_by_cells(&job, least_rate(reader, selection, order))) {
        scratch->found.count = 0;
        job.test_terms = false; /* the walk has tested them */
        scan_by_classes(&job);
    }
    carag_rerank_found(reader, scratch, limit, effort);
}
