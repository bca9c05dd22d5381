/* write/complete.c - make a view of rows that are there already: take them over, and make all that follows from them. */
#include "carag_internal.h"
#include "code/code.h"
#include "hnsw/hnsw.h"
#include "row/row.h"
#include "write/write.h"

#include <string.h>

/* Rows first .. first + count - 1 of one view become some rows of another, to the last bit; links, levels and one-bit
 * codes aside, which belong to a view. */
void carag_take_rows(const carag_index *index, carag_view *to, uint32_t first, const carag_view *from,
                     const uint32_t *rows, size_t count)
{
    const size_t bytes = index->vector_bytes;
    const size_t stride = to->codes.stride;
    for (size_t i = 0; i < count; i++) {
        const size_t row = first + i;
        const size_t old = rows[i];
        if (bytes)
            memcpy((char *)to->vectors + row * bytes, (const char *)from->vectors + old * bytes, bytes);
        memcpy(to->codes.bytes + row * stride, from->codes.bytes + old * stride, stride);
        to->codes.scales[row] = from->codes.scales[old];
        to->codes.errors[row] = from->codes.errors[old];
        to->terms[row] = from->terms[old];
        to->keys[row] = from->keys[old];
        atomic_init(&to->words[row], atomic_load_explicit(&from->words[old], memory_order_relaxed));
    }
}

/* Levels, classes, cells, one-bit codes and graph of `rows` rows, for which the view has exactly room. */
carag_status carag_complete(const carag_index *index, carag_view *view, uint32_t rows, uint32_t threads)
{
    const carag_params *params = &index->params;
    atomic_init(&view->rows, rows);
    carag_draw_levels(params, &view->graph, 0, rows);
    view->graph.upper_count = view->graph.upper_capacity;
    view->catalog = carag_catalog_new(view->words, view->terms, rows, view->capacity, 0, 0);
    if (!view->catalog)
        return CARAG_NO_MEMORY;
    if (rows == 0)
        return CARAG_OK;
    carag_status status = carag_cells_new(&view->codes, rows, threads, &view->cells);
    if (status == CARAG_OK)
        status = carag_bits_encode(index, view, 0, rows, threads);
    if (status != CARAG_OK)
        return status;
    return carag_hnsw_build(&view->graph, &view->codes, view->keys, rows, params->ef_construction, params->seed,
                            threads);
}
