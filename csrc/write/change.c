/* write/change.c - relabel and delete rows.
 *
 * Relabel and delete store one word a row and keep the class counts; the graph never changes for them, since a row that
 * no policy admits still carries a search to its neighbours. Words become visible one by one, to the next query at the
 * latest; `index->generation` is odd meanwhile, so that a reader sees that counts are half changed.
 */
#include "carag_internal.h"
#include "row/row.h"
#include "write/write.h"

#include <string.h>

/* ---------------------------------------------------------------- relabelling */

/* Move one row to another class; false when `moved` is full. Requires the class in the dictionary. */
static bool move_row(carag_catalog *catalog, uint32_t row, uint32_t class)
{
    const uint32_t before = catalog->classes[row];
    if (row < catalog->rows && !(catalog->is_moved[row / 64] >> (row % 64) & 1)) {
        const uint32_t at = atomic_load_explicit(&catalog->moved_count, memory_order_relaxed);
        if (at == catalog->moved_capacity)
            return false;
        catalog->is_moved[row / 64] |= (uint64_t)1 << (row % 64);
        catalog->moved[at] = (carag_moved){row, before}; /* not moved so far: its class is its home */
        atomic_store_explicit(&catalog->moved_count, at + 1, memory_order_release);
    }
    catalog->classes[row] = class;
    atomic_fetch_add_explicit(&catalog->live[class], 1, memory_order_release);
    atomic_fetch_sub_explicit(&catalog->live[before], 1, memory_order_release);
    return true;
}

/* Few rows: one by one in the present catalog, which has room for them all. */
static void relabel_in_place(carag_index *index, const uint32_t *rows, const uint32_t *words, size_t count)
{
    carag_view *view = atomic_load(&index->view);
    carag_catalog *catalog = view->catalog;
    carag_relabel_begin(index);
    for (size_t i = 0; i < count; i++) {
        const uint32_t row = rows[i];
        uint32_t class = carag_catalog_find(catalog, words[i], view->terms[row]);
        if (class == CARAG_NONE)
            class = carag_catalog_add(catalog, words[i], view->terms[row]);
        if (class != catalog->classes[row])
            move_row(catalog, row, class);
        atomic_store_explicit(&view->words[row], words[i], memory_order_release);
    }
    carag_relabel_end(index);
}

/* Many rows: a new catalog from a copy of the words. */
static carag_status relabel_in_new_catalog(carag_index *index, const uint32_t *rows, const uint32_t *words,
                                           size_t count)
{
    const carag_view *view = atomic_load(&index->view);
    const uint32_t total = atomic_load(&view->rows);
    _Atomic(uint32_t) *after = carag_allocate(total, sizeof *after);
    if (!after)
        return CARAG_NO_MEMORY;
    memcpy((void *)after, (const void *)view->words, total * sizeof *after);
    for (size_t i = 0; i < count; i++)
        atomic_store_explicit(&after[rows[i]], words[i], memory_order_relaxed);
    carag_relabel_begin(index);
    const carag_status status = carag_replace_catalog(index, after, 0);
    carag_relabel_end(index);
    carag_release((void *)after);
    return status;
}

static carag_status relabel_rows(carag_index *index, const uint32_t *rows, const uint32_t *words, size_t count)
{
    const carag_catalog *catalog = atomic_load(&index->view)->catalog;
    const size_t room = catalog->moved_capacity - atomic_load(&catalog->moved_count);
    const size_t classes = catalog->capacity - atomic_load(&catalog->count);
    if (count > room || count > classes)
        return relabel_in_new_catalog(index, rows, words, count);
    relabel_in_place(index, rows, words, count);
    return CARAG_OK;
}

/* The rows of the keys; a key that is unknown is a fault. */
static carag_status find_rows(carag_index *index, const int64_t *keys, size_t count, uint32_t *out_rows,
                              carag_fault *out_fault)
{
    const carag_status status = carag_map_ready(index, out_fault);
    if (status != CARAG_OK)
        return status;
    const carag_view *view = atomic_load(&index->view);
    const uint32_t rows = atomic_load(&view->rows);
    carag_map_find_many(index, view->keys, rows, keys, count, out_rows);
    for (size_t i = 0; i < count; i++)
        if (out_rows[i] == CARAG_NONE)
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
    uint32_t *rows = carag_allocate(count, sizeof *rows);
    if (!rows)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    pthread_mutex_lock(&index->writer);
    carag_status status = find_rows(index, keys, count, rows, out_fault);
    if (status == CARAG_OK) {
        status = relabel_rows(index, rows, words, count);
        if (status != CARAG_OK)
            carag_fail(out_fault, status, 0, "");
    }
    pthread_mutex_unlock(&index->writer);
    carag_release(rows);
    return status;
}

