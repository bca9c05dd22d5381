/* index.c - make and release an index, and look rows up by key. */
#include "carag_internal.h"
#include "code/code.h"
#include "row/row.h"
#include "search/search.h"

#include <sys/mman.h>

#define FLOATS_PER_LINE 16 /* floats in a cache line */

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
    carag_kept_init(&index->kept);
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
    carag_kept_release(&index->kept);
    carag_view_free(index, atomic_load(&index->view), NULL);
    carag_release(index->map);
    carag_release(index->sums);
    if (index->mapping)
        munmap(index->mapping, index->mapping_size);
    pthread_mutex_destroy(&index->writer);
    pthread_rwlock_destroy(&index->map_lock);
    carag_release(index);
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
        if (out_columns->audiences)
            out_columns->audiences[i] = reader.view->terms[row].audience;
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

/* The slow way, if the map cannot be made. */
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
