/* write/add.c - add rows.
 *
 * All or nothing: first everything is checked and every allocation made, then come loops that cannot fail. Searches run
 * all the while and see the whole batch when it is published, by a new view or by the last store of view->rows.
 *
 * A batch is put in the order of its classes, and a first one, if large, in that of its cells (row/cells.c): runs of
 * rows that are read one after the other are what a scan likes best. A batch as large as
 * what is there already, and not tiny, is linked by building the whole graph (hnsw/build.c), a smaller one row by row
 * (hnsw/insert.c): rows double between builds, so a row is built a bounded number of times.
 */
#include "carag_internal.h"
#include "code/code.h"
#include "cost/cost.h"
#include "file/file.h"
#include "hnsw/hnsw.h"
#include "parallel.h"
#include "row/row.h"
#include "write/write.h"

#include <string.h>

#define MIN_ROWS_TO_BUILD 256 /* rows of a batch below which it is inserted row by row */
#define FIRST_CAPACITY 64     /* rows that the smallest view has room for */
#define ROWS_PER_TASK 256     /* rows that a thread takes at a time */

typedef struct addition {
    carag_index *index;
    const carag_rows *rows;
    carag_view *view;     /* the present one, or the one that will replace it */
    uint32_t first;       /* row number of the batch's first */
    uint32_t total;
    uint32_t upper_count; /* with the batch's */
    uint32_t *order;      /* [count] row first + i is position order[i] of the batch */
    uint32_t *position;   /* [count] the inverse */
    float *rooms;         /* [threads * stride] */
    bool is_new;          /* view is not the present one */
    bool builds;          /* the whole graph, instead of inserting row by row */
    bool sketches_anew;   /* all one-bit codes, about new cells or a new mean */
} addition;

/* ---------------------------------------------------------------- checking */

static carag_terms terms_of(const carag_rows *rows, size_t i)
{
    return (carag_terms){.public_at = rows->public_at ? rows->public_at[i] : CARAG_ALWAYS_PUBLIC,
                         .expires_at = rows->expires_at ? rows->expires_at[i] : CARAG_NEVER_EXPIRES,
                         .entity = rows->entities ? rows->entities[i] : CARAG_NO_ENTITY,
                         .audience = rows->audiences ? rows->audiences[i] : CARAG_EVERYBODY};
}

static carag_status verify_rows(const carag_index *index, const carag_rows *rows, uint32_t have,
                                carag_fault *out_fault)
{
    if (rows->threads < 1 || rows->threads > CARAG_MAX_THREADS)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "threads must be 1 to 1024");
    if (rows->count > CARAG_MAX_ROWS - have)
        return carag_fail(out_fault, CARAG_FULL, 0, "an index holds at most 4,294,967,231 rows");
    for (size_t i = 0; i < rows->count; i++) {
        if (!carag_word_is_storable(rows->words[i], rows->allow_quarantine != 0))
            return carag_fail(out_fault, CARAG_BAD_WORD, i, "version must be 0 or 1, bits 30 and 31 clear");
        if (rows->keys && rows->keys[i] < 0)
            return carag_fail(out_fault, CARAG_BAD_KEY, i, "keys must be 0 or more");
        const carag_status status =
            carag_normalise(rows->vectors + i * index->params.dim, index->params.dim, NULL, i, out_fault);
        if (status != CARAG_OK)
            return status;
    }
    return CARAG_OK;
}

/* Put the batch in the order of its classes, each where it first occurs. */
static carag_status order_batch(addition *job)
{
    const carag_rows *rows = job->rows;
    const uint32_t count = (uint32_t)rows->count;
    _Atomic(uint32_t) *words = carag_allocate(count, sizeof *words);
    carag_terms *terms = carag_allocate(count, sizeof *terms);
    carag_catalog *catalog = NULL;
    job->order = carag_allocate(count, sizeof *job->order);
    job->position = carag_allocate(count, sizeof *job->position);
    if (words && terms && job->order && job->position) {
        for (uint32_t i = 0; i < count; i++) {
            atomic_init(&words[i], rows->words[i]);
            terms[i] = terms_of(rows, i);
        }
        catalog = carag_catalog_new(words, terms, count, count, 0, 0);
    }
    for (uint32_t i = 0; catalog && i < count; i++) {
        job->order[i] = catalog->postings[i];
        job->position[catalog->postings[i]] = i;
    }
    const carag_status status = catalog ? CARAG_OK : CARAG_NO_MEMORY;
    carag_catalog_free(catalog);
    carag_release((void *)words);
    carag_release(terms);
    return status;
}

