/* row/view.c - make, share, publish and release the arrays of an index while others read them.
 *
 * How a view is replaced: the writer makes another, which may share arrays with the present one; publishes it; waits
 * until every reader that entered before has left; and releases the arrays that only the old one held.
 */
#include "carag_internal.h"
#include "code/code.h"
#include "row/row.h"

#include <sched.h>
#include <string.h>

/* ---------------------------------------------------------------- views */

/* A view with room for `capacity` rows, nothing in it; NULL when out of memory. */
carag_view *carag_view_new(const carag_index *index, uint32_t capacity, uint32_t upper_capacity)
{
    const size_t stride8 = ((size_t)index->params.dim + CARAG_CODE_BLOCK - 1) / CARAG_CODE_BLOCK * CARAG_CODE_BLOCK;
    carag_view *view = carag_allocate_zeroed(1, sizeof *view);
    if (!view)
        return NULL;
    view->capacity = capacity;
    view->costs.ef = CARAG_DEFAULT_EF_SEARCH;
    if (index->vector_bytes)
        view->vectors = carag_allocate_aligned(capacity, index->vector_bytes);
    view->words = carag_allocate_aligned(capacity, sizeof *view->words);
    view->terms = carag_allocate_aligned(capacity, sizeof *view->terms);
    view->keys = carag_allocate_aligned(capacity, sizeof *view->keys);
    view->codes.stride = stride8;
    view->codes.bytes = carag_allocate_aligned(capacity, stride8);
    view->codes.scales = carag_allocate_aligned(capacity, sizeof(float));
    view->codes.errors = carag_allocate_aligned(capacity, sizeof(float));
    view->graph.levels = carag_allocate_aligned(capacity, 1);
    view->graph.upper_first = carag_allocate_aligned(capacity, sizeof(uint32_t));
    const bool has_columns = (view->vectors || !index->vector_bytes) && view->words && view->terms && view->keys &&
                             view->codes.bytes && view->codes.scales && view->codes.errors && view->graph.levels &&
                             view->graph.upper_first;
    if (!has_columns || carag_view_new_bits(index, view) != CARAG_OK ||
        carag_view_new_graph(index, view, upper_capacity) != CARAG_OK) {
        carag_view_free(index, view, NULL);
        return NULL;
    }
    return view;
}

/* Give a view one-bit codes of its own, empty; on failure it has none. */
carag_status carag_view_new_bits(const carag_index *index, carag_view *view)
{
    const size_t words = carag_bits_words(index->params.dim);
    view->bits = (carag_bits){
        .packs = carag_allocate_aligned(carag_packs(view->capacity), carag_pack_bytes(8 * words)),
        .words = words,
        .centre = carag_allocate_aligned(64 * words, sizeof(float)),
        .signs = carag_allocate_aligned(carag_rotation_floats(words), sizeof(float)),
    };
    if (!view->bits.packs || !view->bits.centre || !view->bits.signs)
        return CARAG_NO_MEMORY;
    memset(view->bits.centre, 0, 64 * words * sizeof(float));
    carag_rotation_init(view->bits.signs, words);
    return CARAG_OK;
}

/* Give a view links of its own, empty; levels and upper_first stay. */
carag_status carag_view_new_graph(const carag_index *index, carag_view *view, uint32_t upper_capacity)
{
    carag_graph *graph = &view->graph;
    graph->M = index->params.M;
    graph->M0 = index->M0;
    graph->links = carag_allocate_aligned(view->capacity, index->M0 * sizeof *graph->links);
    graph->parents = carag_allocate_aligned(view->capacity, sizeof *graph->parents);
    graph->upper_links = carag_allocate_aligned(upper_capacity, index->params.M * sizeof *graph->upper_links);
    graph->upper_parents = carag_allocate_aligned(upper_capacity, sizeof *graph->upper_parents);
    graph->upper_capacity = upper_capacity;
    atomic_init(&graph->entry_point, CARAG_NONE);
    return graph->links && graph->parents && graph->upper_links && graph->upper_parents ? CARAG_OK : CARAG_NO_MEMORY;
}

/* Another view of the same arrays, but without a catalog and what is sorted by it; NULL when out of memory. */
carag_view *carag_view_share(const carag_view *view)
{
    carag_view *other = carag_allocate(1, sizeof *other);
    if (!other)
        return NULL;
    *other = *view;
    other->catalog = NULL;
    other->sorted = NULL;
    return other;
}

static void release_array(const carag_index *index, const void *array, const void *shared)
{
    const unsigned char *at = array;
    const bool is_mapped = index->mapping && at >= index->mapping && at < index->mapping + index->mapping_size;
    if (array && array != shared && !is_mapped)
        carag_release_aligned((void *)(uintptr_t)array);
}

/* Release a view and its arrays, but not those that `heir` (may be NULL) shares. */
void carag_view_free(const carag_index *index, carag_view *view, const carag_view *successor)
{
    static const carag_view nothing;
    if (!view)
        return;
    if (!successor)
        successor = &nothing;
    release_array(index, view->vectors, successor->vectors);
    release_array(index, (const void *)view->words, (const void *)successor->words);
    release_array(index, view->terms, successor->terms);
    release_array(index, view->keys, successor->keys);
    release_array(index, view->codes.bytes, successor->codes.bytes);
    release_array(index, view->codes.scales, successor->codes.scales);
    release_array(index, view->codes.errors, successor->codes.errors);
    release_array(index, view->bits.packs, successor->bits.packs);
    release_array(index, view->bits.centre, successor->bits.centre);
    release_array(index, view->bits.signs, successor->bits.signs);
    release_array(index, (const void *)view->graph.links, (const void *)successor->graph.links);
    release_array(index, view->graph.parents, successor->graph.parents);
    release_array(index, view->graph.levels, successor->graph.levels);
    release_array(index, view->graph.upper_first, successor->graph.upper_first);
    release_array(index, (const void *)view->graph.upper_links, (const void *)successor->graph.upper_links);
    release_array(index, view->graph.upper_parents, successor->graph.upper_parents);
    if (view->catalog != successor->catalog)
        carag_catalog_free(view->catalog);
    if (view->cells != successor->cells)
        carag_cells_free(view->cells);
    if (view->sorted != successor->sorted)
        carag_sorted_free(view->sorted);
    carag_release(view);
}

/* ---------------------------------------------------------------- readers */

carag_reader carag_read_begin(carag_index *index)
{
    for (;;) {
        const uint32_t side = atomic_load(&index->side);
        atomic_fetch_add(&index->readers[side], 1);
        if (atomic_load(&index->side) == side) {
            const carag_view *view = atomic_load(&index->view);
            return (carag_reader){index, view, atomic_load_explicit(&view->rows, memory_order_acquire), side};
        }
        atomic_fetch_sub(&index->readers[side], 1); /* a writer turned the side between the two lines */
    }
}

void carag_read_end(const carag_reader *reader)
{
    atomic_fetch_sub(&reader->index->readers[reader->side], 1);
}

/* Make `view` the one that readers find, and release what only its predecessor held. For the writer. The generation
 * changes before, for readers of the old view, and after, for readers that began in between. */
void carag_publish(carag_index *index, carag_view *view)
{
    atomic_fetch_add(&index->generation, 2);
    carag_view *before = atomic_exchange(&index->view, view);
    const uint32_t side = atomic_load(&index->side);
    atomic_store(&index->side, 1 - side);
    while (atomic_load(&index->readers[side]) > 0)
        sched_yield();
    atomic_fetch_add(&index->generation, 2);
    carag_view_free(index, before, view);
}
