/* hnsw_insert.c - building the graph: Malkov & Yashunin 2018, Algorithms 1 and 4.
 *
 * Where this differs from the paper
 *   - Pinned links. A new row and its parent on a layer, the nearest row it links to that has room for a child,
 *     keep their two-way link for ever (the spanning tree of carag_internal.h). A row takes children for at most
 *     half its slots, so hubs keep the other half for navigation. Rejected: repairing unreachable rows after the
 *     build (hnswlib leaves 0.1 to 2 % of them on hard data), because the result then depends on how rows were
 *     cut into batches.
 *   - Duplicates. A candidate as near to a chosen neighbour as to the row itself is refused ("<=", not "<"), so
 *     among copies one link is kept and the rest go to other places: a thousand copies do not fill each other's
 *     lists.
 *   - Pruned candidates are not kept to fill lists (keepPrunedConnections is false), as in hnswlib.
 *   - Nearness is compared as similarity: 1 - dot would round different similarities to the same distance.
 *
 * The graph is a function of the vectors, their order, keys (ties) and the seed. Nothing here allocates or fails.
 */
#include "carag_internal.h"

/* Algorithm 1 walks with the new row's own vector; nobody reads the effort of a build. */
#define IGNORED_EFFORT (&(carag_effort){0})

static uint32_t degree(const carag_index *index, uint32_t node, uint32_t layer)
{
    const uint32_t limit = carag_degree_limit(index, layer);
    const uint32_t *links = carag_links(index, node, layer);
    uint32_t count = 0;
    while (count < limit && links[count] != CARAG_NONE)
        count++;
    return count;
}

static void set_links(carag_index *index, uint32_t node, uint32_t layer, const carag_near *links, uint32_t count)
{
    const uint32_t limit = carag_degree_limit(index, layer);
    uint32_t *slots = carag_links(index, node, layer);
    for (uint32_t i = 0; i < limit; i++)
        slots[i] = i < count ? links[i].node : CARAG_NONE;
}

static bool is_pinned(const carag_index *index, uint32_t a, uint32_t b, uint32_t layer)
{
    return *carag_parent(index, a, layer) == b || *carag_parent(index, b, layer) == a;
}

/* ---------------------------------------------------------------- choosing neighbours */

/* Whether a candidate brings a direction of its own: nearer to the row than to every neighbour chosen so far. */
static bool is_diverse(const carag_index *index, carag_dot_fn dot, carag_near candidate, const carag_near *chosen,
                       uint32_t count)
{
    const float *vector = carag_vector(index, candidate.node);
    for (uint32_t i = 0; i < count; i++)
        if (carag_similarity(index, dot, vector, chosen[i].node) >= candidate.similarity)
            return false;
    return true;
}

/* Algorithm 4 for `node`: from candidates, nearest first, keep at most `limit`. Candidates pinned to the row are
 * always kept; requires that no more than `limit` are. Returns how many were chosen. */
static uint32_t select_neighbors(const carag_index *index, uint32_t node, uint32_t layer,
                                 const carag_near *candidates, size_t count, uint32_t limit, carag_near *out_chosen)
{
    const carag_dot_fn dot = carag_kernel_dot();
    uint32_t pinned_ahead = 0;
    for (size_t i = 0; i < count; i++)
        pinned_ahead += is_pinned(index, node, candidates[i].node, layer);
    uint32_t chosen = 0;
    for (size_t i = 0; i < count && chosen < limit; i++) {
        const bool pinned = pinned_ahead > 0 && is_pinned(index, node, candidates[i].node, layer);
        pinned_ahead -= pinned;
        if (pinned || (chosen + pinned_ahead < limit && is_diverse(index, dot, candidates[i], out_chosen, chosen)))
            out_chosen[chosen++] = candidates[i];
    }
    return chosen;
}

/* ---------------------------------------------------------------- the spanning tree */

static bool has_room_for_child(const carag_index *index, uint32_t node, uint32_t layer)
{
    const uint32_t limit = carag_degree_limit(index, layer);
    const uint32_t most = limit / 2 < 2 ? 2 : limit / 2;
    const uint32_t *links = carag_links(index, node, layer);
    uint32_t pinned = 0;
    for (uint32_t i = 0; i < limit && links[i] != CARAG_NONE; i++)
        pinned += is_pinned(index, node, links[i], layer);
    return pinned < most;
}

/* The nearest chosen neighbour with room; else the nearest candidate; else the latest row of the layer with room.
 * One always exists: the tree has leaves, a leaf has one pinned link, and every row has room for two. */
