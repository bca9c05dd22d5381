/* keymap.c - key to row number: open addressing with linear probing.
 *
 * Slots hold row numbers only; the key is read from the keys array, so a slot is 4 bytes and a table at most
 * half full costs 8 to 16 bytes a row. Removal shifts the run behind it back (Knuth, vol. 3, 6.4, Algorithm R)
 * instead of leaving markers, so lookups stay short however often rows come and go.
 */
#include "carag_internal.h"

static size_t home_slot(const carag_index *index, int64_t key)
{
    return (size_t)carag_mix((uint64_t)key ^ index->params.seed) & (index->map_capacity - 1);
}

static size_t find_slot(const carag_index *index, int64_t key)
{
    size_t slot = home_slot(index, key);
    while (index->map[slot] != CARAG_NONE && index->at.keys[index->map[slot]] != key)
        slot = (slot + 1) & (index->map_capacity - 1);
    return slot;
}

uint32_t carag_map_find(const carag_index *index, int64_t key)
{
    return index->map_capacity ? index->map[find_slot(index, key)] : CARAG_NONE;
}

bool carag_map_insert(carag_index *index, uint32_t node)
{
    const size_t slot = find_slot(index, index->at.keys[node]);
    if (index->map[slot] != CARAG_NONE)
        return false;
    index->map[slot] = node;
    return true;
}

void carag_map_remove(carag_index *index, int64_t key)
{
    const size_t last = index->map_capacity - 1;
    size_t hole = find_slot(index, key);
    for (size_t slot = (hole + 1) & last; index->map[slot] != CARAG_NONE; slot = (slot + 1) & last) {
        const size_t home = home_slot(index, index->at.keys[index->map[slot]]);
        /* Move it back unless its home lies (cyclically) in (hole, slot]. */
        if (((slot - home) & last) >= ((slot - hole) & last)) {
            index->map[hole] = index->map[slot];
            hole = slot;
        }
    }
    index->map[hole] = CARAG_NONE;
}
