/* search/similar.c - how similar given rows are to a query: the number that a search would answer with, to the last bit.
 *
 * Whether a row is admissible is not asked: keys come from who has asked, such as a search by words under the same policy.
 */
#include "carag_internal.h"
#include "code/code.h"
#include "row/row.h"
#include "search/search.h"

#include <string.h>

/* The rows of keys; the map's lock is held for this alone, for no writer may wait while rows are scored. */
static carag_status find_rows(const carag_reader *reader, const int64_t *keys, size_t count, uint32_t *out_rows,
                              carag_fault *out_fault)
{
    carag_map_find_many(reader->index, reader->view->keys, reader->rows, keys, count, out_rows);
    for (size_t i = 0; i < count; i++)
        if (out_rows[i] >= reader->rows) /* a row being added is not there yet */
            return carag_fail(out_fault, CARAG_UNKNOWN_KEY, i, "a key is not in the index");
    return CARAG_OK;
}

static carag_status look_up_and_score(carag_index *index, const float *unit, float *room, const int64_t *keys,
                                      size_t count, uint32_t *rows, float *out_similarities, carag_fault *out_fault)
{
    pthread_rwlock_rdlock(&index->map_lock);
    const carag_reader reader = carag_read_begin(index);
    const carag_status status = find_rows(&reader, keys, count, rows, out_fault);
    pthread_rwlock_unlock(&index->map_lock);
    if (status == CARAG_OK)
        carag_score_rows(&reader, unit, room, rows, count, out_similarities);
    carag_read_end(&reader);
    return status;
}

carag_status carag_index_similarities(carag_index *index, const float *query, const int64_t *keys, size_t count,
                                      float *out_similarities, carag_fault *out_fault)
{
    carag_status status = carag_normalise(query, index->params.dim, NULL, 0, out_fault);
    if (status == CARAG_OK)
        status = carag_map_ready(index, out_fault);
    if (status != CARAG_OK)
        return status;
    float *unit = carag_allocate_aligned(index->stride, sizeof *unit);
    float *room = carag_allocate_aligned(index->stride, sizeof *room);
    uint32_t *rows = carag_allocate(count, sizeof *rows);
    status = CARAG_NO_MEMORY;
    if (unit && room && rows) {
        memset(unit, 0, index->stride * sizeof *unit);
        carag_normalise(query, index->params.dim, unit, 0, NULL);
        status = look_up_and_score(index, unit, room, keys, count, rows, out_similarities, out_fault);
    } else {
        carag_fail(out_fault, status, 0, "");
    }
    carag_release_aligned(unit);
    carag_release_aligned(room);
    carag_release(rows);
    return status;
}