static carag_near choose_parent(const carag_index *index, uint32_t node, uint32_t layer, const carag_near *chosen,
                                uint32_t chosen_count, const carag_near *candidates, size_t count)
{
    for (uint32_t i = 0; i < chosen_count; i++)
        if (has_room_for_child(index, chosen[i].node, layer))
            return chosen[i];
    for (size_t i = 0; i < count; i++)
        if (has_room_for_child(index, candidates[i].node, layer))
            return candidates[i];
    uint32_t other = node - 1;
    while (index->at.levels[other] < layer || !has_room_for_child(index, other, layer))
        other--;
    return (carag_near){carag_similarity(index, carag_kernel_dot(), carag_vector(index, node), other), other};
}

/* Make sure the parent is among the chosen, in the place of the farthest if need be. */
static uint32_t include_parent(carag_near parent, carag_near *chosen, uint32_t count, uint32_t limit)
{
    for (uint32_t i = 0; i < count; i++)
        if (chosen[i].node == parent.node)
            return count;
    if (count == limit)
        count--;
    chosen[count] = parent;
    return count + 1;
}

/* ---------------------------------------------------------------- linking */

/* Add the link `from` -> `to.node`; a full list is chosen anew from its links and the newcomer. */
static void link_back(carag_index *index, carag_scratch *scratch, uint32_t from, carag_near to, uint32_t layer)
{
    const uint32_t limit = carag_degree_limit(index, layer);
    uint32_t *links = carag_links(index, from, layer);
    const uint32_t have = degree(index, from, layer);
    if (have < limit) {
        links[have] = to.node;
        return;
    }
    const carag_dot_fn dot = carag_kernel_dot();
    carag_heap all = {.items = scratch->shrink, .keys = index->at.keys};
    carag_heap_push(&all, CARAG_FARTHEST_ON_TOP, to);
    for (uint32_t i = 0; i < have; i++) {
        const carag_near near = {carag_similarity(index, dot, carag_vector(index, from), links[i]), links[i]};
        carag_heap_push(&all, CARAG_FARTHEST_ON_TOP, near);
    }
    carag_heap_sort(&all);
    carag_near *kept = scratch->selected;
    set_links(index, from, layer, kept, select_neighbors(index, from, layer, all.items, all.count, limit, kept));
}

/* Link a row into one layer from the candidates in scratch->beam, nearest first, at least one. */
static void connect_row(carag_index *index, carag_scratch *scratch, uint32_t node, uint32_t layer)
{
    const carag_heap *found = &scratch->beam;
    const uint32_t M = index->params.M;
    carag_near *chosen = scratch->selected;
    *carag_parent(index, node, layer) = CARAG_NONE;
    uint32_t count = select_neighbors(index, node, layer, found->items, found->count, M, chosen);
    const carag_near parent = choose_parent(index, node, layer, chosen, count, found->items, found->count);
    count = include_parent(parent, chosen, count, M);
    *carag_parent(index, node, layer) = parent.node;
    set_links(index, node, layer, chosen, count);

    /* scratch->selected is reused below; the row's own links say whom to tell, their similarities are symmetric. */
    const carag_dot_fn dot = carag_kernel_dot();
    const uint32_t *links = carag_links(index, node, layer);
    for (uint32_t i = 0; i < count; i++) {
        const carag_near self = {carag_similarity(index, dot, carag_vector(index, links[i]), node), node};
        link_back(index, scratch, links[i], self, layer);
    }
}

static void begin_layer(carag_index *index, uint32_t node, uint32_t layer)
{
    *carag_parent(index, node, layer) = CARAG_NONE;
    set_links(index, node, layer, NULL, 0);
}

/* Algorithm 1. The row's vector, key, level and upper slots are in place, and scratch has room for it. */
void carag_hnsw_insert(carag_index *index, carag_scratch *scratch, uint32_t node)
{
    const uint32_t level = index->at.levels[node];
    if (index->entry_point == CARAG_NONE) {
        for (uint32_t layer = 0; layer <= level; layer++)
            begin_layer(index, node, layer);
        index->entry_point = node;
        index->max_level = level;
        return;
    }
    const float *query = carag_vector(index, node);
    carag_near nearest = {carag_similarity(index, carag_kernel_dot(), query, index->entry_point), index->entry_point};
    for (uint32_t layer = index->max_level; layer > level; layer--)
        nearest = carag_greedy(index, scratch, query, nearest, layer, IGNORED_EFFORT);
    for (uint32_t layer = level; layer > index->max_level; layer--)
        begin_layer(index, node, layer);
    const uint32_t top = level < index->max_level ? level : index->max_level;
    for (uint32_t below = top + 1; below > 0; below--) {
        const uint32_t layer = below - 1;
        carag_search_layer(index, scratch, query, nearest, index->params.ef_construction, layer);
        nearest = scratch->beam.items[0];
        connect_row(index, scratch, node, layer);
    }
    if (level > index->max_level) {
        index->entry_point = node;
        index->max_level = level;
    }
}
