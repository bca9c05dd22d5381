/* hnsw/build.c - link many rows into the graph at once.
 *
 * Inserting rows one by one searches the growing graph for every row: hundreds of thousands of dependent
 * fetches and, on several threads, a graph that depends on their timing. Here nothing is searched. Layer by
 * layer, from the top:
 *
 *   1. Candidates: near rows of every row, from matrix products inside overlapping leaves
 *      (hnsw/candidates.c), and the leaders of those leaves, which are farther off.
 *   2. Forward links: Algorithm 4 (hnsw/link.c) on the nearest candidates of each row, up to the degree
 *      limit.
 *   3. The tree: in row order every row takes as parent the nearest earlier candidate with room for a child.
 *      The few thousand first rows have no earlier candidate; they are compared with earlier rows directly.
 *   4. Both directions: a row is offered its forward links and all rows that chose it. When they fit they are
 *      all kept; else Algorithm 4 chooses again, keeping tree links and, on layer 0, the row's links of layer
 *      1.
 *
 * Steps 1, 2 and 4 run on all threads and write only what belongs to one row, from integer products and total
 * orders: the graph is the same for any number of threads and any kernel. Step 3 is one pass in row order, so
 * it may look at what earlier rows did. Rejected: prefix-doubling batches searched against the frozen graph
 * (the searches are what costs), and a second round on neighbours of neighbours (dearer than more leaves, and
 * worse).
 *
 * Forward links stand in the row's own link slots, as positions, until step 4 puts the links there; candidates are found
 * and used in stripes of rows (hnsw/candidates.c). Memory in addition to the graph: about 130 bytes a row, then 110 and
 * 4 for each forward link; besides, 4 ef_construction bytes for each row of a stripe, and buffers per thread.
 */
#include "carag_internal.h"
#include "hnsw/hnsw.h"
#include "hnsw/candidates.h"
#include "hnsw/link.h"
#include "parallel.h"
#include "visited.h"

#include <string.h>

#define EARLIER 8         /* nearest earlier rows that a row remembers as possible parents */
#define CHUNK 256         /* rows scored in one call of the kernel */
#define MAX_COMPARED 4096 /* earlier rows up to which all are compared in the search for a parent */
#define SAMPLED 256       /* earlier rows compared in the search for a parent where there are more than MAX_COMPARED */

/* Working memory of one thread. */
typedef struct builder {
    carag_linker linker;
    carag_visited visited;
    uint32_t *gathered; /* [room] */
    uint32_t *forward;  /* [limit + 1] */
} builder;

/* One layer being linked. Everything counts positions in the layer's rows. */
typedef struct layer_build {
    carag_graph *graph;
    const carag_codes *codes;
    const int64_t *keys;
    uint32_t layer;
    uint32_t limit; /* links of a row */
    uint32_t threads;
    size_t nearest; /* candidates that go into Algorithm 4, kept ones aside */
    size_t room;    /* of a list */
    carag_cover cover;
    builder *builders;     /* [threads] */
    uint16_t *pinned;      /* [count] pinned links so far */
    uint32_t *earlier;     /* [count * EARLIER] nearest earlier rows, CARAG_NONE after the last */
    size_t *reverse_ends;  /* [count + 1] */
    uint32_t *reverse;     /* who chose a row, by chosen, then chooser */
} layer_build;

static uint32_t row_at(const layer_build *build, uint32_t position)
{
    return carag_cover_row(&build->cover, position);
}

