/* index.c - the life of an index: making it, its views and their readers, looking rows up.
 *
 * How a view is replaced: the writer makes another, which may share arrays with the present one; publishes it; waits
 * until every reader that entered before has left; and releases the arrays that only the old one held.
 */
#include "carag_internal.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#define FLOATS_PER_LINE 16

/* ---------------------------------------------------------------- making */

carag_status carag_params_verify(const carag_params *params, carag_fault *out_fault)
{
    if (params->dim < 1 || params->dim > CARAG_MAX_DIM)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "dim must be 1 to 65536");
    if (params->M < CARAG_MIN_M || params->M > CARAG_MAX_M)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "M must be 2 to 256");
    if (params->ef_construction < 1 || params->ef_construction > CARAG_MAX_EF)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "ef_construction must be 1 to 1048576");
    if ((unsigned)params->dtype > CARAG_INT8)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "dtype must be float32, float16 or int8");
    return CARAG_OK;
}

static size_t bytes_per_number(carag_dtype dtype)
{
    return dtype == CARAG_FLOAT32 ? sizeof(float) : dtype == CARAG_FLOAT16 ? sizeof(uint16_t) : 0;
}

carag_status carag_index_new(const carag_params *params, carag_index **out_index, carag_fault *out_fault)
{
    const carag_kernel *kernel;
    carag_status status = carag_params_verify(params, out_fault);
    if (status == CARAG_OK)
        status = carag_kernel_resolve(&kernel, out_fault);
    if (status != CARAG_OK)
        return status;
    carag_index *index = carag_allocate_zeroed(1, sizeof *index);
    if (!index)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    index->params = *params;
    index->M0 = 2 * params->M;
    index->stride = ((size_t)params->dim + FLOATS_PER_LINE - 1) / FLOATS_PER_LINE * FLOATS_PER_LINE;
    index->vector_bytes = index->stride * bytes_per_number(params->dtype);
    pthread_mutex_init(&index->writer, NULL); /* neither fails on Linux with default attributes */
    pthread_rwlock_init(&index->map_lock, NULL);
    carag_view *view = carag_view_new(index, 0, 0);
    if (view)
        view->catalog = carag_catalog_new(view->words, view->terms, 0, 0, 0, 0);
    if (!view || !view->catalog) {
        carag_view_free(index, view, NULL);
        carag_index_free(index);
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    }
    atomic_init(&index->view, view);
    *out_index = index;
    return CARAG_OK;
}

void carag_index_free(carag_index *index)
{
    if (!index)
        return;
    carag_scratches_free(index);
    carag_view_free(index, atomic_load(&index->view), NULL);
    carag_release(index->map);
    carag_release(index->sums);
    if (index->mapping)
        munmap(index->mapping, index->mapping_size);
    pthread_mutex_destroy(&index->writer);
    pthread_rwlock_destroy(&index->map_lock);
    carag_release(index);
}

/* ---------------------------------------------------------------- views */

/* A view with room for so many rows, nothing in it; NULL when out of memory. */
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
        .codes = carag_allocate_aligned(view->capacity, words * sizeof(uint64_t)),
        .words = words,
        .factors = carag_allocate_aligned(view->capacity, sizeof(carag_bits_factor)),
        .centre = carag_allocate_aligned(64 * words, sizeof(float)),
        .signs = carag_allocate_aligned(carag_rotation_floats(words), sizeof(float)),
    };
    if (!view->bits.codes || !view->bits.factors || !view->bits.centre || !view->bits.signs)
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