/* ---------------------------------------------------------------- room */

/* At least doubling, so that a million single adds copy each row about once; one large batch fits exactly. */
static uint32_t grown(size_t have, size_t wanted)
{
    size_t capacity = have > CARAG_MAX_ROWS / 2 ? CARAG_MAX_ROWS : 2 * have;
    if (capacity < FIRST_CAPACITY)
        capacity = FIRST_CAPACITY;
    return (uint32_t)(capacity < wanted ? wanted : capacity);
}

/* The view that the batch goes into: the present one where that has room and nothing has to be made again. */
static carag_status prepare_view(addition *job)
{
    carag_index *index = job->index;
    carag_view *present = atomic_load(&index->view);
    const size_t slots = present->graph.upper_count + carag_upper_slots(&index->params, job->first, job->total);
    if (slots > CARAG_MAX_ROWS)
        return CARAG_FULL;
    job->builds = job->rows->count >= job->first && job->rows->count >= MIN_ROWS_TO_BUILD;
    job->sketches_anew = job->builds || present->bits.centred == 0 ||
                         (!present->cells && job->total / 2 >= present->bits.centred);
    job->upper_count = (uint32_t)slots;
    job->view = present;
    if (job->total > present->capacity || slots > present->graph.upper_capacity) {
        carag_view *view = carag_view_new(index, grown(present->capacity, job->total),
                                          grown(present->graph.upper_capacity, slots));
        if (!view)
            return CARAG_NO_MEMORY;
        carag_copy_rows(index, view, present, job->first);
        job->view = view;
    } else if (job->sketches_anew) {
        carag_view *view = carag_view_share(present);
        if (!view)
            return CARAG_NO_MEMORY;
        job->view = view;
        if (carag_view_new_bits(index, view) != CARAG_OK ||
            (job->builds && carag_view_new_graph(index, view, present->graph.upper_capacity) != CARAG_OK)) {
            carag_view_free(index, view, present);
            return CARAG_NO_MEMORY;
        }
    }
    job->is_new = job->view != present;
    job->rooms = carag_allocate_aligned(job->rows->threads, index->stride * sizeof(float));
    return job->rooms ? carag_map_reserve(index, present, job->first, job->total) : CARAG_NO_MEMORY;
}

/* ---------------------------------------------------------------- the order of a first batch */

typedef struct encoding {
    const addition *job;
    carag_codes codes;
} encoding;

static void encode_block(void *context, size_t item, uint32_t worker)
{
    const encoding *work = context;
    const addition *job = work->job;
    const size_t stride = job->index->stride;
    const size_t dim = job->index->params.dim;
    float *unit = job->rooms + worker * stride;
    const size_t begin = item * ROWS_PER_TASK;
    const size_t end = begin + ROWS_PER_TASK < job->rows->count ? begin + ROWS_PER_TASK : job->rows->count;
    memset(unit, 0, stride * sizeof *unit);
    for (size_t i = begin; i < end; i++) {
        carag_normalise(job->rows->vectors + job->order[i] * dim, (uint32_t)dim, unit, job->order[i], NULL);
        work->codes.scales[i] =
            carag_encode_unit(unit, stride, work->codes.bytes + i * work->codes.stride, work->codes.stride);
    }
}

/* Find the cells of the batch, and put it in their order, class after class within each. */
static carag_status order_by_cells(addition *job)
{
    const uint32_t count = (uint32_t)job->rows->count;
    const size_t stride = job->view->codes.stride;
    encoding work = {.job = job, .codes = {.bytes = carag_allocate_aligned(count, stride), .stride = stride,
                                           .scales = carag_allocate(count, sizeof(float))}};
    carag_cells *cells = NULL;
    carag_status status = work.codes.bytes && work.codes.scales ? CARAG_OK : CARAG_NO_MEMORY;
    if (status == CARAG_OK) {
        carag_parallel(job->rows->threads, (count + ROWS_PER_TASK - 1) / ROWS_PER_TASK, encode_block, &work);
        status = carag_cells_new(&work.codes, count, job->rows->threads, &cells);
    }
    if (cells) {
        for (uint32_t i = 0; i < count; i++)
            job->position[i] = job->order[cells->members[i]]; /* a place to keep the new order in */
        memcpy(job->order, job->position, count * sizeof *job->order);
        for (uint32_t i = 0; i < count; i++) {
            job->position[job->order[i]] = i;
            cells->members[i] = i;
        }
        cells->is_ordered = true;
    }
    job->view->cells = cells;
    carag_release_aligned(work.codes.bytes);
    carag_release(work.codes.scales);
    return status;
}

