/* write/consolidate.c - rebuild an index from its live rows, in order and without gaps.
 *
 * Deleted rows stay behind as stepping stones of the graph, and rows relabelled or added later are apart from their
 * class. Consolidating makes a view of the live rows alone, class after class (each where it first occurs) and in the
 * order of before within a class, so that a scan runs through neighbours again. Keys, words, terms, vectors and
 * eight-bit codes are copied as they are; levels, which belong to row numbers, are drawn again; one-bit codes about a
 * fresh centre, cells, graph, catalog, key map and costs are made again. What the result holds is thus decided by the
 * live rows, their order and the seed.
 *
 * Searches run all the while over the view of before; then a look-up of a key sees map and view change as one. All
 * or nothing: what can fail comes first, and is thrown away when something does.
 */
#include "carag_internal.h"
#include "cost/cost.h"
#include "file/file.h"
#include "parallel.h"
#include "row/row.h"
#include "write/write.h"

#include <string.h>

#define FIRST_SLOTS 64    /* slots of the smallest key map */
#define ROWS_PER_TASK 256 /* rows that a thread takes at a time */

typedef struct consolidation {
    carag_index *index;
    const carag_view *from;
    carag_view *view;
    carag_catalog *order; /* fresh: row i of the new view is row order->postings[i] of the old one */
    uint32_t rows;        /* live */
    uint32_t threads;
    uint32_t *map;
    size_t map_capacity;
} consolidation;

/* ---------------------------------------------------------------- rows */

/* The live rows, class after class. */
static carag_status order_rows(consolidation *job)
{
    const carag_view *from = job->from;
    const uint32_t total = atomic_load(&from->rows);
    job->order = carag_catalog_new(from->words, from->terms, total, total, 0, 0);
    if (!job->order)
        return CARAG_NO_MEMORY;
    job->rows = job->order->first[job->order->homes];
    return CARAG_OK;
}

static void copy_block(void *context, size_t item, uint32_t worker)
{
    const consolidation *job = context;
    const uint32_t begin = (uint32_t)item * ROWS_PER_TASK;
    const uint32_t end = job->rows - begin < ROWS_PER_TASK ? job->rows : begin + ROWS_PER_TASK;
    (void)worker;
    carag_take_rows(job->index, job->view, begin, job->from, job->order->postings + begin, end - begin);
}

static carag_status build_view(consolidation *job)
{
    carag_index *index = job->index;
    const uint32_t slots = (uint32_t)carag_upper_slots(&index->params, 0, job->rows); /* no more than there are now */
    carag_view *view = carag_view_new(index, job->rows, slots);
    job->view = view;
    if (!view)
        return CARAG_NO_MEMORY;
    view->costs = job->from->costs;
    carag_parallel(job->threads, (job->rows + ROWS_PER_TASK - 1) / ROWS_PER_TASK, copy_block, job);
    const carag_status status = carag_complete(index, view, job->rows, job->threads);
    return status == CARAG_OK ? carag_sort_words(view) : status;
}

static carag_status build_map(consolidation *job)
{
    job->map_capacity = FIRST_SLOTS;
    while (job->map_capacity / 2 <= job->rows)
        job->map_capacity *= 2;
    job->map = carag_allocate(job->map_capacity, sizeof *job->map);
    if (!job->map)
        return CARAG_NO_MEMORY;
    memset(job->map, 0xFF, job->map_capacity * sizeof *job->map); /* CARAG_NONE everywhere */
    carag_index temporary = {.params = job->index->params, .map = job->map, .map_capacity = job->map_capacity};
    for (uint32_t row = 0; row < job->rows; row++)
        carag_map_insert(&temporary, job->view->keys, row);
    return CARAG_OK;
}

static carag_status build_all(consolidation *job, carag_fault *out_fault)
{
    job->from = atomic_load(&job->index->view);
    carag_status status = order_rows(job);
    if (status == CARAG_OK)
        status = build_view(job);
    if (status == CARAG_OK)
        status = build_map(job);
    return status == CARAG_OK ? status : carag_fail(out_fault, status, 0, "");
}

/* A thread that looks a key up holds map_lock before it enters as a reader, so waiting for readers under it ends. */
static void publish(consolidation *job)
{
    carag_index *index = job->index;
    pthread_rwlock_wrlock(&index->map_lock);
    uint32_t *before = index->map;
    index->map = job->map;
    index->map_capacity = job->map_capacity;
    carag_publish(index, job->view);
    pthread_rwlock_unlock(&index->map_lock);
    carag_release(before);
}

carag_status carag_index_consolidate(carag_index *index, uint32_t threads, carag_fault *out_fault)
{
    if (threads < 1 || threads > CARAG_MAX_THREADS)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "threads must be 1 to 1024");
    consolidation job = {.index = index, .threads = threads};
    pthread_mutex_lock(&index->writer);
    carag_status status = carag_verify_if_mapped(index, out_fault); /* finds a key that is there twice, too */
    if (status == CARAG_OK)
        status = build_all(&job, out_fault);
    if (status == CARAG_OK) {
        carag_costs_tune(index, job.view);
        publish(&job);
    } else {
        carag_view_free(index, job.view, NULL);
    }
    carag_catalog_free(job.order);
    pthread_mutex_unlock(&index->writer);
    return status;
}