/* The rows of the selected classes, and what their words become; returns how many. */
static size_t rows_of_classes(const carag_view *view, uint32_t total, const carag_test *test, uint32_t set,
                              uint32_t clear, uint32_t *out_rows, uint32_t *out_words)
{
    const carag_catalog *catalog = view->catalog;
    uint32_t last = CARAG_NONE;
    bool last_passes = false;
    size_t count = 0;
    for (uint32_t row = 0; row < total; row++) {
        const uint32_t class = catalog->classes[row];
        if (class == CARAG_NONE)
            continue;
        if (class != last) {
            last = class;
            last_passes = carag_is_admissible(test, atomic_load_explicit(&catalog->words[class], memory_order_relaxed),
                                              catalog->terms[class]);
        }
        if (!last_passes)
            continue;
        out_rows[count] = row;
        out_words[count++] = (atomic_load_explicit(&catalog->words[class], memory_order_relaxed) & ~clear) | set;
    }
    return count;
}

carag_status carag_index_relabel_where(carag_index *index, const carag_predicate *predicate, uint32_t set,
                                       uint32_t clear, uint64_t *out_relabelled, carag_fault *out_fault)
{
    if (!carag_predicate_is_closed(predicate))
        return carag_fail(out_fault, CARAG_BAD_PREDICATE, 0, CARAG_CLOSED_PREDICATE);
    if (((set | clear) & (CARAG_CONTROL)) != 0 || (set & clear) != 0)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "set and clear take policy bits, and no bit may be in both");
    carag_test test;
    carag_test_init(&test, predicate);
    pthread_mutex_lock(&index->writer);
    const carag_view *view = atomic_load(&index->view);
    const uint32_t total = atomic_load(&view->rows);
    uint32_t *rows = carag_allocate(total, sizeof *rows);
    uint32_t *words = carag_allocate(total, sizeof *words);
    carag_status status = CARAG_NO_MEMORY;
    if (rows && words) {
        const size_t count = rows_of_classes(view, total, &test, set, clear, rows, words);
        status = relabel_rows(index, rows, words, count);
        if (status == CARAG_OK)
            *out_relabelled = count;
    }
    pthread_mutex_unlock(&index->writer);
    carag_release(rows);
    carag_release(words);
    return status == CARAG_OK ? status : carag_fail(out_fault, status, 0, "");
}

/* ---------------------------------------------------------------- deleting */

/* The rows stay in the graph as stepping stones; their keys are free again. A key named twice is deleted once. */
carag_status carag_index_delete(carag_index *index, const int64_t *keys, size_t count, carag_fault *out_fault)
{
    uint32_t *rows = carag_allocate(count, sizeof *rows);
    if (!rows)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    pthread_mutex_lock(&index->writer);
    const carag_status status = find_rows(index, keys, count, rows, out_fault);
    if (status == CARAG_OK) {
        carag_view *view = atomic_load(&index->view);
        carag_catalog *catalog = view->catalog;
        pthread_rwlock_wrlock(&index->map_lock);
        carag_relabel_begin(index);
        for (size_t i = 0; i < count; i++) {
            const uint32_t row = rows[i];
            if (catalog->classes[row] == CARAG_NONE)
                continue;
            atomic_fetch_or_explicit(&view->words[row], CARAG_TOMBSTONE, memory_order_release);
            atomic_fetch_sub_explicit(&catalog->live[catalog->classes[row]], 1, memory_order_release);
            catalog->classes[row] = CARAG_NONE;
            carag_map_remove(index, view->keys, view->keys[row]);
            atomic_fetch_sub(&index->live, 1);
        }
        carag_relabel_end(index);
        pthread_rwlock_unlock(&index->map_lock);
    }
    pthread_mutex_unlock(&index->writer);
    carag_release(rows);
    return status;
}
