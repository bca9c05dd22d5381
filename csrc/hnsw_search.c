/* hnsw_search.c - searching the graph: Malkov & Yashunin 2018, Algorithms 2 and 5, with the policy inside.
 *
 * Where the filtered search (carag_search_graph) differs from the paper's
 *   1. The word of a row is tested in the inner loop, before the result heap is updated. Rows that fail still
 *      carry the search to their neighbours, so there are two bounded heaps: the `beam`, the ef nearest rows of
 *      any word, which decides where to go and when to stop; and the `results`, admissible rows only. When every
 *      row is admissible the two hold the same rows and this is the paper's search.
 *   2. Adaptive ef. With a pass rate p near the query, a beam of ef holds only about p ef admissible rows, so the
 *      beam is widened to ef / p: ef at p = 1, at most CARAG_WIDEST_BEAM times ef. p is what the search itself has seen
 *      (tests passed over tests made), started from the exact share of admissible rows with the weight of
 *      PRIOR_TESTS tests. It is re-read at every hop; the beam grows and shrinks with it. Rejected: growing
 *      only, because the first hops, far from the query, then fix the beam for the rest of the search.
 *   3. Budget. When as many distances have been computed as there are admissible rows, the exact scan would have
 *      been done by now: the search gives up (returns false) and the caller scans. However queries and policies
 *      are correlated, the worst case is thus twice the scan.
 *
 * Cost: one dot product per row met; the word test, 8 bytes, only for rows near enough to matter. Nothing here
 * allocates or locks; words are relaxed loads, tested again with acquire when a row is emitted (search.c).
 */
#include "carag_internal.h"

#define PRIOR_TESTS 64
#define PREFETCH_BYTES 1024 /* of the next vector; the hardware streams the rest */

static inline void prefetch_vector(const carag_index *index, uint32_t node)
{
    const char *line = (const char *)carag_vector(index, node);
    const size_t vector = index->stride * sizeof(float);
    const size_t bytes = vector < PREFETCH_BYTES ? vector : PREFETCH_BYTES;
    for (size_t offset = 0; offset < bytes; offset += 64)
        __builtin_prefetch(line + offset);
}

/* Collect the neighbours of a row that were not yet met, marking them met. */
static inline uint32_t gather_fresh(const carag_index *index, carag_scratch *scratch, uint32_t node, uint32_t layer)
{
    const uint32_t limit = carag_degree_limit(index, layer);
    const uint32_t *links = carag_links(index, node, layer);
    uint32_t count = 0;
    for (uint32_t i = 0; i < limit && links[i] != CARAG_NONE; i++)
        if (carag_visited_insert(&scratch->visited, links[i]))
            scratch->fresh[count++] = links[i];
    if (count > 0)
        prefetch_vector(index, scratch->fresh[0]);
    return count;
}

/* Score fresh[i], fetching the one after it meanwhile. */
static inline carag_near score_fresh(const carag_index *index, const carag_scratch *scratch, carag_dot_fn dot,
                                     const float *query, uint32_t i, uint32_t count)
{
    if (i + 1 < count)
        prefetch_vector(index, scratch->fresh[i + 1]);
    const uint32_t node = scratch->fresh[i];
    return (carag_near){carag_similarity(index, dot, query, node), node};
}

/* Walk to a row none of whose neighbours on this layer is nearer: Algorithm 2 with ef = 1. */
carag_near carag_greedy(const carag_index *index, carag_scratch *scratch, const float *query, carag_near from,
                        uint32_t layer, carag_effort *effort)
{
    const carag_dot_fn dot = carag_kernel_dot();
    carag_near nearest = from;
    uint32_t expanded = CARAG_NONE;
    carag_visited_insert(&scratch->visited, from.node);
    while (expanded != nearest.node) {
        expanded = nearest.node;
        const uint32_t count = gather_fresh(index, scratch, expanded, layer);
        for (uint32_t i = 0; i < count; i++) {
            const carag_near near = score_fresh(index, scratch, dot, query, i, count);
            if (carag_is_nearer(index->at.keys, near, nearest))
                nearest = near;
        }
        effort->distance_computations += count;
        effort->hops++;
    }
    carag_visited_clear(&scratch->visited);
    return nearest;
}

/* Algorithm 2, for building: leaves the ef nearest rows it finds in scratch->beam, nearest first.
 * Requires room for ef in the beam. */