/* Another view of the same arrays, but without a catalog; NULL when out of memory. */
carag_view *carag_view_share(const carag_view *view)
{
    carag_view *other = carag_allocate(1, sizeof *other);
    if (!other)
        return NULL;
    *other = *view;
    other->catalog = NULL;
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
void carag_view_free(const carag_index *index, carag_view *view, const carag_view *heir)
{
    static const carag_view nothing;
    if (!view)
        return;
    if (!heir)
        heir = &nothing;
    release_array(index, view->vectors, heir->vectors);
    release_array(index, (const void *)view->words, (const void *)heir->words);
    release_array(index, view->terms, heir->terms);
    release_array(index, view->keys, heir->keys);
    release_array(index, view->codes.bytes, heir->codes.bytes);
    release_array(index, view->codes.scales, heir->codes.scales);
    release_array(index, view->codes.errors, heir->codes.errors);
    release_array(index, view->bits.codes, heir->bits.codes);
    release_array(index, view->bits.factors, heir->bits.factors);
    release_array(index, view->bits.centre, heir->bits.centre);
    release_array(index, view->bits.signs, heir->bits.signs);
    release_array(index, (const void *)view->graph.links, (const void *)heir->graph.links);
    release_array(index, view->graph.parents, heir->graph.parents);
    release_array(index, view->graph.levels, heir->graph.levels);
    release_array(index, view->graph.upper_first, heir->graph.upper_first);
    release_array(index, (const void *)view->graph.upper_links, (const void *)heir->graph.upper_links);
    release_array(index, view->graph.upper_parents, heir->graph.upper_parents);
    if (view->catalog != heir->catalog)
        carag_catalog_free(view->catalog);
    if (view->cells != heir->cells)
        carag_cells_free(view->cells);
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

/* Make `view` the one that readers find, and release what only its predecessor held. The writer's. */
void carag_publish(carag_index *index, carag_view *view)
{
    carag_view *before = atomic_exchange(&index->view, view);
    const uint32_t side = atomic_load(&index->side);
    atomic_store(&index->side, 1 - side);
    while (atomic_load(&index->readers[side]) > 0)
        sched_yield();
    carag_view_free(index, before, view);
}

/* ---------------------------------------------------------------- looking up */

void carag_index_info(carag_index *index, carag_info *out_info)
{
    const carag_reader reader = carag_read_begin(index);
    const carag_graph *graph = &reader.view->graph;
    const uint32_t entry = atomic_load_explicit(&graph->entry_point, memory_order_acquire);
    *out_info = (carag_info){.params = index->params,
                             .rows = reader.rows,
                             .live = atomic_load_explicit(&index->live, memory_order_relaxed),
                             .classes = atomic_load_explicit(&reader.view->catalog->count, memory_order_acquire),
                             .max_level = entry == CARAG_NONE ? 0 : graph->levels[entry]};
    carag_read_end(&reader);
}

static uint32_t find_row(const carag_reader *reader, int64_t key)
{
    const uint32_t row = carag_map_find(reader->index, reader->view->keys, reader->rows, key);
    return row < reader->rows ? row : CARAG_NONE; /* a row being added is not there yet */
}

carag_status carag_index_get(carag_index *index, const int64_t *keys, size_t count, const carag_columns *out_columns,
                             carag_fault *out_fault)
{
    const size_t dim = index->params.dim;
    carag_status status = carag_map_ready(index, out_fault);
    if (status != CARAG_OK)
        return status;
    pthread_rwlock_rdlock(&index->map_lock);
    const carag_reader reader = carag_read_begin(index);
    for (size_t i = 0; status == CARAG_OK && i < count; i++)
        if (find_row(&reader, keys[i]) == CARAG_NONE)
            status = carag_fail(out_fault, CARAG_UNKNOWN_KEY, i, "a key is not in the index");
    for (size_t i = 0; status == CARAG_OK && i < count; i++) {
        const uint32_t row = find_row(&reader, keys[i]);
        if (out_columns->vectors)
            carag_widen_vector(index, reader.view, row, out_columns->vectors + i * dim);
        if (out_columns->words)
            out_columns->words[i] = atomic_load_explicit(&reader.view->words[row], memory_order_acquire);
        if (out_columns->public_at)
            out_columns->public_at[i] = reader.view->terms[row].public_at;
        if (out_columns->expires_at)
            out_columns->expires_at[i] = reader.view->terms[row].expires_at;
        if (out_columns->entities)
            out_columns->entities[i] = reader.view->terms[row].entity;
    }
    carag_read_end(&reader);
    pthread_rwlock_unlock(&index->map_lock);
    return status;
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

size_t carag_index_keys(carag_index *index, int64_t *out_keys, size_t room)
{
    size_t count = 0;
    const carag_reader reader = carag_read_begin(index);
    for (uint32_t row = 0; row < reader.rows && count < room; row++)
        if (!carag_word_is_deleted(atomic_load_explicit(&reader.view->words[row], memory_order_relaxed)))
            out_keys[count++] = reader.view->keys[row];
    carag_read_end(&reader);
    if (count > 0) /* with no room, out_keys may be NULL */
        qsort(out_keys, count, sizeof *out_keys, by_value);
    return count;
}

/* The slow way, where the map cannot be made. */
static bool is_among_live(carag_index *index, int64_t key)
{
    const carag_reader reader = carag_read_begin(index);
    bool found = false;
    for (uint32_t row = 0; !found && row < reader.rows; row++)
        found = reader.view->keys[row] == key &&
                !carag_word_is_deleted(atomic_load_explicit(&reader.view->words[row], memory_order_relaxed));
    carag_read_end(&reader);
    return found;
}

int carag_index_contains(carag_index *index, int64_t key)
{
    if (carag_map_ready(index, NULL) != CARAG_OK)
        return is_among_live(index, key);
    pthread_rwlock_rdlock(&index->map_lock);
    const carag_reader reader = carag_read_begin(index);
    const bool found = find_row(&reader, key) != CARAG_NONE;
    carag_read_end(&reader);
    pthread_rwlock_unlock(&index->map_lock);
    return found;
}
