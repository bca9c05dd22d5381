/* hnsw/search.c - search the graph: Malkov & Yashunin 2018, Algorithms 2 and 5, with the policy inside.
 *
 * Rows are compared by their eight-bit codes, all new neighbours of a row in one call of the kernel; the best
 * admissible ones are scored at the end over what is kept of their vectors.
 *
 * Where the filtered search (carag_search_graph) differs from the paper's
 *   1. The word of a row is tested in the inner loop, before the result heap is updated. Rows that fail still
 *      carry the search to their neighbours, so there are two bounded sets: the `pool`, the ef nearest rows of
 *      any word, which decides where to go and when to stop; and the results, admissible rows only. When every
 *      row is admissible this is the paper's search.
 *   2. Entry. Where there are cells, the search starts on layer 0 from the rows that came through a scan of the nearest
 *      cells (search/scan.c), with the floor that those gave. A descent through the upper layers ends in one region, and
 *      where clusters lie far apart, or the nearest rows in several places, no width of the pool leads out of it: of 150
 *      queries on a million rows 38 found nothing at ef 48, and 2 still at ef 512. Rows, not centres: clusters of many
 *      dimensions are hollow, and their centres are as far away as rows of other clusters. Rejected: the best rows of any
 *      word, of each cell, beside them; recall stayed the same, and a walk cost half as much again. Rows too few for cells
 *      are reached through the upper layers, which linking a new row needs in any case (hnsw/insert.c).
 *   3. Adaptive ef. With a pass rate p near the query, a pool of ef holds only about p ef admissible rows, so the
 *      pool is widened to ef / p: ef at p = 1, at most CARAG_MAX_WIDENING times ef. p is what the search itself has
 *      seen (tests passed over tests made), started from the share of admissible rows in the nearest cells with the weight
 *      of PRIOR_TESTS tests. It is re-read at every hop; the pool grows and shrinks with it. Rejected: growing
 *      only, because the first hops, far from the query, then fix the pool for the rest of the search. Rejected: two
 *      hops through rows that fail, keeping admissible ones only (ACORN, Patel et al., SIGMOD 2024); where versions of
 *      a text lie on each other, one of them open, it found half of what widening finds, and where few rows pass a scan
 *      is cheaper than both.
 *   4. Stop by distance (Al-Jazzazi et al. 2025, "Distance Adaptive Beam Search"). Once there are enough admissible
 *      rows, nothing farther than `slack` times the last of them is kept or expanded, by squared distance: an easy
 *      query ends early, and a wide pool costs only the queries that need it. The slack is tuned (cost/tune.c).
 *   5. Budget. When as much has been spent as the rest of the scan would cost, the search gives up (returns false) and
 *      the scan goes on. However queries and policies are correlated, the worst case is thus about twice the scan. A walk
 *      that was asked for gives up early when far fewer rows pass near the query than everywhere: there the graph is slow
 *      and misses most. One that was chosen does when it ends because the pool was spent: isolated rows, which no row has
 *      as a neighbour, lie beyond it.
 *
 * The pool is one sorted array that serves as candidates and as beam: inserting moves a few cache lines, and the next
 * row to expand is the first not yet expanded.
 *
 * Cost: one eight-bit product per row met; the word test, 4 bytes, only for rows near enough to matter. Nothing here
 * allocates or locks; words are relaxed loads, tested again with acquire when a row is emitted (search/call.c).
 */
#include "carag_internal.h"
#include "row/row.h"
#include "search/search.h"

#include <math.h>
#include <string.h>

#define PRIOR_TESTS 64 /* word tests that the share of admissible rows stands for when a search begins */

/* The row that a slot names; CARAG_NONE after the last. In a mapped file, whose links were not verified, an invalid row
 * number also ends the list: one comparison detects both. */
static inline uint32_t link_at(const carag_view *view, const _Atomic(uint32_t) *links, uint32_t i)
{
    const uint32_t link = atomic_load_explicit(&links[i], memory_order_acquire);
    return link < view->capacity ? link : CARAG_NONE;
}

/* Collect the neighbours of a row that were not yet met, marking them met. */
static size_t gather_fresh(const carag_view *view, carag_visited *visited, uint32_t row, uint32_t layer,
                           uint32_t *out_rows)
{
    const carag_graph *graph = &view->graph;
    const _Atomic(uint32_t) *links = carag_graph_links(graph, row, layer);
    const uint32_t limit = carag_graph_limit(graph, layer);
    size_t count = 0;
    for (uint32_t i = 0; i < limit; i++) {
        const uint32_t link = link_at(view, links, i);
        if (link == CARAG_NONE)
            break;
        if (carag_visited_insert(visited, link))
            out_rows[count++] = link;
    }
    return count;
}

