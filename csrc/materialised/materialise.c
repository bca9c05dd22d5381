/* materialised/materialise.c - make a materialised view: take the admissible rows of an index, and index them alone.
 *
 * Taking enters as a reader, so that no search waits for it, and a writer only if it replaces arrays. A relabel may run
 * beside: the generation then differs at the end from what it was at the begin, and nothing was made.
 */
#include "carag_internal.h"
#include "cost/cost.h"
#include "file/file.h"
#include "materialised/materialised.h"
#include "write/write.h"

#include <string.h>

#define CATALOG_BYTES 9 /* bytes a row of classes, home rows, and room for those that move */
#define CELL_BYTES 6    /* bytes a row of its place in a cell, and its share of a centre */

/* ---------------------------------------------------------------- how much memory */

/* Of all that carag_view_new makes room for, what the catalog and the cells add to it, and the origins. */
uint64_t carag_materialised_bytes(const carag_index *index, uint32_t rows)
{
    const uint32_t dim = index->params.dim;
    const uint64_t link = sizeof(uint32_t);
    const uint64_t stride = ((uint64_t)dim + CARAG_CODE_BLOCK - 1) / CARAG_CODE_BLOCK * CARAG_CODE_BLOCK;
    const uint64_t codes = stride + 2 * sizeof(float);
    const uint64_t bits = carag_packs(rows) * carag_pack_bytes(8 * carag_bits_words(dim));
    const uint64_t labels = sizeof(uint32_t) + sizeof(carag_terms) + sizeof(int64_t) + sizeof(carag_origin);
    const uint64_t graph = (index->M0 + 1) * link + sizeof(uint32_t) + sizeof(uint8_t);
    const uint64_t upper = carag_upper_slots(&index->params, 0, rows) * (index->params.M + 1) * link;
    return rows * (index->vector_bytes + codes + labels + graph + CATALOG_BYTES + CELL_BYTES) + bits + upper;
}

/* ---------------------------------------------------------------- which rows */

/* The admissible rows, in their order; returns how many. */
static uint32_t list_rows(const carag_reader *reader, const carag_test *test, uint32_t *out_rows)
{
    uint32_t count = 0;
    for (uint32_t row = 0; row < reader->rows; row++)
        if (carag_is_open(reader, test, row, memory_order_relaxed))
            out_rows[count++] = row;
    return count;
}

/* Classes that have admissible rows. */
static uint32_t count_classes(const carag_reader *reader, const carag_test *test)
{
    const carag_catalog *catalog = reader->view->catalog;
    const uint32_t count = atomic_load_explicit(&catalog->count, memory_order_acquire);
    uint32_t open = 0;
    for (uint32_t class = 0; class < count; class ++)
        open += atomic_load_explicit(&catalog->live[class], memory_order_relaxed) > 0 &&
                carag_is_admissible(test, atomic_load_explicit(&catalog->words[class], memory_order_relaxed),
                                    catalog->terms[class]);
    return open;
}

/* ---------------------------------------------------------------- taking them */

static int by_key(const void *a, const void *b)
{
    const int64_t x = ((const carag_origin *)a)->key;
    const int64_t y = ((const carag_origin *)b)->key;
    return (x > y) - (x < y);
}

/* Each row's key becomes its rank; words and terms are open at every instant. */
static void rename_rows(carag_materialised *view)
{
    carag_view *rows = view->rows;
    for (uint32_t row = 0; row < view->count; row++) {
        view->origins[row] = (carag_origin){rows->keys[row], row};
        atomic_init(&rows->words[row], CARAG_VERSION_WORD);
        rows->terms[row] = (carag_terms){CARAG_ALWAYS_PUBLIC, CARAG_NEVER_EXPIRES, CARAG_NO_ENTITY, CARAG_EVERYBODY};
    }
    qsort(view->origins, view->count, sizeof *view->origins, by_key);
    for (uint32_t rank = 0; rank < view->count; rank++)
        rows->keys[view->origins[rank].row] = rank;
}

