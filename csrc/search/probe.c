/* search/probe.c - the cells nearest to a query: in what order, and the best of their rows, where a walk over the graph
 * starts.
 *
 * A graph knows only what is near a row it has met; cells see all clusters at once, and one-bit codes tell which of
 * their rows are promising. Some rows of each cell, not the best of all: where the nearest rows lie in several places,
 * the best of all come from one of them. Rows, not centres: clusters of many dimensions are hollow, and a centre is no
 * nearer than rows of other clusters are. Admissible rows beside those of any word, because where the query's own
 * neighbourhood is closed the walk would have to find its way out of it.
 *
 * Estimates only, without their errors: a seed need not be a neighbour, but in the right place. As many cells as hold
 * the seeds wanted, for a near query as for one amid several rows. Rejected: to stop where cells are farther than some
 * multiple of the nearest; it found less of what lies in several places for the same number of rows.
 */
#include "carag_internal.h"
#include "search/search.h"
#include "search/span.h"

#include <math.h>

#define GRADES 64 /* buckets into which cells are sorted by what their rows hardly exceed */
#define SEEDS 8 /* best rows of a cell, of any word, and likewise admissible ones */

/* Put the numbers of the cells into scratch->cells, those whose rows may be nearest first; by cell, what their centres
 * give into scratch->nears, and what their rows hardly exceed into scratch->uppers. Sorted into grades only:
 * scratch->grade is by how much a later cell may be above. Once a query: of policies it knows nothing. */
void carag_rank_cells(const carag_cells *cells, carag_scratch *scratch)
{
    carag_query *query = &scratch->query;
    if (query->has_cells)
        return;
    const carag_kernel *kernel = carag_kernel_get();
    float lowest = INFINITY;
    float highest = -INFINITY;
    for (uint32_t from = 0; from < cells->count; from += CARAG_BLOCK) {
        const uint32_t count = cells->count - from < CARAG_BLOCK ? cells->count - from : CARAG_BLOCK;
        for (uint32_t i = 0; i < count; i++)
            scratch->numbers[i] = from + i;
        kernel->dot8(cells->centres, cells->stride, scratch->numbers, count, query->codes, cells->stride,
                     scratch->dots);
        for (uint32_t i = 0; i < count; i++) {
            const carag_cell cell = cells->cells[from + i];
            const float near = query->scale * cell.scale * (float)scratch->dots[i];
            const float upper = near + cells->reach * cell.spread;
            scratch->nears[from + i] = near;
            scratch->uppers[from + i] = upper;
            lowest = upper < lowest ? upper : lowest;
            highest = upper > highest ? upper : highest;
        }
    }
    uint32_t ends[GRADES + 1] = {0};
    const float grades = highest > lowest ? (GRADES - 1) / (highest - lowest) : 0.0F;
    for (uint32_t c = 0; c < cells->count; c++)
        ends[1 + (int32_t)((highest - scratch->uppers[c]) * grades)]++;
    for (int grade = 0; grade < GRADES; grade++)
        ends[grade + 1] += ends[grade];
    for (uint32_t c = 0; c < cells->count; c++)
        scratch->cells[ends[(int32_t)((highest - scratch->uppers[c]) * grades)]++] = c;
    scratch->grade = (highest - lowest) / (GRADES - 1);
    query->has_cells = true;
}

/* ---------------------------------------------------------------- seeds */

/* The best rows of a cell so far, nearest first. */
typedef struct seeds {
    carag_near items[SEEDS];
    size_t count;
} seeds;

static float floor_of(const seeds *best)
{
    return best->count == SEEDS ? best->items[SEEDS - 1].similarity : -INFINITY;
}

/* Requires the row to be above the floor. */
static void keep(seeds *best, carag_near near)
{
    size_t at = best->count < SEEDS ? best->count++ : SEEDS - 1;
    for (; at > 0 && best->items[at - 1].similarity < near.similarity; at--)
        best->items[at] = best->items[at - 1];
    best->items[at] = near;
}

/* What a probe works with. */
typedef struct probe {
    const carag_reader *reader;
    const carag_selection *selection;
    carag_scratch *scratch;
    carag_effort *effort;
    seeds any;  /* of the cell under way */
    seeds open; /* likewise, those that are admissible */
} probe;

/* Positions of a cell, in one pack. */
static void probe_span(probe *job, const carag_span *span, carag_sight centre)
{
    float uppers[CARAG_PACK];
    /* Admissible rows are rows: their floor is the lower one. */
    uint32_t left = carag_span_estimate(span, carag_span_lanes(span), &job->reader->view->bits,
                                        &job->scratch->query, centre, 0.0F, floor_of(&job->open), uppers);
    for (; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        const carag_near near = {uppers[lane], span->rows[lane - span->first]};
        if (near.similarity > floor_of(&job->any))
            keep(&job->any, near);
        if (near.similarity > floor_of(&job->open) && carag_passes(job->reader, job->selection, near.node))
            keep(&job->open, near);
    }
    job->effort->estimates += span->count;
}

/* Append the rows not yet met, marking them met; returns how many there are now. */
static size_t append(const seeds *best, carag_scratch *scratch, size_t count)
{
    for (size_t i = 0; i < best->count; i++)
        if (carag_visited_insert(&scratch->visited, best->items[i].node))
            scratch->kept[count++] = best->items[i];
    return count;
}

/* About `wanted` rows of any word, and as many admissible ones, of the nearest cells: marked met, into scratch->kept;
 * returns how many. Requires cells. */
size_t carag_probe(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch, size_t wanted,
                   carag_effort *effort)
{
    const carag_cells *cells = reader->view->cells;
    probe job = {.reader = reader, .selection = selection, .scratch = scratch, .effort = effort};
    size_t found = 0;
    carag_query_sketch(&reader->view->bits, reader->index->params.dim, &scratch->query);
    carag_rank_cells(cells, scratch);
    for (uint32_t i = 0; i < cells->count && (size_t)i * SEEDS < wanted; i++) {
        const uint32_t cell = scratch->cells[i];
        const carag_sight centre = carag_sight_of(cells, scratch, cell);
        const uint32_t end = cells->cells[cell].end;
        job.any.count = job.open.count = 0;
        for (uint32_t at = cell ? cells->cells[cell - 1].end : 0; at < end;) {
            uint32_t room[CARAG_PACK];
            const carag_span span = carag_span_at(reader->view, at, end, room);
            probe_span(&job, &span, centre);
            at += span.count;
        }
        found = append(&job.any, scratch, found);
        found = append(&job.open, scratch, found);
    }
    return found;
}
