/* hnsw/insert.c - link one row into the graph: Malkov & Yashunin 2018, Algorithms 1 and 2.
 *
 * Where this differs from the paper
 *   - Pinned links. A new row and its parent on a layer, the nearest row found that has room for a child,
 *     keep their two-way link permanently (the spanning tree of hnsw/graph.h). A row takes children for at most half
 *     its slots, so hubs keep the other half for navigation. Rejected: repairing unreachable rows after the
 *     build (hnswlib leaves 0.1 to 2 % of them on hard data), because the result then depends on how rows
 *     were cut into batches.
 *   - Choosing neighbours is hnsw/link.c's, as in the bulk build.
 *   - Nearness is the similarity of eight-bit codes, a whole list of links in one kernel call.
 *
 * The graph is a function of the codes, their order, keys (ties) and the seed. Readers may search meanwhile:
 * they see a list before or after a change, or parts of both, always of rows that are there. Nothing here
 * allocates or fails.
 */
#include "carag_internal.h"
#include "heap.h"
#include "hnsw/hnsw.h"
#include "hnsw/link.h"
#include "visited.h"

struct carag_insertion {
    carag_linker linker;
    uint32_t ef_construction;
    carag_visited visited;
    carag_heap candidates; /* nearest on top; room for every row */
    carag_heap beam;       /* farthest on top; room for ef_construction */
};

/* ---------------------------------------------------------------- walking */

/* Score the links of a row that were not yet met, into linker->listed. */
static size_t score_fresh(carag_insertion *insertion, uint32_t row, uint32_t layer)
{
    carag_linker *linker = &insertion->linker;
    const uint32_t limit = carag_graph_limit(linker->graph, layer);
    const _Atomic(uint32_t) *links = carag_graph_links(linker->graph, row, layer);
    size_t count = 0;
    for (uint32_t i = 0; i < limit; i++) {
        const uint32_t other = atomic_load_explicit(&links[i], memory_order_relaxed);
        if (other == CARAG_NONE)
            break;
        if (carag_visited_insert(&insertion->visited, other))
            linker->rows[count++] = other;
    }
    carag_linker_score(linker, linker->rows, count, linker->listed);
    return count;
}

/* Walk to a row none of whose links on this layer is nearer: Algorithm 2 with ef = 1. */
static carag_near walk(carag_insertion *insertion, carag_near from, uint32_t layer)
{
    const carag_linker *linker = &insertion->linker;
    carag_near nearest = from;
    uint32_t expanded = CARAG_NONE;
    carag_visited_insert(&insertion->visited, from.node);
    while (expanded != nearest.node) {
        expanded = nearest.node;
        const size_t count = score_fresh(insertion, expanded, layer);
        for (size_t i = 0; i < count; i++)
            if (carag_is_nearer(linker->keys, linker->listed[i], nearest))
                nearest = linker->listed[i];
    }
    carag_visited_clear(&insertion->visited);
    return nearest;
}

/* Algorithm 2: leaves the ef nearest rows it finds in insertion->beam, nearest first. */
static void search_layer(carag_insertion *insertion, carag_near from, size_t ef, uint32_t layer)
{
    const carag_linker *linker = &insertion->linker;
    carag_heap *candidates = &insertion->candidates;
    carag_heap *beam = &insertion->beam;
    candidates->count = beam->count = 0;
    carag_visited_insert(&insertion->visited, from.node);
    carag_heap_push(candidates, CARAG_NEAREST_ON_TOP, from);
    carag_heap_keep(beam, ef, from);
    while (candidates->count > 0) {
        const carag_near nearest = carag_heap_pop(candidates, CARAG_NEAREST_ON_TOP);
        if (beam->count == ef && carag_is_nearer(linker->keys, beam->items[0], nearest))
            break;
        const size_t count = score_fresh(insertion, nearest.node, layer);
        for (size_t i = 0; i < count; i++)
            if (carag_heap_accepts(beam, ef, linker->listed[i])) {
                carag_heap_push(candidates, CARAG_NEAREST_ON_TOP, linker->listed[i]);
                carag_heap_keep(beam, ef, linker->listed[i]);
            }
    }
    carag_visited_clear(&insertion->visited);
    carag_heap_sort(beam);
}

