/* row/keymap.c - find the row of a key: open addressing with linear probing.
 *
 * Slots hold row numbers only; the key is read from the keys array, so a slot is 4 bytes and a table at most
 * half full costs 8 to 16 bytes a row. Removal shifts the run behind it back (Knuth, vol. 3, 6.4, Algorithm R)
 * instead of leaving markers, so lookups stay short however often rows come and go.
 *
 * Rows that are being added are in the map before they are published. A reader passes the number of rows of its view,
 * and rows from there on are not there yet (nor in its keys array).
 */
#include "carag_internal.h"
#include "row/row.h"

#include <string.h>

#define FIRST_CAPACITY 64 /* slots of the smallest map */
#define LOOKUPS_AHEAD 16  /* keys whose slots are fetched in advance: each lookup waits for memory three times */

static size_t home_slot(const carag_index *index, int64_t key)
{
    return (size_t)carag_mix((uint64_t)key ^ index->params.seed) & (index->map_capacity - 1);
}

static size_t find_slot(const carag_index *index, const int64_t *keys, uint32_t rows, int64_t key)
{
    size_t slot = home_slot(index, key);
    while (index->map[slot] != CARAG_NONE && (index->map[slot] >= rows || keys[index->map[slot]] != key))
        slot = (slot + 1) & (index->map_capacity - 1);
    return slot;
}

uint32_t carag_map_find(const carag_index *index, const int64_t *keys, uint32_t rows, int64_t key)
{
    return index->map_capacity ? index->map[find_slot(index, keys, rows, key)] : CARAG_NONE;
}

void carag_map_find_many(const carag_index *index, const int64_t *keys, uint32_t rows, const int64_t *wanted,
                         size_t count, uint32_t *out_rows)
{
    for (size_t i = 0; i < count; i++) {
        if (index->map_capacity && i + 2 * LOOKUPS_AHEAD < count)
            __builtin_prefetch(&index->map[home_slot(index, wanted[i + 2 * LOOKUPS_AHEAD])]);
        if (index->map_capacity && i + LOOKUPS_AHEAD < count) {
            const uint32_t row = index->map[home_slot(index, wanted[i + LOOKUPS_AHEAD])];
            if (row < rows)
                __builtin_prefetch(&keys[row]);
        }
        out_rows[i] = carag_map_find(index, keys, rows, wanted[i]);
    }
}

/* Requires room. False when the key is taken. */
bool carag_map_insert(carag_index *index, const int64_t *keys, uint32_t row)
{
    const size_t slot = find_slot(index, keys, CARAG_NONE, keys[row]);
    if (index->map[slot] != CARAG_NONE)
        return false;
    index->map[slot] = row;
    return true;
}

/* Requires presence. */
void carag_map_remove(carag_index *index, const int64_t *keys, int64_t key)
{
    const size_t last = index->map_capacity - 1;
    size_t hole = find_slot(index, keys, CARAG_NONE, key);
    for (size_t slot = (hole + 1) & last; index->map[slot] != CARAG_NONE; slot = (slot + 1) & last) {
        const size_t home = home_slot(index, keys[index->map[slot]]);
        /* Move it back unless its home lies (cyclically) in (hole, slot]. */
        if (((slot - home) & last) >= ((slot - hole) & last)) {
            index->map[hole] = index->map[slot];
            hole = slot;
        }
    }
    index->map[hole] = CARAG_NONE;
}

/* Replace the map by one with room for `wanted` live rows, filled with those there are; the lock is the caller's. On
 * failure, CARAG_CORRUPT when two rows have one key, the map is as before. */
static carag_status make_map(carag_index *index, const carag_view *view, uint32_t rows, size_t wanted)
{
    size_t capacity = index->map_capacity ? index->map_capacity : FIRST_CAPACITY;
    while (capacity / 2 <= wanted)
        capacity *= 2;
    uint32_t *map = carag_allocate(capacity, sizeof *map);
    if (!map)
        return CARAG_NO_MEMORY;
    memset(map, 0xFF, capacity * sizeof *map); /* CARAG_NONE everywhere */
    uint32_t *const before = index->map;
    const size_t capacity_before = index->map_capacity;
    index->map = map;
    index->map_capacity = capacity;
    uint32_t row = 0;
    for (; row < rows; row++) {
        if (row + LOOKUPS_AHEAD < rows)
            __builtin_prefetch(&map[home_slot(index, view->keys[row + LOOKUPS_AHEAD])], 1);
        if (!carag_word_is_deleted(atomic_load_explicit(&view->words[row], memory_order_relaxed)) &&
            !carag_map_insert(index, view->keys, row))
            break;
    }
    if (row < rows) {
        index->map = before;
        index->map_capacity = capacity_before;
        carag_release(map);
        return CARAG_CORRUPT;
    }
    carag_release(before);
    return CARAG_OK;
}

/* Make the map of an index opened from a file, once, when a key is first looked up: a million keys take longer than
 * everything else that opening a mapped file does. Writers call it before they change words or keys. */
carag_status carag_map_ready(carag_index *index, carag_fault *out_fault)
{
    if (!atomic_load_explicit(&index->map_waits, memory_order_acquire))
        return CARAG_OK;
    carag_status status = CARAG_OK;
    pthread_rwlock_wrlock(&index->map_lock);
    if (atomic_load_explicit(&index->map_waits, memory_order_relaxed)) {
        const carag_reader reader = carag_read_begin(index);
        status = make_map(index, reader.view, reader.rows, reader.rows);
        carag_read_end(&reader);
        if (status == CARAG_OK)
            atomic_store_explicit(&index->map_waits, false, memory_order_release);
    }
    pthread_rwlock_unlock(&index->map_lock);
    if (status == CARAG_OK)
        return status;
    carag_fail(out_fault, status, 0, status == CARAG_CORRUPT ? "two live rows have the same key" : "");
    if (out_fault && status == CARAG_CORRUPT)
        out_fault->where = "keys";
    return status;
}

/* Room for `wanted` live rows; requires the first `rows` of the keys array. Takes the lock to swap tables. */
carag_status carag_map_reserve(carag_index *index, const carag_view *view, uint32_t rows, size_t wanted)
{
    if (index->map_capacity / 2 > wanted)
        return CARAG_OK;
    pthread_rwlock_wrlock(&index->map_lock);
    const carag_status status = make_map(index, view, rows, wanted);
    pthread_rwlock_unlock(&index->map_lock);
    return status;
}
