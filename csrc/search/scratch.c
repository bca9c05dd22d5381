/* search/scratch.c - make the working memory of a search, and keep it between calls in the slots of the index (slots.h). */
#include "carag_internal.h"
#include "row/row.h"
#include "search/search.h"

#include <string.h>

void carag_scratch_free(carag_scratch *scratch)
{
    if (!scratch)
        return;
    carag_release(scratch->visited.bits);
    carag_release(scratch->visited.touched);
    carag_release(scratch->marks);
    carag_release(scratch->pool);
    carag_release(scratch->expanded);
    carag_release(scratch->found.items);
    carag_release(scratch->kept);
    carag_release(scratch->numbers);
    carag_release(scratch->dots);
    carag_release(scratch->scores);
    carag_release_aligned(scratch->vector);
    carag_release(scratch->classes);
    carag_release(scratch->cells);
    carag_release(scratch->uppers);
    carag_release(scratch->nears);
    carag_release(scratch->aways);
    carag_release_aligned(scratch->query.unit);
    carag_release_aligned(scratch->query.codes);
    carag_release_aligned(scratch->query.rotated);
    carag_release_aligned(scratch->query.table);
    carag_release(scratch);
}

static carag_scratch *scratch_new(const carag_index *index, const carag_view *view, const carag_room *room)
{
    const size_t words = (size_t)view->capacity / 64 + 1;
    const size_t width = 64 * view->bits.words;
    const size_t block = CARAG_BLOCK > index->M0 + 1 ? CARAG_BLOCK : (size_t)index->M0 + 1;
    carag_scratch *scratch = carag_allocate_zeroed(1, sizeof *scratch);
    if (!scratch)
        return NULL;
    scratch->room = *room;
    scratch->room.rows = view->capacity;
    scratch->visited.bits = carag_allocate_zeroed(words, sizeof *scratch->visited.bits);
    scratch->visited.touched = carag_allocate(words, sizeof *scratch->visited.touched);
    scratch->marks = carag_allocate_zeroed(words + 1, sizeof *scratch->marks);
    scratch->pool = carag_allocate(room->pool + 1, sizeof *scratch->pool);
    scratch->expanded = carag_allocate(room->pool + 1, sizeof *scratch->expanded);
    scratch->found.items = carag_allocate(room->found, sizeof *scratch->found.items);
    scratch->kept = carag_allocate(view->capacity + room->found, sizeof *scratch->kept);
    scratch->numbers = carag_allocate(block, sizeof *scratch->numbers);
    scratch->dots = carag_allocate(block, sizeof *scratch->dots);
    scratch->scores = carag_allocate(block, sizeof *scratch->scores);
    scratch->vector = carag_allocate_aligned(index->stride, sizeof(float));
    scratch->classes = carag_allocate(room->classes, sizeof *scratch->classes);
    scratch->cells = carag_allocate(room->cells, sizeof *scratch->cells);
    scratch->uppers = carag_allocate(room->cells, sizeof *scratch->uppers);
    scratch->nears = carag_allocate(room->cells, sizeof *scratch->nears);
    scratch->aways = carag_allocate(room->cells, sizeof *scratch->aways);
    scratch->query.unit = carag_allocate_aligned(index->stride, sizeof(float));
    scratch->query.codes = carag_allocate_aligned(view->codes.stride, 1);
    scratch->query.rotated = carag_allocate_aligned(width, sizeof(float));
    scratch->query.table = carag_allocate_aligned(4 * width, 1);
    const carag_query *query = &scratch->query;
    if (!scratch->visited.bits || !scratch->visited.touched || !scratch->marks || !scratch->pool || !scratch->expanded ||
        !scratch->found.items || !scratch->kept || !scratch->numbers || !scratch->dots || !scratch->scores ||
        !scratch->vector || !scratch->classes || !scratch->cells || !scratch->uppers || !scratch->nears ||
        !scratch->aways || !query->unit || !query->codes || !query->rotated || !query->table) {
        carag_scratch_free(scratch);
        return NULL;
    }
    memset(scratch->query.unit, 0, index->stride * sizeof(float));
    return scratch;
}

/* Memory for one thread of a call; NULL when out of memory. Contents are undefined except for an empty visited set. */
carag_scratch *carag_scratch_take(carag_index *index, const carag_view *view, const carag_room *room)
{
    carag_scratch *scratch = carag_slots_take(&index->scratches);
    if (!scratch || scratch->room.rows < view->capacity || scratch->room.pool < room->pool ||
        scratch->room.found < room->found || scratch->room.classes < room->classes || scratch->room.cells < room->cells) {
        carag_scratch_free(scratch);
        scratch = scratch_new(index, view, room);
    }
    if (scratch)
        scratch->found.keys = view->keys;
    return scratch;
}

void carag_scratch_give(carag_index *index, carag_scratch *scratch)
{
    carag_scratch_free(carag_slots_give(&index->scratches, scratch));
}

void carag_scratches_free(carag_index *index)
{
    for (carag_scratch *scratch; (scratch = carag_slots_take(&index->scratches));)
        carag_scratch_free(scratch);
}
