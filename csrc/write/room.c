/* write/room.c - room for rows: make it before they come, copy those that are there, and draw the levels of the new.
 *
 * An index grows by making a view with more room and copying all rows into it, so for a moment both are in memory; at
 * least doubling keeps that rare. Reserving room for the final number of rows avoids it: then only one-bit
 * codes and links are ever there twice, when a large batch has them made again. Memory that no row was written to is
 * not taken from the machine.
 */
#include "carag_internal.h"
#include "file/file.h"
#include "hnsw/hnsw.h"
#include "row/row.h"
#include "write/write.h"

#include <string.h>

static void copy(void *to, const void *from, size_t count, size_t size)
{
    if (count && size) /* eight-bit rows keep no vectors */
        memcpy(to, from, count * size);
}

/* Rows 0 .. rows - 1 of a view become those of another, which has room for them and no catalog yet; cells are shared. */
void carag_copy_rows(const carag_index *index, carag_view *to, const carag_view *from, uint32_t rows)
{
    const carag_graph *graph = &from->graph;
    to->cells = from->cells;
    copy(to->vectors, from->vectors, rows, index->vector_bytes);
    copy((void *)to->words, (const void *)from->words, rows, sizeof *to->words); /* only the writer stores */
    copy(to->terms, from->terms, rows, sizeof *to->terms);
    copy(to->keys, from->keys, rows, sizeof *to->keys);
    copy(to->codes.bytes, from->codes.bytes, rows, to->codes.stride);
    copy(to->codes.scales, from->codes.scales, rows, sizeof(float));
    copy(to->codes.errors, from->codes.errors, rows, sizeof(float));
    copy(to->bits.packs, from->bits.packs, carag_packs(rows), carag_pack_bytes(8 * to->bits.words));
    copy(to->bits.centre, from->bits.centre, 64 * to->bits.words, sizeof(float));
    copy(to->graph.levels, graph->levels, rows, 1);
    copy(to->graph.upper_first, graph->upper_first, rows, sizeof(uint32_t));
    copy((void *)to->graph.links, (const void *)graph->links, rows, graph->M0 * sizeof(uint32_t));
    copy(to->graph.parents, graph->parents, rows, sizeof(uint32_t));
    copy((void *)to->graph.upper_links, (const void *)graph->upper_links, graph->upper_count,
         graph->M * sizeof(uint32_t));
    copy(to->graph.upper_parents, graph->upper_parents, graph->upper_count, sizeof(uint32_t));
    to->bits.centred = from->bits.centred;
    to->graph.upper_count = graph->upper_count;
    atomic_init(&to->graph.entry_point, atomic_load(&graph->entry_point));
    to->costs = from->costs;
}

/* How many upper slots rows first .. end - 1 take. */
size_t carag_upper_slots(const carag_params *params, uint32_t first, uint32_t end)
{
    size_t slots = 0;
    for (uint32_t row = first; row < end; row++)
        slots += carag_level_of(params->seed, row, params->M);
    return slots;
}

/* Draw the levels of rows first .. end - 1, and number their upper slots from graph->upper_count on, which stays. */
void carag_draw_levels(const carag_params *params, carag_graph *graph, uint32_t first, uint32_t end)
{
    uint32_t slots = graph->upper_count;
    for (uint32_t row = first; row < end; row++) {
        graph->levels[row] = carag_level_of(params->seed, row, params->M);
        graph->upper_first[row] = slots;
        slots += graph->levels[row];
    }
}

/* The present view with room for `rows`, everything else as it was. */
static carag_status make_room(carag_index *index, carag_view *present, uint32_t rows)
{
    const uint32_t have = atomic_load(&present->rows);
    const size_t slots = carag_upper_slots(&index->params, 0, rows);
    carag_view *view = slots <= CARAG_MAX_ROWS ? carag_view_new(index, rows, (uint32_t)slots) : NULL;
    if (!view)
        return CARAG_NO_MEMORY;
    view->catalog = carag_catalog_new(present->words, present->terms, have, rows, 0, 0);
    carag_copy_rows(index, view, present, have);
    if (!view->catalog || carag_sort_words(view) != CARAG_OK) {
        carag_view_free(index, view, present);
        return CARAG_NO_MEMORY;
    }
    atomic_init(&view->rows, have);
    carag_publish(index, view);
    return CARAG_OK;
}

carag_status carag_index_reserve(carag_index *index, size_t rows, carag_fault *out_fault)
{
    if (rows > CARAG_MAX_ROWS)
        return carag_fail(out_fault, CARAG_FULL, 0, "an index holds at most 4,294,967,231 rows");
    pthread_mutex_lock(&index->writer);
    carag_view *present = atomic_load(&index->view);
    carag_status status = CARAG_OK;
    if (rows > present->capacity) {
        status = carag_verify_if_mapped(index, out_fault);
        if (status == CARAG_OK && make_room(index, present, (uint32_t)rows) != CARAG_OK)
            status = carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    }
    pthread_mutex_unlock(&index->writer);
    return status;
}