/* ---------------------------------------------------------------- the spanning tree */

/* How many links a row has, and how many of them are pinned. */
static uint32_t degree(const carag_graph *graph, uint32_t row, uint32_t layer, uint32_t *out_pinned)
{
    const uint32_t limit = carag_graph_limit(graph, layer);
    const _Atomic(uint32_t) *links = carag_graph_links(graph, row, layer);
    uint32_t count = 0;
    *out_pinned = 0;
    for (; count < limit; count++) {
        const uint32_t other = atomic_load_explicit(&links[count], memory_order_relaxed);
        if (other == CARAG_NONE)
            break;
        *out_pinned += carag_graph_is_pinned(graph, row, other, layer);
    }
    return count;
}

static bool has_room_for_child(const carag_graph *graph, uint32_t row, uint32_t layer)
{
    uint32_t pinned;
    degree(graph, row, layer, &pinned);
    return pinned < carag_graph_max_pinned(graph, layer);
}

/* Put the parent among the candidates, nearest first: the nearest of them with room for a child; else, in
 * place of the last, the row before on this layer, which has no child yet and so has room. */
static uint32_t choose_parent(carag_linker *linker, uint32_t row, uint32_t layer, carag_near *candidates,
                              size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (has_room_for_child(linker->graph, candidates[i].node, layer))
            return candidates[i].node;
    uint32_t before = row - 1;
    while (linker->graph->levels[before] < layer)
        before--;
    carag_linker_score(linker, &before, 1, &candidates[count - 1]);
    carag_sort_nears(linker->keys, candidates, count);
    return before;
}

/* ---------------------------------------------------------------- linking */

/* Add the link `from` -> `to.node`; a full list is chosen again from its links and the new one. */
static void link_back(carag_linker *linker, uint32_t from, carag_near to, uint32_t layer)
{
    const carag_graph *graph = linker->graph;
    const uint32_t limit = carag_graph_limit(graph, layer);
    _Atomic(uint32_t) *links = carag_graph_links(graph, from, layer);
    uint32_t pinned;
    const uint32_t have = degree(graph, from, layer, &pinned);
    if (have < limit) {
        atomic_store_explicit(&links[have], to.node, memory_order_release);
        return;
    }
    carag_near *all = linker->listed;
    for (uint32_t i = 0; i < have; i++)
        linker->rows[i] = atomic_load_explicit(&links[i], memory_order_relaxed);
    carag_linker_aim(linker, from);
    carag_linker_score(linker, linker->rows, have, all);
    all[have] = to;
    carag_sort_nears(linker->keys, all, (size_t)have + 1);
    for (uint32_t i = 0; i <= have; i++)
        linker->kept[i] = carag_is_kept(graph, from, all[i].node, layer);
    const uint32_t count = carag_select_neighbors(linker, all, (size_t)have + 1, limit, linker->chosen);
    carag_store_links(linker->graph, from, layer, linker->chosen, count);
}

/* Link a row into one layer from the candidates in insertion->beam, nearest first, at least one; the aim is
 * the row. It chooses M neighbours even on layer 0, as in the paper: the other half of the slots is for
 * those to come. */
static void connect_row(carag_insertion *insertion, uint32_t row, uint32_t layer)
{
    carag_linker *linker = &insertion->linker;
    carag_graph *graph = linker->graph;
    carag_near *found = insertion->beam.items;
    const size_t count = insertion->beam.count;
    const uint32_t parent = choose_parent(linker, row, layer, found, count);
    *carag_graph_parent(graph, row, layer) = parent;
    for (size_t i = 0; i < count; i++)
        linker->kept[i] = found[i].node == parent;
    /* linker->chosen is reused by link_back: keep the chosen where the candidates were. */
    const uint32_t chosen = carag_select_neighbors(linker, found, count, graph->M, linker->chosen);
    for (uint32_t i = 0; i < chosen; i++)
        found[i] = linker->chosen[i];
    carag_store_links(graph, row, layer, found, chosen);
    for (uint32_t i = 0; i < chosen; i++)
        link_back(linker, found[i].node, (carag_near){found[i].similarity, row}, layer);
}