/* ---------------------------------------------------------------- writing */

/* Choose keys where none are given, and see that each is free and named once. Afterwards the map holds them, and
 * readers pass over them until the rows are published. Requires room. */
static carag_status assign_keys(addition *job, carag_fault *out_fault)
{
    carag_index *index = job->index;
    const carag_rows *rows = job->rows;
    int64_t *keys = job->view->keys;
    int64_t next = job->first;
    for (size_t i = 0; i < rows->count; i++) {
        const uint32_t row = job->first + job->position[i];
        if (!rows->keys)
            while (carag_map_find(index, keys, job->total, next) != CARAG_NONE)
                next++;
        keys[row] = rows->keys ? rows->keys[i] : next++;
        if (!carag_map_insert(index, keys, row)) {
            for (size_t j = 0; j < i; j++)
                carag_map_remove(index, keys, keys[job->first + job->position[j]]);
            return carag_fail(out_fault, CARAG_DUPLICATE_KEY, i,
                              "a key is already in the index, or twice in the batch");
        }
    }
    return CARAG_OK;
}

static void remove_keys(addition *job)
{
    for (uint32_t row = job->first; row < job->total; row++)
        carag_map_remove(job->index, job->view->keys, job->view->keys[row]);
}

static void write_rows(void *context, size_t item, uint32_t worker)
{
    const addition *job = context;
    const carag_index *index = job->index;
    const size_t dim = index->params.dim;
    float *unit = job->rooms + (size_t)worker * index->stride;
    memset(unit, 0, index->stride * sizeof *unit);
    const size_t begin = item * ROWS_PER_TASK;
    const size_t end = begin + ROWS_PER_TASK < job->rows->count ? begin + ROWS_PER_TASK : job->rows->count;
    for (size_t i = begin; i < end; i++) {
        const uint32_t row = job->first + (uint32_t)i;
        const size_t at = job->order[i];
        carag_normalise(job->rows->vectors + at * dim, (uint32_t)dim, unit, at, NULL);
        carag_keep_vector(index, job->view, row, unit);
        job->view->terms[row] = terms_of(job->rows, at);
        /* In the present view a search may come by before the rows are published: closed until then. */
        atomic_store_explicit(&job->view->words[row], job->is_new ? job->rows->words[at] : CARAG_TOMBSTONE,
                              memory_order_relaxed);
    }
}

static carag_status link_rows(addition *job)
{
    const carag_params *params = &job->index->params;
    carag_view *view = job->view;
    if (job->builds) {
        view->graph.upper_count = job->upper_count;
        return carag_hnsw_build(&view->graph, &view->codes, view->keys, job->total, params->ef_construction,
                                params->seed, job->rows->threads);
    }
    carag_insertion *insertion =
        carag_insertion_new(&view->graph, &view->codes, view->keys, view->capacity, params->ef_construction);
    if (!insertion)
        return CARAG_NO_MEMORY;
    view->graph.upper_count = job->upper_count;
    for (uint32_t row = job->first; row < job->total; row++)
        carag_hnsw_insert(insertion, row);
    carag_insertion_free(insertion);
    return CARAG_OK;
}

