/* index.c - the life of an index: making, growing, adding, relabelling, deleting, looking up.
 *
 * Every change is all or nothing: first everything is checked and every allocation made, then rows change in
 * loops that cannot fail. Relabel and delete are one atomic store a row; the graph never changes for them,
 * since a row that no policy admits still carries a search to its neighbours.
 *
 * Locking: add and delete (and save, in file.c) hold the lock alone, so arrays may move; everything else shares
 * it. Relabel shares it too: a word is one atomic, and searches read it again when they emit a row.
 */
#include "carag_internal.h"

#include <math.h>
#include <string.h>

#define FLOATS_PER_LINE 16
#define FIRST_CAPACITY 64

/* ---------------------------------------------------------------- making */

carag_status carag_params_verify(const carag_params *params, carag_fault *out_fault)
{
    if (params->dim < 1 || params->dim > CARAG_MAX_DIM)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "dim must be 1 to 65536");
    if (params->M < CARAG_MIN_M || params->M > CARAG_MAX_M)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "M must be 2 to 256");
    if (params->ef_construction < 1 || params->ef_construction > CARAG_MAX_EF)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "ef_construction must be 1 to 1048576");
    return CARAG_OK;
}

/* glibc lets readers overtake a waiting writer by default: a steady stream of searches would starve add(). */
static int init_lock(pthread_rwlock_t *lock)
{
#if defined(__GLIBC__)
    pthread_rwlockattr_t attributes;
    int failed = pthread_rwlockattr_init(&attributes);
    if (failed)
        return failed;
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    failed = pthread_rwlock_init(lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    return failed;
#else
    return pthread_rwlock_init(lock, NULL);
#endif
}

carag_status carag_index_new(const carag_params *params, carag_index **out_index, carag_fault *out_fault)
{
    carag_dot_fn dot;
    carag_status status = carag_params_verify(params, out_fault);
    if (status == CARAG_OK)
        status = carag_kernel_resolve(&dot, out_fault);
    if (status != CARAG_OK)
        return status;
    carag_index *index = carag_allocate_zeroed(1, sizeof *index);
    if (!index)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    index->params = *params;
    index->M0 = 2 * params->M;
    index->stride = ((size_t)params->dim + FLOATS_PER_LINE - 1) / FLOATS_PER_LINE * FLOATS_PER_LINE;
    index->entry_point = CARAG_NONE;
    if (init_lock(&index->lock)) {
        carag_release(index);
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    }
    *out_index = index;
    return CARAG_OK;
}

static void release_columns(carag_columns_owned *at)
{
    carag_release_aligned(at->vectors);
    carag_release((void *)at->words);
    carag_release(at->public_at);
    carag_release(at->keys);
    carag_release(at->levels);
    carag_release_aligned(at->links0);
    carag_release(at->parents0);
    carag_release(at->upper_first);
}

void carag_index_free(carag_index *index)
{
    if (!index)
        return;
    release_columns(&index->at);
    carag_release(index->upper_links);
    carag_release(index->upper_parents);
    carag_release(index->map);
    pthread_rwlock_destroy(&index->lock);
    carag_release(index);
}

void carag_index_info(carag_index *index, carag_info *out_info)
{
    pthread_rwlock_rdlock(&index->lock);
    *out_info = (carag_info){.params = index->params,
                             .rows = index->rows,
                             .live = index->live,
                             .max_level = index->max_level};
    pthread_rwlock_unlock(&index->lock);
}

/* ---------------------------------------------------------------- growing */

/* At least doubling, so that a million single adds copy each row about once; one large batch fits exactly. */
static size_t grown(size_t have, size_t wanted, size_t most)
{
    size_t capacity = have > most / 2 ? most : 2 * have;
    if (capacity < FIRST_CAPACITY)
        capacity = FIRST_CAPACITY;
    return capacity < wanted ? wanted : capacity;
}

static void copy(void *to, const void *from, size_t count, size_t size)
{
    if (count)
        memcpy(to, from, count * size);
}

static carag_status reserve_columns(carag_index *index, size_t rows)
{
    if (rows <= index->capacity)
        return CARAG_OK;
    const size_t capacity = grown(index->capacity, rows, CARAG_MAX_ROWS);
    const size_t have = index->rows;
    carag_columns_owned at = {
        .vectors = carag_allocate_aligned(capacity, index->stride * sizeof *at.vectors),
        .words = carag_allocate(capacity, sizeof *at.words),
        .public_at = carag_allocate(capacity, sizeof *at.public_at),
        .keys = carag_allocate(capacity, sizeof *at.keys),
        .levels = carag_allocate(capacity, sizeof *at.levels),
        .links0 = carag_allocate_aligned(capacity, index->M0 * sizeof *at.links0),
        .parents0 = carag_allocate(capacity, sizeof *at.parents0),
        .upper_first = carag_allocate(capacity, sizeof *at.upper_first),
    };
    if (!at.vectors || !at.words || !at.public_at || !at.keys || !at.levels || !at.links0 || !at.parents0 ||
        !at.upper_first) {
        release_columns(&at);
        return CARAG_NO_MEMORY;
    }
    copy(at.vectors, index->at.vectors, have, index->stride * sizeof *at.vectors);
    for (size_t row = 0; row < have; row++)
        atomic_init(&at.words[row], atomic_load_explicit(&index->at.words[row], memory_order_relaxed));
    copy(at.public_at, index->at.public_at, have, sizeof *at.public_at);
    copy(at.keys, index->at.keys, have, sizeof *at.keys);
    copy(at.levels, index->at.levels, have, sizeof *at.levels);
    copy(at.links0, index->at.links0, have, index->M0 * sizeof *at.links0);
    copy(at.parents0, index->at.parents0, have, sizeof *at.parents0);
    copy(at.upper_first, index->at.upper_first, have, sizeof *at.upper_first);
    release_columns(&index->at);
    index->at = at;
    index->capacity = (uint32_t)capacity;
    return CARAG_OK;
}

static carag_status reserve_upper(carag_index *index, size_t slots)
{
    if (slots <= index->upper_capacity)
        return CARAG_OK;
    const size_t capacity = grown(index->upper_capacity, slots, CARAG_MAX_ROWS);
    uint32_t *links = carag_allocate(capacity, index->params.M * sizeof *links);
    uint32_t *parents = carag_allocate(capacity, sizeof *parents);
    if (!links || !parents) {
        carag_release(links);
        carag_release(parents);
        return CARAG_NO_MEMORY;
    }
    copy(links, index->upper_links, index->upper_count, index->params.M * sizeof *links);
    copy(parents, index->upper_parents, index->upper_count, sizeof *parents);
    carag_release(index->upper_links);
    carag_release(index->upper_parents);
    index->upper_links = links;
    index->upper_parents = parents;
    index->upper_capacity = (uint32_t)capacity;
    return CARAG_OK;
}

static carag_status reserve_map(carag_index *index, size_t rows)
{
    size_t capacity = index->map_capacity ? index->map_capacity : FIRST_CAPACITY;
    while (capacity / 2 <= rows)
        capacity *= 2;
    if (capacity == index->map_capacity)
        return CARAG_OK;
    uint32_t *map = carag_allocate(capacity, sizeof *map);
    if (!map)
        return CARAG_NO_MEMORY;
    memset(map, 0xFF, capacity * sizeof *map); /* CARAG_NONE everywhere */
    carag_release(index->map);
    index->map = map;
    index->map_capacity = capacity;
    for (uint32_t node = 0; node < index->rows; node++)
        if (!carag_word_is_deleted(atomic_load_explicit(&index->at.words[node], memory_order_relaxed)))
            carag_map_insert(index, node);
    return CARAG_OK;
}

/* Room for this many rows and upper slots in all. May leave arrays larger than before; rows are untouched. */
carag_status carag_index_reserve(carag_index *index, size_t rows, size_t upper_slots)
{
    if (rows > CARAG_MAX_ROWS || upper_slots > CARAG_MAX_ROWS)
        return CARAG_FULL;
    carag_status status = reserve_columns(index, rows);
    if (status == CARAG_OK)
        status = reserve_upper(index, upper_slots);
    if (status == CARAG_OK)
        status = reserve_map(index, rows);
    return status;
}

/* ---------------------------------------------------------------- working memory */

/* `rows` bounds the row numbers a call may meet; heaps `beam` and `results` get room for so many entries. */
carag_status carag_scratch_init(carag_scratch *scratch, const carag_index *index, size_t rows, size_t beam,
                                size_t results)
{
    const size_t words = rows / 64 + 1;
    const size_t links = (size_t)index->M0 + 1;
    *scratch = (carag_scratch){
        .visited = {.bits = carag_allocate_zeroed(words, sizeof *scratch->visited.bits),
                    .touched = carag_allocate(words, sizeof *scratch->visited.touched)},
        .candidates = {.items = carag_allocate(rows, sizeof(carag_near))},
        .beam = {.items = carag_allocate(beam, sizeof(carag_near))},
        .results = {.items = carag_allocate(results, sizeof(carag_near))},
        .shrink = carag_allocate(links, sizeof(carag_near)),
        .selected = carag_allocate(links, sizeof(carag_near)),
        .fresh = carag_allocate(links, sizeof(uint32_t)),
        .query = carag_allocate_aligned(index->stride, sizeof(float)),
    };
    if (!scratch->visited.bits || !scratch->visited.touched || !scratch->candidates.items || !scratch->beam.items ||
        !scratch->results.items || !scratch->shrink || !scratch->selected || !scratch->fresh || !scratch->query) {
        carag_scratch_destroy(scratch);
        return CARAG_NO_MEMORY;
    }
    scratch->candidates.keys = scratch->beam.keys = scratch->results.keys = index->at.keys;
    memset(scratch->query, 0, index->stride * sizeof *scratch->query);
    return CARAG_OK;
}

void carag_scratch_destroy(carag_scratch *scratch)
{
    carag_release(scratch->visited.bits);
    carag_release(scratch->visited.touched);
    carag_release(scratch->candidates.items);
    carag_release(scratch->beam.items);
    carag_release(scratch->results.items);
    carag_release(scratch->shrink);
    carag_release(scratch->selected);
    carag_release(scratch->fresh);
    carag_release_aligned(scratch->query);
    *scratch = (carag_scratch){0};
}

/* ---------------------------------------------------------------- adding */

/* Unit length, summed in double: squares of any float32 neither overflow nor vanish there. out_unit may be NULL
 * to check only. */
carag_status carag_normalise(const float *vector, uint32_t dim, float *out_unit, uint64_t row,
                             carag_fault *out_fault)
{
    double squares = 0.0;
    for (uint32_t i = 0; i < dim; i++) {
        if (!isfinite(vector[i]))
            return carag_fail(out_fault, CARAG_NOT_FINITE, row, "a vector holds a NaN or an infinity");
        squares += (double)vector[i] * (double)vector[i];
    }
    if (squares <= 0.0)
        return carag_fail(out_fault, CARAG_ZERO_VECTOR, row, "a zero vector has no direction");
    if (out_unit) {
        const double length = sqrt(squares);
        for (uint32_t i = 0; i < dim; i++)
            out_unit[i] = (float)((double)vector[i] / length);
    }
    return CARAG_OK;
}

static carag_status verify_rows(const carag_index *index, const carag_rows *rows, carag_fault *out_fault)
{
    if (rows->count > CARAG_MAX_ROWS - index->rows)
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

static size_t upper_slots_of(const carag_index *index, size_t count)
{
    size_t slots = 0;
    for (size_t i = 0; i < count; i++)
        slots += carag_level_of(index->params.seed, index->rows + (uint32_t)i, index->params.M);
    return slots;
}

/* Write and map the keys of the new rows; on a duplicate, unmap them again. Requires room for them all. */
static carag_status assign_keys(carag_index *index, const carag_rows *rows, carag_fault *out_fault)
{
    int64_t next = index->rows;
    for (size_t i = 0; i < rows->count; i++) {
        const uint32_t node = index->rows + (uint32_t)i;
        if (!rows->keys)
            while (carag_map_find(index, next) != CARAG_NONE)
                next++;
        index->at.keys[node] = rows->keys ? rows->keys[i] : next++;
        if (!carag_map_insert(index, node)) {
            while (i-- > 0)
                carag_map_remove(index, index->at.keys[index->rows + i]);
            return carag_fail(out_fault, CARAG_DUPLICATE_KEY, node - index->rows,
                              "a key is already in the index, or twice in the batch");
        }
    }
    return CARAG_OK;
}

static void append_row(carag_index *index, const carag_rows *rows, size_t i)
{
    const uint32_t node = index->rows;
    const uint32_t dim = index->params.dim;
    float *unit = index->at.vectors + (size_t)node * index->stride;
    memset(unit, 0, index->stride * sizeof *unit);
    carag_normalise(rows->vectors + i * dim, dim, unit, i, NULL);
    atomic_init(&index->at.words[node], rows->words[i]);
    index->at.public_at[node] = rows->public_at ? rows->public_at[i] : CARAG_ALWAYS_PUBLIC;
    index->at.levels[node] = carag_level_of(index->params.seed, node, index->params.M);
    index->at.upper_first[node] = index->upper_count;
    index->upper_count += index->at.levels[node];
    index->rows++;
    index->live++;
}

carag_status carag_index_add(carag_index *index, const carag_rows *rows, int64_t *out_keys, carag_fault *out_fault)
{
    carag_scratch scratch = {0};
    pthread_rwlock_wrlock(&index->lock);
    carag_status status = verify_rows(index, rows, out_fault);
    if (status != CARAG_OK)
        goto done;
    const size_t total = index->rows + rows->count;
    const size_t slots = index->upper_count + upper_slots_of(index, rows->count);
    status = carag_index_reserve(index, total, slots);
    if (status == CARAG_OK)
        status = carag_scratch_init(&scratch, index, total, index->params.ef_construction, 1);
    if (status != CARAG_OK) {
        carag_fail(out_fault, status, 0, "");
        goto done;
    }
    status = assign_keys(index, rows, out_fault);
    if (status != CARAG_OK)
        goto done;
    const uint32_t first = index->rows;
    for (size_t i = 0; i < rows->count; i++) {
        append_row(index, rows, i);
        carag_hnsw_insert(index, &scratch, index->rows - 1);
    }
    if (out_keys)
        copy(out_keys, index->at.keys + first, rows->count, sizeof *out_keys);
done:
    pthread_rwlock_unlock(&index->lock);
    carag_scratch_destroy(&scratch);
    return status;
}

/* ---------------------------------------------------------------- relabelling, deleting, looking up */

static carag_status verify_keys(const carag_index *index, const int64_t *keys, size_t count, carag_fault *out_fault)
{
    for (size_t i = 0; i < count; i++)
        if (carag_map_find(index, keys[i]) == CARAG_NONE)
            return carag_fail(out_fault, CARAG_UNKNOWN_KEY, i, "a key is not in the index");
    return CARAG_OK;
}

/* A key named twice takes the later word. */
carag_status carag_index_relabel(carag_index *index, const int64_t *keys, const uint32_t *words, size_t count,
                                 int allow_quarantine, carag_fault *out_fault)
{
    for (size_t i = 0; i < count; i++)
        if (!carag_word_is_storable(words[i], allow_quarantine != 0))
            return carag_fail(out_fault, CARAG_BAD_WORD, i, "version must be 0 or 1, bits 30 and 31 clear");
    pthread_rwlock_rdlock(&index->lock);
    const carag_status status = verify_keys(index, keys, count, out_fault);
    for (size_t i = 0; status == CARAG_OK && i < count; i++)
        atomic_store_explicit(&index->at.words[carag_map_find(index, keys[i])], words[i], memory_order_release);
    pthread_rwlock_unlock(&index->lock);
    return status;
}

/* The rows stay in the graph as stepping stones; their keys are free again. A key named twice is deleted once. */
carag_status carag_index_delete(carag_index *index, const int64_t *keys, size_t count, carag_fault *out_fault)
{
    pthread_rwlock_wrlock(&index->lock);
    const carag_status status = verify_keys(index, keys, count, out_fault);
    for (size_t i = 0; status == CARAG_OK && i < count; i++) {
        const uint32_t node = carag_map_find(index, keys[i]);
        if (node == CARAG_NONE)
            continue;
        atomic_fetch_or_explicit(&index->at.words[node], CARAG_TOMBSTONE, memory_order_release);
        carag_map_remove(index, keys[i]);
        index->live--;
    }
    pthread_rwlock_unlock(&index->lock);
    return status;
}

carag_status carag_index_get(carag_index *index, const int64_t *keys, size_t count, const carag_columns *out_columns,
                             carag_fault *out_fault)
{
    const size_t dim = index->params.dim;
    pthread_rwlock_rdlock(&index->lock);
    const carag_status status = verify_keys(index, keys, count, out_fault);
    for (size_t i = 0; status == CARAG_OK && i < count; i++) {
        const uint32_t node = carag_map_find(index, keys[i]);
        if (out_columns->vectors)
            memcpy(out_columns->vectors + i * dim, carag_vector(index, node), dim * sizeof(float));
        if (out_columns->words)
            out_columns->words[i] = atomic_load_explicit(&index->at.words[node], memory_order_acquire);
        if (out_columns->public_at)
            out_columns->public_at[i] = index->at.public_at[node];
    }
    pthread_rwlock_unlock(&index->lock);
    return status;
}

size_t carag_index_keys(carag_index *index, int64_t *out_keys, size_t room)
{
    size_t count = 0;
    pthread_rwlock_rdlock(&index->lock);
    for (uint32_t node = 0; node < index->rows && count < room; node++)
        if (!carag_word_is_deleted(atomic_load_explicit(&index->at.words[node], memory_order_relaxed)))
            out_keys[count++] = index->at.keys[node];
    pthread_rwlock_unlock(&index->lock);
    return count;
}

int carag_index_contains(carag_index *index, int64_t key)
{
    pthread_rwlock_rdlock(&index->lock);
    const bool found = carag_map_find(index, key) != CARAG_NONE;
    pthread_rwlock_unlock(&index->lock);
    return found;
}