/* All that is read of the index; `listed` has room for its rows. */
static carag_status take(const carag_reader *reader, carag_materialised *view, uint64_t max_bytes, uint32_t *listed,
                         carag_fault *out_fault)
{
    carag_index *of = reader->index;
    view->from = reader->view;
    view->generation = atomic_load(&of->generation);
    view->count = list_rows(reader, &view->test, listed);
    view->classes = count_classes(reader, &view->test);
    carag_standing_find_window(reader, &view->standing);
    if (view->count == 0 || view->generation % 2 != 0)
        return carag_fail(out_fault, CARAG_BEHIND, 0, "nothing is admissible, or the index is being changed");
    if (carag_materialised_bytes(of, view->count) > max_bytes)
        return carag_fail(out_fault, CARAG_FULL, 0, "a view of the admissible rows takes more memory than views are allowed");
    view->rows = carag_view_new(view->index, view->count, (uint32_t)carag_upper_slots(&of->params, 0, view->count));
    view->origins = carag_allocate(view->count, sizeof *view->origins);
    if (!view->rows || !view->origins)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    carag_take_rows(of, view->rows, 0, reader->view, listed, view->count);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load(&of->generation) != view->generation)
        return carag_fail(out_fault, CARAG_BEHIND, 0, "the index changed while its rows were copied");
    return CARAG_OK;
}

/* A view of nothing, with the predicate. */
static carag_status begin(carag_index *index, const carag_predicate *predicate, carag_materialised **out_view,
                          carag_fault *out_fault)
{
    carag_materialised *view = carag_allocate_zeroed(1, sizeof *view);
    *out_view = view;
    if (!view)
        return CARAG_NO_MEMORY;
    if (carag_standing_copy(predicate, &view->standing) != CARAG_OK)
        return CARAG_NO_MEMORY;
    view->of = index;
    carag_test_init(&view->test, &view->standing.predicate);
    return carag_index_new(&index->params, &view->index, out_fault);
}

/* What a mapped index reads from its file must be sound before a graph is built on it. */
static carag_status verify(carag_index *index, carag_fault *out_fault)
{
    pthread_mutex_lock(&index->writer);
    const carag_status status = carag_verify_if_mapped(index, out_fault);
    pthread_mutex_unlock(&index->writer);
    return status;
}

carag_status carag_materialised_copy(carag_index *index, const carag_predicate *predicate, uint64_t max_bytes,
                                     carag_materialised **out_view, carag_fault *out_fault)
{
    if (!carag_predicate_is_closed(predicate))
        return carag_fail(out_fault, CARAG_BAD_PREDICATE, 0, CARAG_CLOSED_PREDICATE);
    carag_status status = verify(index, out_fault);
    if (status != CARAG_OK)
        return status;
    carag_materialised *view = NULL;
    uint32_t *listed = NULL;
    status = begin(index, predicate, &view, out_fault);
    if (status == CARAG_OK) {
        const carag_reader reader = carag_read_begin(index);
        listed = carag_allocate(reader.rows, sizeof *listed);
        status = listed ? take(&reader, view, max_bytes, listed, out_fault) : CARAG_NO_MEMORY;
        carag_read_end(&reader);
    }
    if (status == CARAG_OK) {
        rename_rows(view);
        for (uint32_t rank = 0; rank < view->count; rank++)
            view->origins[rank].row = listed[view->origins[rank].row];
        *out_view = view;
    } else {
        carag_materialised_free(view);
    }
    carag_release(listed);
    return status == CARAG_NO_MEMORY ? carag_fail(out_fault, status, 0, "") : status;
}

/* ---------------------------------------------------------------- indexing them */

carag_status carag_materialised_build(carag_materialised *view, uint32_t threads, carag_fault *out_fault)
{
    if (threads < 1 || threads > CARAG_MAX_THREADS)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "threads must be 1 to 1024");
    if (!view->rows)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "the view is already built");
    const carag_status status = carag_complete(view->index, view->rows, view->count, threads);
    if (status != CARAG_OK)
        return carag_fail(out_fault, status, 0, "");
    carag_costs_tune(view->index, view->rows);
    atomic_init(&view->index->live, view->count);
    carag_publish(view->index, view->rows);
    view->rows = NULL;
    return CARAG_OK;
}

uint32_t carag_materialised_rows(const carag_materialised *view)
{
    return view->count;
}

void carag_materialised_free(carag_materialised *view)
{
    if (!view)
        return;
    if (view->rows)
        carag_view_free(view->index, view->rows, NULL);
    carag_index_free(view->index);
    carag_release(view->origins);
    carag_standing_release(&view->standing);
    carag_release(view);
}