/* All that can fail after the keys are taken. Rows of a present view stay invisible meanwhile. */
static carag_status fill(addition *job)
{
    carag_index *index = job->index;
    carag_view *view = job->view;
    const size_t tasks = (job->rows->count + ROWS_PER_TASK - 1) / ROWS_PER_TASK;
    carag_parallel(job->rows->threads, tasks, write_rows, job);
    carag_draw_levels(&index->params, &view->graph, job->first, job->total);
    carag_status status = CARAG_OK;
    if (job->is_new) {
        view->catalog = carag_catalog_new(view->words, view->terms, job->total, view->capacity, 0, 0);
        status = view->catalog ? CARAG_OK : CARAG_NO_MEMORY;
    }
    if (status == CARAG_OK && job->builds && job->first > 0) {
        view->cells = NULL;
        status = carag_cells_new(&view->codes, job->total, job->rows->threads, &view->cells);
    }
    if (status == CARAG_OK)
        status = carag_bits_encode(index, view, job->sketches_anew ? 0 : job->first, job->total, job->rows->threads);
    if (status == CARAG_OK && job->is_new)
        status = carag_sort_words(view);
    if (status == CARAG_OK)
        status = link_rows(job);
    if (status != CARAG_OK && !job->is_new)
        carag_bits_clear(&view->bits, job->first);
    return status;
}

/* ---------------------------------------------------------------- publishing */

/* Open the rows in the present view: words, counts and their number change as one for a count. */
static void open_rows(addition *job)
{
    carag_view *view = job->view;
    carag_catalog *catalog = view->catalog;
    carag_relabel_begin(job->index);
    for (uint32_t row = job->first; row < job->total; row++) {
        const uint32_t word = job->rows->words[job->order[row - job->first]];
        uint32_t class = carag_catalog_find(catalog, word, view->terms[row]);
        if (class == CARAG_NONE)
            class = carag_catalog_add(catalog, word, view->terms[row]);
        catalog->classes[row] = class;
        atomic_store_explicit(&view->words[row], word, memory_order_release);
        atomic_fetch_add_explicit(&catalog->live[class], 1, memory_order_release);
    }
    atomic_store_explicit(&view->rows, job->total, memory_order_release);
    carag_relabel_end(job->index);
}

static void publish(addition *job)
{
    carag_index *index = job->index;
    if (job->is_new) {
        atomic_init(&job->view->rows, job->total);
        if (job->builds)
            carag_costs_tune(index, job->view);
        carag_publish(index, job->view);
    } else {
        open_rows(job);
    }
    atomic_fetch_add(&index->live, (uint32_t)job->rows->count);
}

carag_status carag_index_add(carag_index *index, const carag_rows *rows, int64_t *out_keys, carag_fault *out_fault)
{
    addition job = {.index = index, .rows = rows};
    pthread_mutex_lock(&index->writer);
    job.first = atomic_load(&atomic_load(&index->view)->rows);
    carag_status status = verify_rows(index, rows, job.first, out_fault);
    if (status != CARAG_OK || rows->count == 0)
        goto done;
    status = carag_verify_if_mapped(index, out_fault);
    if (status != CARAG_OK)
        goto done;
    job.total = job.first + (uint32_t)rows->count;
    status = order_batch(&job);
    if (status == CARAG_OK) /* a dictionary with room for a class of each row's own */
        status = carag_refresh_catalog(index, (uint32_t)rows->count);
    if (status == CARAG_OK)
        status = carag_refresh_cells(index, rows->threads);
    if (status == CARAG_OK)
        status = prepare_view(&job);
    if (status == CARAG_OK && job.builds && job.first == 0)
        status = order_by_cells(&job);
    if (status != CARAG_OK) {
        carag_fail(out_fault, status, 0, "");
        goto abandon;
    }
    pthread_rwlock_wrlock(&index->map_lock);
    status = assign_keys(&job, out_fault);
    pthread_rwlock_unlock(&index->map_lock);
    if (status != CARAG_OK)
        goto abandon;
    status = fill(&job);
    if (status != CARAG_OK) {
        carag_fail(out_fault, status, 0, "");
        pthread_rwlock_wrlock(&index->map_lock);
        remove_keys(&job);
        pthread_rwlock_unlock(&index->map_lock);
        goto abandon;
    }
    for (size_t i = 0; out_keys && i < rows->count; i++)
        out_keys[i] = job.view->keys[job.first + job.position[i]];
    publish(&job);
    goto done;
abandon:
    if (job.is_new)
        carag_view_free(index, job.view, atomic_load(&index->view));
done:
    carag_release(job.order);
    carag_release(job.position);
    carag_release_aligned(job.rooms);
    pthread_mutex_unlock(&index->writer);
    return status;
}
