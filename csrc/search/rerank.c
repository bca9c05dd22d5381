/* search/rerank.c - score the best rows over what is kept of their vectors: the last step of every plan. */
#include "carag_internal.h"
#include "search/search.h"

#include <math.h>

#define DIRECT_FACTOR 2 /* admissible rows per row wanted, and DIRECT_ROWS more, up to which all are scored by vector */
#define DIRECT_ROWS 32  /* admissible rows up to which all are scored by vector, whatever is wanted */
#define SPARE_ROWS 4    /* rows kept for the last step beyond 9/8 of those wanted */
#define PREFETCH_ROWS 3 /* vectors fetched before they are scored */

size_t carag_sketch_room(size_t limit)
{
    return limit + limit / 8 + SPARE_ROWS;
}

static void prefetch_vector(const carag_index *index, const carag_view *view, uint32_t row)
{
    const char *line = (const char *)view->vectors + (size_t)row * index->vector_bytes;
    for (size_t offset = 0; offset < index->vector_bytes && offset < 1024; offset += 64)
        __builtin_prefetch(line + offset); /* the hardware streams the rest */
}

bool carag_is_direct(uint64_t admissible, size_t limit)
{
    return admissible <= DIRECT_FACTOR * (uint64_t)limit + DIRECT_ROWS;
}

/* Of rows in any order, what an answer would say of each. `room` holds dim floats. */
void carag_score_rows(const carag_reader *reader, const float *unit, float *room, const uint32_t *rows, size_t count,
                      float *out_similarities)
{
    const carag_kernel *kernel = carag_kernel_get();
    for (size_t i = 0; i < count && i < PREFETCH_ROWS; i++)
        prefetch_vector(reader->index, reader->view, rows[i]);
    for (size_t i = 0; i < count; i++) {
        if (i + PREFETCH_ROWS < count)
            prefetch_vector(reader->index, reader->view, rows[i + PREFETCH_ROWS]);
        out_similarities[i] =
            carag_ordered(carag_score(reader->index, reader->view, kernel, unit, room, rows[i]));
    }
}

/* Score rows over their kept vectors, keep the `limit` best in scratch->found, passing over those whose upper bound
 * says that they cannot enter. */
void carag_rerank(const carag_reader *reader, carag_scratch *scratch, const carag_near *uppers, size_t count,
                  size_t limit, carag_effort *effort)
{
    const carag_kernel *kernel = carag_kernel_get();
    carag_heap *found = &scratch->found;
    found->count = 0;
    for (size_t i = 0; i < count && i < PREFETCH_ROWS; i++)
        prefetch_vector(reader->index, reader->view, uppers[i].node);
    for (size_t i = 0; i < count; i++) {
        if (i + PREFETCH_ROWS < count)
            prefetch_vector(reader->index, reader->view, uppers[i + PREFETCH_ROWS].node);
        if (found->count == limit && uppers[i].similarity < found->items[0].similarity)
            continue;
        const float score = carag_ordered(
            carag_score(reader->index, reader->view, kernel, scratch->query.unit, scratch->vector, uppers[i].node));
        const carag_near near = {score, uppers[i].node};
        effort->distance_computations++;
        if (carag_heap_accepts(found, limit, near))
            carag_heap_keep(found, limit, near);
    }
}

/* Score what scratch->found holds over kept vectors, and leave the `limit` best of it there. */
void carag_rerank_found(const carag_reader *reader, carag_scratch *scratch, size_t limit, carag_effort *effort)
{
    const size_t count = scratch->found.count;
    for (size_t i = 0; i < count; i++)
        scratch->kept[i] = (carag_near){INFINITY, scratch->found.items[i].node};
    carag_rerank(reader, scratch, scratch->kept, count, limit, effort);
}