void carag_search_layer(const carag_index *index, carag_scratch *scratch, const float *query, carag_near from,
                        size_t ef, uint32_t layer)
{
    const carag_dot_fn dot = carag_kernel_dot();
    carag_heap *candidates = &scratch->candidates;
    carag_heap *beam = &scratch->beam;
    candidates->count = beam->count = 0;
    carag_visited_insert(&scratch->visited, from.node);
    carag_heap_push(candidates, CARAG_NEAREST_ON_TOP, from);
    carag_heap_keep(beam, ef, from);
    while (candidates->count > 0) {
        const carag_near nearest = carag_heap_pop(candidates, CARAG_NEAREST_ON_TOP);
        if (beam->count == ef && carag_is_nearer(index->at.keys, beam->items[0], nearest))
            break;
        const uint32_t count = gather_fresh(index, scratch, nearest.node, layer);
        for (uint32_t i = 0; i < count; i++) {
            const carag_near near = score_fresh(index, scratch, dot, query, i, count);
            if (carag_heap_accepts(beam, ef, near)) {
                carag_heap_push(candidates, CARAG_NEAREST_ON_TOP, near);
                carag_heap_keep(beam, ef, near);
            }
        }
    }
    carag_visited_clear(&scratch->visited);
    carag_heap_sort(beam);
}

/* ---------------------------------------------------------------- filtered */

/* One filtered search over layer 0: what its steps share. */
typedef struct layer_search {
    const carag_index *index;
    carag_scratch *scratch;
    const carag_predicate *predicate;
    size_t ef;      /* asked for; also the room for results */
    size_t width;   /* of the beam now */
    uint64_t tests; /* words tested, and how many passed, the prior included */
    uint64_t passed;
} layer_search;

/* Point 2 of the essay. */
static void adapt_beam(layer_search *search)
{
    carag_heap *beam = &search->scratch->beam;
    const size_t widest = search->ef * CARAG_WIDEST_BEAM;
    const uint64_t passed = search->passed ? search->passed : 1;
    const uint64_t wanted = (search->ef * search->tests + passed - 1) / passed;
    search->width = wanted < search->ef ? search->ef : wanted > widest ? widest : (size_t)wanted;
    while (beam->count > search->width)
        carag_heap_pop(beam, CARAG_FARTHEST_ON_TOP);
}

/* Let one scored row into the candidates, the beam and, if its word passes, the results. */
static inline void admit(layer_search *search, carag_near near)
{
    carag_scratch *scratch = search->scratch;
    const bool in_beam = carag_heap_accepts(&scratch->beam, search->width, near);
    if (!in_beam && !carag_heap_accepts(&scratch->results, search->ef, near))
        return;
    search->tests++;
    if (carag_is_open(search->index, search->predicate, near.node, memory_order_relaxed)) {
        search->passed++;
        if (carag_heap_accepts(&scratch->results, search->ef, near))
            carag_heap_keep(&scratch->results, search->ef, near);
    }
    if (in_beam) {
        carag_heap_push(&scratch->candidates, CARAG_NEAREST_ON_TOP, near);
        carag_heap_keep(&scratch->beam, search->width, near);
    }
}

/* Algorithm 5 under a predicate that `admissible` rows satisfied when counted. Leaves up to ef admissible rows in
 * scratch->results, a heap; returns false when the budget ran out, and the results are then void.
 * Requires a non-empty index, room for ef results and for CARAG_WIDEST_BEAM * ef (or all rows) in the beam. */
bool carag_search_graph(const carag_index *index, carag_scratch *scratch, const float *query,
                        const carag_predicate *predicate, size_t ef, uint64_t admissible, carag_effort *effort)
{
    const carag_dot_fn dot = carag_kernel_dot();
    carag_near nearest = {carag_similarity(index, dot, query, index->entry_point), index->entry_point};
    effort->distance_computations++;
    for (uint32_t layer = index->max_level; layer > 0; layer--)
        nearest = carag_greedy(index, scratch, query, nearest, layer, effort);

    layer_search search = {.index = index, .scratch = scratch, .predicate = predicate, .ef = ef};
    search.tests = PRIOR_TESTS;
    search.passed = PRIOR_TESTS * admissible / index->rows;
    carag_heap *candidates = &scratch->candidates;
    carag_heap *beam = &scratch->beam;
    candidates->count = beam->count = scratch->results.count = 0;
    adapt_beam(&search);
    carag_visited_insert(&scratch->visited, nearest.node);
    admit(&search, nearest);

    bool within_budget = true;
    while (candidates->count > 0) {
        adapt_beam(&search);
        if (effort->ef < search.width)
            effort->ef = search.width;
        nearest = carag_heap_pop(candidates, CARAG_NEAREST_ON_TOP);
        if (beam->count == search.width && carag_is_nearer(index->at.keys, beam->items[0], nearest))
            break;
        if (effort->distance_computations >= admissible) {
            within_budget = false;
            break;
        }
        const uint32_t count = gather_fresh(index, scratch, nearest.node, 0);
        for (uint32_t i = 0; i < count; i++)
            admit(&search, score_fresh(index, scratch, dot, query, i, count));
        effort->distance_computations += count;
        effort->hops++;
    }
    carag_visited_clear(&scratch->visited);
    return within_budget;
}