static uint32_t position_of(const layer_build *build, uint32_t row)
{
    const uint32_t *rows = build->cover.rows;
    if (!rows)
        return row;
    uint32_t low = 0;
    uint32_t high = build->cover.count - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (rows[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The positions of a row's forward links, its parent's among them, which it need not have chosen; at most limit + 1. */
static uint32_t forward_links(const layer_build *build, uint32_t position, uint32_t *out)
{
    const uint32_t row = row_at(build, position);
    const _Atomic(uint32_t) *links = carag_graph_links(build->graph, row, build->layer);
    uint32_t count = 0;
    for (; count < build->limit; count++) {
        out[count] = atomic_load_explicit(&links[count], memory_order_relaxed);
        if (out[count] == CARAG_NONE)
            break;
    }
    if (position == 0)
        return count;
    const uint32_t parent = position_of(build, *carag_graph_parent(build->graph, row, build->layer));
    for (uint32_t i = 0; i < count; i++)
        if (out[i] == parent)
            return count;
    out[count] = parent;
    return count + 1;
}

/* Act on the rows of a leaf, or of a part of it, that are nearest to its leader. All rows are met once, neighbours
 * after each other, so what one row fetched the next finds in the cache. */
static void for_rows_of_leaf(const layer_build *build, carag_leaf leaf, uint32_t worker,
                             void (*act)(const layer_build *, builder *, uint32_t))
{
    const carag_cover *cover = &build->cover;
    for (size_t i = leaf.begin; i < leaf.end; i++) {
        const uint32_t position = cover->members[i];
        if (cover->nearest[(size_t)position * cover->fanout] == leaf.group)
            act(build, &build->builders[worker], position);
    }
}

/* ---------------------------------------------------------------- forward links */

static size_t add_unvisited(builder *mine, size_t count, uint32_t row)
{
    if (!carag_visited_insert(&mine->visited, row))
        return count;
    mine->gathered[count] = row;
    return count + 1;
}

/* What the leaves found, and their leaders. */
static size_t gather_candidates(const layer_build *build, builder *mine, uint32_t position)
{
    const carag_cover *cover = &build->cover;
    const uint32_t *near = carag_cover_slots(cover, position);
    const uint32_t *groups = cover->nearest + (size_t)position * cover->fanout;
    size_t count = 0;
    carag_visited_insert(&mine->visited, row_at(build, position));
    for (uint32_t j = 0; j < cover->fanout; j++, near += cover->per_leaf) {
        for (uint32_t i = 0; i < cover->per_leaf && near[i] != CARAG_NONE; i++)
            count = add_unvisited(mine, count, row_at(build, near[i]));
        count = add_unvisited(mine, count, row_at(build, cover->leaders[groups[j]]));
    }
    carag_visited_clear(&mine->visited);
    return count;
}

static void choose_forward(const layer_build *build, builder *mine, uint32_t position)
{
    carag_linker *linker = &mine->linker;
    carag_near *listed = linker->listed;
    const uint32_t row = row_at(build, position);
    size_t count = gather_candidates(build, mine, position);
    carag_linker_aim(linker, row);
    carag_linker_score(linker, mine->gathered, count, listed);
    carag_keep_nearest(build->keys, listed, count, build->nearest);
    count = count < build->nearest ? count : build->nearest;
    carag_sort_nears(build->keys, listed, count);

    uint32_t *earlier = build->earlier + (size_t)position * EARLIER;
    uint32_t found = 0;
    for (size_t i = 0; i < count && found < EARLIER; i++)
        if (listed[i].node < row)
            earlier[found++] = position_of(build, listed[i].node);
    while (found < EARLIER)
        earlier[found++] = CARAG_NONE;

    memset(linker->kept, 0, count * sizeof *linker->kept);
    const uint32_t chosen = carag_select_neighbors(linker, listed, count, build->limit, linker->chosen);
    for (uint32_t i = 0; i < chosen; i++)
        linker->chosen[i].node = position_of(build, linker->chosen[i].node);
    carag_store_links(build->graph, row, build->layer, linker->chosen, chosen);
}

static void choose_forward_of_leaf(void *context, size_t item, uint32_t worker)
{
    const layer_build *build = context;
    const carag_leaf leaf = build->cover.leaves[item];
    for_rows_of_leaf(build, carag_cover_part(&build->cover, leaf), worker, choose_forward);
}

/* ---------------------------------------------------------------- the tree */

/* The nearest of some earlier rows that have room for a child: of all while they are few, then of a
 * sample. The row before has no child yet, and so has room in any case. */
static uint32_t search_parent(const layer_build *build, uint32_t position, uint32_t limit)
{
    builder *mine = &build->builders[0];
    const uint32_t wanted = position <= MAX_COMPARED ? position : SAMPLED;
    carag_linker_aim(&mine->linker, row_at(build, position));
    const uint32_t before = row_at(build, position - 1);
    carag_near best = {0};
    carag_linker_score(&mine->linker, &before, 1, &best);
    for (uint32_t from = 0; from < wanted;) {
        size_t count = 0;
        for (; from < wanted && count < CHUNK; from++) {
            const uint32_t other = (uint32_t)((uint64_t)position * from / wanted);
            if (build->pinned[other] < limit)
                mine->gathered[count++] = row_at(build, other);
        }
        carag_linker_score(&mine->linker, mine->gathered, count, mine->linker.listed);
        for (size_t i = 0; i < count; i++)
            if (carag_is_nearer(build->keys, mine->linker.listed[i], best))
                best = mine->linker.listed[i];
    }
    return position_of(build, best.node);
}

static uint32_t choose_parent(const layer_build *build, uint32_t position, uint32_t limit)
{
    const uint32_t *earlier = build->earlier + (size_t)position * EARLIER;
    for (uint32_t i = 0; i < EARLIER && earlier[i] != CARAG_NONE; i++)
        if (build->pinned[earlier[i]] < limit)
            return earlier[i];
    return search_parent(build, position, limit);
}

/* Give every row but the first its parent. */
static void build_tree(const layer_build *build)
{
    const uint32_t limit = carag_graph_max_pinned(build->graph, build->layer);
    *carag_graph_parent(build->graph, row_at(build, 0), build->layer) = CARAG_NONE;
    for (uint32_t position = 1; position < build->cover.count; position++) {
        const uint32_t parent = choose_parent(build, position, limit);
        build->pinned[position]++;
        build->pinned[parent]++;
        *carag_graph_parent(build->graph, row_at(build, position), build->layer) = row_at(build, parent);
    }
}

/* ---------------------------------------------------------------- both directions */

/* Sort the forward links by their ends; false when out of memory. */
static bool reverse_links(layer_build *build)
{
    const uint32_t count = build->cover.count;
    uint32_t *forward = build->builders[0].forward;
    size_t *ends = build->reverse_ends = carag_allocate_zeroed((size_t)count + 1, sizeof *ends);
    if (!ends)
        return false;
    for (uint32_t position = 0; position < count; position++)
        for (uint32_t i = forward_links(build, position, forward); i-- > 0;)
            ends[forward[i] + 1]++;
    for (uint32_t position = 0; position < count; position++)
        ends[position + 1] += ends[position];
    uint32_t *reverse = build->reverse = carag_allocate(ends[count], sizeof *reverse);
    if (!reverse)
        return false;
    for (uint32_t position = 0; position < count; position++)
        for (uint32_t i = forward_links(build, position, forward); i-- > 0;)
            reverse[ends[forward[i]]++] = position;
    return true;
}

/* The rows offered to a row: those to be kept first, then others, the nearest when there are too many. */
typedef struct offers {
    carag_near *items; /* [room] */
    size_t kept;
    size_t count;
} offers;

static void trim(const layer_build *build, offers *list)
{
    const size_t others = list->count - list->kept;
    if (others <= build->nearest)
        return;
    carag_keep_nearest(build->keys, list->items + list->kept, others, build->nearest);
    list->count = list->kept + build->nearest;
}

static void offer(const layer_build *build, builder *mine, uint32_t row, size_t count, offers *list)
{
    carag_near scored[CHUNK];
    carag_linker_score(&mine->linker, mine->gathered, count, scored);
    for (size_t i = 0; i < count; i++) {
        if (list->count == build->room)
            trim(build, list);
        list->items[list->count++] = scored[i];
        if (carag_is_kept(build->graph, row, scored[i].node, build->layer)) {
            list->items[list->count - 1] = list->items[list->kept];
            list->items[list->kept++] = scored[i];
        }
    }
}

/* Gather all that want to be linked to a row: its links of layer 1 when this is layer 0, its forward
 * links, and the rows that chose it. */
static void gather_offers(const layer_build *build, builder *mine, uint32_t position, offers *list)
{
    const uint32_t row = row_at(build, position);
    const bool is_above = build->layer == 0 && build->graph->levels[row] > 0;
    const _Atomic(uint32_t) *above = is_above ? carag_graph_links(build->graph, row, 1) : NULL;
    const size_t from_above = is_above ? build->graph->M : 0;
    const size_t from_forward = from_above + forward_links(build, position, mine->forward);
    const size_t begin = position == 0 ? 0 : build->reverse_ends[position - 1];
    const size_t all = from_forward + build->reverse_ends[position] - begin;
    size_t count = 0;
    for (size_t i = 0; i < all; i++) {
        const uint32_t other =
            i < from_above     ? atomic_load_explicit(&above[i], memory_order_relaxed)
            : i < from_forward ? row_at(build, mine->forward[i - from_above])
                               : row_at(build, build->reverse[begin + i - from_forward]);
        if (other != CARAG_NONE)
            count = add_unvisited(mine, count, other);
        if (count == CHUNK) {
            offer(build, mine, row, count, list);
            count = 0;
        }
    }
    offer(build, mine, row, count, list);
    carag_visited_clear(&mine->visited);
}

static void link_row(const layer_build *build, builder *mine, uint32_t position)
{
    carag_linker *linker = &mine->linker;
    const uint32_t row = row_at(build, position);
    offers list = {.items = linker->listed};
    carag_linker_aim(linker, row);
    gather_offers(build, mine, position, &list);
    trim(build, &list);
    carag_sort_nears(build->keys, list.items, list.count);
    const carag_near *links = list.items;
    uint32_t count = (uint32_t)list.count;
    if (count > build->limit) {
        for (uint32_t i = 0; i < count; i++)
            linker->kept[i] = carag_is_kept(build->graph, row, list.items[i].node, build->layer);
        count = carag_select_neighbors(linker, list.items, count, build->limit, linker->chosen);
        links = linker->chosen;
    }
    carag_store_links(build->graph, row, build->layer, links, count);
}

static void link_rows_of_leaf(void *context, size_t item, uint32_t worker)
{
    const layer_build *build = context;
    for_rows_of_leaf(build, build->cover.leaves[item], worker, link_row);
}

/* ---------------------------------------------------------------- layers */

static bool builders_init(layer_build *build)
{
    const size_t words = (size_t)row_at(build, build->cover.count - 1) / 64 + 1;
    build->builders = carag_allocate_zeroed(build->threads, sizeof *build->builders);
    if (!build->builders)
        return false;
    for (uint32_t i = 0; i < build->threads; i++) {
        builder *mine = &build->builders[i];
        mine->visited.bits = carag_allocate_zeroed(words, sizeof *mine->visited.bits);
        mine->visited.touched = carag_allocate(words, sizeof *mine->visited.touched);
        mine->gathered = carag_allocate(build->room, sizeof *mine->gathered);
        mine->forward = carag_allocate((size_t)build->limit + 1, sizeof *mine->forward);
        if (!mine->visited.bits || !mine->visited.touched || !mine->gathered || !mine->forward ||
            !carag_linker_init(&mine->linker, build->graph, build->codes, build->keys, build->room))
            return false;
    }
    return true;
}

static void layer_build_destroy(layer_build *build)
{
    for (uint32_t i = 0; build->builders && i < build->threads; i++) {
        carag_linker_destroy(&build->builders[i].linker);
        carag_release(build->builders[i].visited.bits);
        carag_release(build->builders[i].visited.touched);
        carag_release(build->builders[i].gathered);
        carag_release(build->builders[i].forward);
    }
    carag_release(build->builders);
    carag_release(build->pinned);
    carag_release(build->earlier);
    carag_release(build->reverse_ends);
    carag_release(build->reverse);
    carag_cover_destroy(&build->cover);
}

/* The forward links of all rows, and their nearest earlier rows. */
static carag_status choose_all_forward(layer_build *build)
{
    for (;;) {
        bool more;
        const carag_status status = carag_cover_next(&build->cover, build->threads, &more);
        if (status != CARAG_OK || !more)
            return status;
        carag_parallel(build->threads, build->cover.leaf_count, choose_forward_of_leaf, build);
    }
}

/* Link the rows of a layer, ascending (NULL: rows 0 .. count - 1), count > 0. */
static carag_status link_layer(layer_build *build, const uint32_t *rows, uint32_t count,
                               uint32_t ef_construction, uint64_t seed)
{
    build->limit = carag_graph_limit(build->graph, build->layer);
    /* However small ef_construction is, a row chooses from more than it has room for. */
    const uint32_t least = build->limit + 2 + EARLIER;
    const uint32_t wanted = ef_construction < CARAG_MAX_LEAF_ROWS ? ef_construction : CARAG_MAX_LEAF_ROWS;
    const uint32_t candidates = wanted < least ? least : wanted;
    carag_status status =
        carag_cover_init(&build->cover, build->codes, rows, count, candidates, seed, build->threads);
    if (status != CARAG_OK)
        goto done;
    status = CARAG_NO_MEMORY;
    build->nearest = (size_t)candidates * 2 / 3;
    build->room = (size_t)build->cover.fanout * (build->cover.per_leaf + 1) + build->graph->M0 + CHUNK;
    build->pinned = carag_allocate_zeroed(count, sizeof *build->pinned);
    build->earlier = carag_allocate(count, EARLIER * sizeof *build->earlier);
    if (!build->pinned || !build->earlier || !builders_init(build))
        goto done;
    status = choose_all_forward(build);
    if (status != CARAG_OK)
        goto done;
    build_tree(build);
    carag_release(build->earlier);
    build->earlier = NULL;
    status = CARAG_NO_MEMORY;
    if (!reverse_links(build))
        goto done;
    carag_parallel(build->threads, build->cover.leaf_count, link_rows_of_leaf, build);
    status = CARAG_OK;
done:
    layer_build_destroy(build);
    return status;
}

/* The rows of a layer, ascending; NULL when out of memory. */
static uint32_t *rows_of_layer(const carag_graph *graph, uint32_t rows, uint32_t layer, uint32_t *out_count)
{
    uint32_t count = 0;
    for (uint32_t row = 0; row < rows; row++)
        count += graph->levels[row] >= layer;
    uint32_t *members = carag_allocate(count, sizeof *members);
    if (!members)
        return NULL;
    *out_count = count;
    for (uint32_t row = rows; row-- > 0;)
        if (graph->levels[row] >= layer)
            members[--count] = row;
    return members;
}

carag_status carag_hnsw_build(carag_graph *graph, const carag_codes *codes, const int64_t *keys,
                              uint32_t rows, uint32_t ef_construction, uint64_t seed, uint32_t threads)
{
    uint32_t entry_point = rows > 0 ? 0 : CARAG_NONE;
    for (uint32_t row = 1; row < rows; row++)
        if (graph->levels[row] > graph->levels[entry_point])
            entry_point = row;
    carag_status status = CARAG_OK;
    for (uint32_t above = rows > 0 ? graph->levels[entry_point] + 1U : 0; above > 0; above--) {
        const uint32_t layer = above - 1;
        layer_build build = {.graph = graph, .codes = codes, .keys = keys, .layer = layer};
        build.threads = threads > 0 ? threads : 1;
        uint32_t count = rows;
        uint32_t *members = layer > 0 ? rows_of_layer(graph, rows, layer, &count) : NULL;
        status = layer > 0 && !members ? CARAG_NO_MEMORY
                                       : link_layer(&build, members, count, ef_construction, seed + layer);
        carag_release(members);
        if (status != CARAG_OK)
            return status;
    }
    atomic_store_explicit(&graph->entry_point, entry_point, memory_order_release);
    return CARAG_OK;
}