typedef struct graph_search {
    const carag_reader *reader;
    const carag_selection *selection;
    const carag_kernel *kernel;
    carag_scratch *scratch;
    carag_effort *effort;
    size_t ef;      /* asked for */
    size_t width;   /* of the pool now */
    size_t count;   /* rows in the pool */
    size_t next;    /* every row of the pool before this one was expanded */
    size_t room;    /* for admissible rows */
    float slack;
    float stop;     /* nothing scored below it is kept: point 4 of the essay */
    uint64_t tests; /* words tested, and how many passed, the prior included */
    uint64_t passed;
} graph_search;

/* Which row to look at first. Among equals, copies above all, the earlier row: links of the spanning tree lead from
 * there to everywhere else, and from later copies to more copies. */
static bool is_ahead(carag_near a, carag_near b)
{
    if (a.similarity > b.similarity || a.similarity < b.similarity)
        return a.similarity > b.similarity;
    return a.node < b.node;
}

/* Eight-bit scores of `count` rows, into scratch->scores. */
static void score_rows(graph_search *search, const uint32_t *rows, size_t count)
{
    const carag_codes *codes = &search->reader->view->codes;
    carag_scratch *scratch = search->scratch;
    search->kernel->dot8(codes->bytes, codes->stride, rows, count, scratch->query.codes, codes->stride, scratch->dots);
    for (size_t i = 0; i < count; i++)
        scratch->scores[i] = carag_ordered(scratch->query.scale * codes->scales[rows[i]] * (float)scratch->dots[i]);
    search->effort->distance_computations += count;
}

/* Walk to a row none of whose neighbours on this layer is nearer: Algorithm 2 with ef = 1. */
static carag_near greedy(graph_search *search, carag_near nearest, uint32_t layer)
{
    carag_scratch *scratch = search->scratch;
    const uint8_t *levels = search->reader->view->graph.levels;
    uint32_t expanded = CARAG_NONE;
    carag_visited_insert(&scratch->visited, nearest.node);
    while (expanded != nearest.node) {
        expanded = nearest.node;
        const size_t count =
            gather_fresh(search->reader->view, &scratch->visited, expanded, layer, scratch->numbers);
        score_rows(search, scratch->numbers, count);
        for (size_t i = 0; i < count; i++) {
            const carag_near near = {scratch->scores[i], scratch->numbers[i]};
            if (is_ahead(near, nearest) && levels[near.node] >= layer) /* a mapped link may lie */
                nearest = near;
        }
        search->effort->hops++;
    }
    carag_visited_clear(&scratch->visited);
    return nearest;
}

/* ---------------------------------------------------------------- the pool */