static void begin_layer(carag_graph *graph, uint32_t row, uint32_t layer)
{
    *carag_graph_parent(graph, row, layer) = CARAG_NONE;
    carag_store_links(graph, row, layer, NULL, 0);
}

/* Algorithm 1. The row's code, key, level and upper slots are in place. */
void carag_hnsw_insert(carag_insertion *insertion, uint32_t row)
{
    carag_linker *linker = &insertion->linker;
    carag_graph *graph = linker->graph;
    const uint32_t level = graph->levels[row];
    const uint32_t entry_point = atomic_load_explicit(&graph->entry_point, memory_order_relaxed);
    const uint32_t max_level = entry_point == CARAG_NONE ? 0 : graph->levels[entry_point];
    const uint32_t begun = entry_point == CARAG_NONE ? 0 : max_level + 1; /* layers there were before */
    for (uint32_t layer = level + 1; layer > begun; layer--)
        begin_layer(graph, row, layer - 1);
    if (entry_point != CARAG_NONE) {
        carag_near nearest;
        carag_linker_aim(linker, row);
        carag_linker_score(linker, &entry_point, 1, &nearest);
        for (uint32_t layer = max_level; layer > level; layer--)
            nearest = walk(insertion, nearest, layer);
        for (uint32_t above = level < max_level ? level + 1 : begun; above > 0; above--) {
            carag_linker_aim(linker, row); /* linking moved it */
            search_layer(insertion, nearest, insertion->ef_construction, above - 1);
            nearest = insertion->beam.items[0];
            connect_row(insertion, row, above - 1);
        }
    }
    if (entry_point == CARAG_NONE || level > max_level)
        atomic_store_explicit(&graph->entry_point, row, memory_order_release);
}

/* ---------------------------------------------------------------- working memory */

/* Working memory for inserting rows below `capacity` one after another; NULL when out of memory. */
carag_insertion *carag_insertion_new(carag_graph *graph, const carag_codes *codes, const int64_t *keys,
                                     uint32_t capacity, uint32_t ef_construction)
{
    const size_t words = (size_t)capacity / 64 + 1;
    const size_t links = (size_t)graph->M0 + 1;
    carag_insertion *insertion = carag_allocate_zeroed(1, sizeof *insertion);
    if (!insertion)
        return NULL;
    insertion->ef_construction = ef_construction < capacity ? ef_construction : capacity;
    const size_t room = insertion->ef_construction > links ? insertion->ef_construction : links;
    insertion->visited.bits = carag_allocate_zeroed(words, sizeof *insertion->visited.bits);
    insertion->visited.touched = carag_allocate(words, sizeof *insertion->visited.touched);
    insertion->candidates = (carag_heap){.items = carag_allocate(capacity, sizeof(carag_near)), .keys = keys};
    insertion->beam = (carag_heap){.items = carag_allocate(room, sizeof(carag_near)), .keys = keys};
    if (!carag_linker_init(&insertion->linker, graph, codes, keys, room) || !insertion->visited.bits ||
        !insertion->visited.touched || !insertion->candidates.items || !insertion->beam.items) {
        carag_insertion_free(insertion);
        return NULL;
    }
    return insertion;
}

void carag_insertion_free(carag_insertion *insertion)
{
    if (!insertion)
        return;
    carag_linker_destroy(&insertion->linker);
    carag_release(insertion->visited.bits);
    carag_release(insertion->visited.touched);
    carag_release(insertion->candidates.items);
    carag_release(insertion->beam.items);
    carag_release(insertion);
}
