/* write/refresh.c - make new classes and cells before rows are added, when too many are outside of the present ones.
 *
 * Catalog and cells never change their order once they are published: when too many rows are outside of it, the writer
 * makes others and publishes a view with them.
 */
#include "carag_internal.h"
#include "cost/cost.h"
#include "file/file.h"
#include "row/row.h"
#include "write/write.h"

#define MIN_TAIL_ROOM (CARAG_CELL_ROWS / 4) /* rows that may be in no cell, however few there are */
#define TAIL_SHARE 16                       /* 1/16 of the rows may be in no cell */

void carag_relabel_begin(carag_index *index)
{
    atomic_fetch_add_explicit(&index->generation, 1, memory_order_acq_rel);
    atomic_thread_fence(memory_order_seq_cst);
}

void carag_relabel_end(carag_index *index)
{
    atomic_fetch_add_explicit(&index->generation, 1, memory_order_release);
}

/* ---------------------------------------------------------------- the catalog */

/* Publish a catalog of these words (NULL: the present ones), to which `spare` classes can be added, in a view that
 * shares everything else. */
carag_status carag_replace_catalog(carag_index *index, const _Atomic(uint32_t) *words, uint32_t spare)
{
    carag_view *present = atomic_load(&index->view);
    const uint32_t rows = atomic_load(&present->rows);
    carag_view *view = carag_view_share(present);
    if (!view)
        return CARAG_NO_MEMORY;
    view->catalog = carag_catalog_new(words ? words : present->words, view->terms, rows, view->capacity,
                                      atomic_load(&present->catalog->count), spare);
    const bool is_whole = !carag_is_in_file(index, view->bits.packs); /* of a mapped file, codes are not read here */
    if (!view->catalog || (is_whole && carag_sort_words(view) != CARAG_OK)) {
        carag_view_free(index, view, present);
        return CARAG_NO_MEMORY;
    }
    for (uint32_t row = 0; words && row < rows; row++)
        atomic_store_explicit(&present->words[row], atomic_load_explicit(&words[row], memory_order_relaxed),
                              memory_order_release);
    carag_publish(index, view);
    return CARAG_OK;
}

/* Make sure that `classes` can be added, and that neither moved rows nor the tail slow searches down. */
carag_status carag_refresh_catalog(carag_index *index, uint32_t classes)
{
    const carag_view *view = atomic_load(&index->view);
    const carag_catalog *catalog = view->catalog;
    const uint32_t tail = atomic_load(&view->rows) - catalog->rows;
    const uint32_t count = atomic_load(&catalog->count);
    if (tail <= carag_catalog_slack(catalog->rows) && catalog->capacity - count >= classes)
        return CARAG_OK;
    return carag_replace_catalog(index, NULL, classes);
}

/* ---------------------------------------------------------------- the cells */

/* Before rows are added: see that few enough are in no cell. The writer's; publishes a view when it makes others, with
 * one-bit codes about them. An index that grew by small additions is measured here, too. */
carag_status carag_refresh_cells(carag_index *index, uint32_t threads)
{
    const carag_view *present = atomic_load(&index->view);
    const uint32_t rows = atomic_load(&present->rows);
    const carag_cells *cells = present->cells;
    const uint32_t listed = cells ? cells->rows : 0;
    const uint32_t slack = rows / TAIL_SHARE > MIN_TAIL_ROOM ? rows / TAIL_SHARE : MIN_TAIL_ROOM;
    if (rows < CARAG_CELL_ROWS || rows - listed <= slack)
        return CARAG_OK;
    carag_cells *fresh = NULL;
    const bool grew = !cells || rows / 2 >= cells->centred;
    carag_status status = grew ? carag_cells_new(&present->codes, rows, threads, &fresh)
                                     : carag_cells_extend(cells, &present->codes, rows, &fresh);
    if (status != CARAG_OK)
        return status;
    carag_view *view = carag_view_share(present);
    if (!view) {
        carag_cells_free(fresh);
        return CARAG_NO_MEMORY;
    }
    view->catalog = present->catalog;
    view->cells = fresh;
    status = carag_view_new_bits(index, view);
    if (status == CARAG_OK)
        status = grew ? carag_bits_encode(index, view, 0, rows, threads) : carag_bits_extend(index, view, present);
    if (status == CARAG_OK)
        status = carag_sort_words(view);
    if (status != CARAG_OK) {
        carag_view_free(index, view, present);
        return status;
    }
    if (grew)
        carag_costs_tune(index, view);
    carag_publish(index, view);
    return CARAG_OK;
}