/* Where a row belongs among the pool's, nearest first. */
static size_t pool_position(const graph_search *search, carag_near near)
{
    const carag_near *pool = search->scratch->pool;
    size_t low = 0;
    size_t high = search->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (is_ahead(pool[middle], near))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool pool_accepts(const graph_search *search, carag_near near)
{
    return near.similarity >= search->stop &&
           (search->count < search->width || is_ahead(near, search->scratch->pool[search->count - 1]));
}

/* Requires pool_accepts. */
static void pool_insert(graph_search *search, carag_near near)
{
    carag_scratch *scratch = search->scratch;
    if (search->count == search->width)
        search->count--;
    const size_t at = pool_position(search, near);
    memmove(scratch->pool + at + 1, scratch->pool + at, (search->count - at) * sizeof *scratch->pool);
    memmove(scratch->expanded + at + 1, scratch->expanded + at, (search->count - at) * sizeof *scratch->expanded);
    scratch->pool[at] = near;
    scratch->expanded[at] = 0;
    search->count++;
    if (at < search->next)
        search->next = at;
}

/* Point 3 of the essay. */
static void adapt_width(graph_search *search)
{
    const size_t room = search->scratch->room.pool;
    const size_t widest = room < search->ef * CARAG_MAX_WIDENING ? room : search->ef * CARAG_MAX_WIDENING;
    const uint64_t passed = search->passed ? search->passed : 1;
    const uint64_t wanted = (search->ef * search->tests + passed - 1) / passed;
    search->width = wanted < search->ef ? search->ef : wanted > widest ? widest : (size_t)wanted;
    if (search->count > search->width)
        search->count = search->width;
    if (search->effort->ef < search->width)
        search->effort->ef = search->width;
}

/* Point 4 of the essay. */
static void adapt_stop(graph_search *search)
{
    const carag_heap *found = &search->scratch->found;
    if (found->count == search->room && isfinite(search->slack))
        search->stop = 1.0F - search->slack * (1.0F - found->items[0].similarity);
}

/* Let one scored row into the pool and, if its word passes, the results. */
static void admit(graph_search *search, carag_near near)
{
    carag_heap *found = &search->scratch->found;
    const bool in_pool = pool_accepts(search, near);
    const bool in_found = carag_heap_accepts(found, search->room, near);
    if (!in_pool && !in_found)
        return;
    search->tests++;
    if (carag_passes(search->reader, search->selection, near.node)) {
        search->passed++;
        if (in_found) {
            carag_heap_keep(found, search->room, near);
            adapt_stop(search);
        }
    }
    if (in_pool)
        pool_insert(search, near);
}

/* ---------------------------------------------------------------- the search */

/* Score the rows in scratch->numbers, and let them in. */
static void meet(graph_search *search, size_t count)
{
    const carag_scratch *scratch = search->scratch;
    score_rows(search, scratch->numbers, count);
    for (size_t i = 0; i < count; i++)
        admit(search, (carag_near){scratch->scores[i], scratch->numbers[i]});
}

/* Meet the row in which a descent through the upper layers ends. */
static void descend(graph_search *search)
{
    const carag_graph *graph = &search->reader->view->graph;
    carag_scratch *scratch = search->scratch;
    carag_near nearest = {0.0F, atomic_load_explicit(&graph->entry_point, memory_order_acquire)};
    score_rows(search, &nearest.node, 1);
    nearest.similarity = scratch->scores[0];
    for (uint32_t layer = graph->levels[nearest.node]; layer > 0; layer--)
        nearest = greedy(search, nearest, layer);
    carag_visited_insert(&scratch->visited, nearest.node);
    admit(search, nearest);
}

/* Point 2 of the essay. */
static void enter(graph_search *search, const carag_scan *begun)
{
    const carag_scratch *scratch = search->scratch;
    if (!search->reader->view->cells) {
        descend(search);
        return;
    }
    adapt_stop(search);
    for (size_t i = 0; i < begun->scored; i++)
        if (pool_accepts(search, scratch->kept[i]))
            pool_insert(search, scratch->kept[i]);
}

/* Algorithm 5 for a selection that is not empty, from where a scan of the nearest cells stands. Leaves up to `limit`
 * admissible rows in scratch->found, a heap, and ends the scan; or returns false when it was given up, and the scan may go
 * on with what was found by then. Requires a non-empty index, and room for carag_sketch_room(limit) found rows and ef *
 * CARAG_MAX_WIDENING, or all rows, in the pool. */
bool carag_search_graph(carag_scan *begun, size_t limit, const carag_limits *limits)
{
    const carag_reader *reader = begun->reader;
    carag_scratch *scratch = begun->scratch;
    carag_effort *effort = begun->effort;
    graph_search search = {.reader = reader, .selection = begun->selection, .kernel = carag_kernel_get(),
                           .scratch = scratch, .effort = effort, .ef = limits->ef, .room = begun->room,
                           .slack = limits->slack, .stop = -INFINITY, .tests = PRIOR_TESTS};
    search.passed = begun->tested ? PRIOR_TESTS * begun->opened / begun->tested
                                  : PRIOR_TESTS * begun->selection->admissible / reader->rows;
    const uint64_t before = effort->distance_computations;
    adapt_width(&search);
    enter(&search, begun);

    bool within_budget = true;
    for (;;) {
        adapt_width(&search);
        while (search.next < search.count && scratch->expanded[search.next])
            search.next++;
        if (search.next >= search.count || scratch->pool[search.next].similarity < search.stop) {
            within_budget = !limits->is_sure || search.next < search.count || search.count < search.width;
            break;
        }
        if (effort->distance_computations - before >= limits->budget ||
            (search.tests > 4 * PRIOR_TESTS && (double)search.passed < limits->least_rate * (double)search.tests)) {
            within_budget = false;
            break;
        }
        scratch->expanded[search.next] = 1;
        const uint32_t row = scratch->pool[search.next].node;
        meet(&search, gather_fresh(reader->view, &scratch->visited, row, 0, scratch->numbers));
        effort->hops++;
    }
    if (!within_budget)
        return false;
    carag_scan_leave(begun);
    scratch->pool_count = search.count;
    carag_rerank_found(reader, scratch, limit, effort);
    return true;
}
