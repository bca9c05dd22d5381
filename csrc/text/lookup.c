/* text/lookup.c - find the number of a key: open addressing with linear probing, keys kept beside the numbers.
 *
 * Removal shifts the run behind it back (Knuth, vol. 3, 6.4, Algorithm R), as in row/keymap.c.
 */
#include "carag_internal.h"
#include "text/text.h"

#include <string.h>

#define FIRST_CAPACITY 64 /* slots of the smallest map */

static size_t home_of(const carag_lookup *lookup, int64_t key)
{
    return (size_t)carag_mix((uint64_t)key) & (lookup->capacity - 1);
}

static size_t slot_of(const carag_lookup *lookup, int64_t key)
{
    size_t slot = home_of(lookup, key);
    while (lookup->slots[slot].key != -1 && lookup->slots[slot].key != key)
        slot = (slot + 1) & (lookup->capacity - 1);
    return slot;
}

/* CARAG_NONE: it is not there. */
uint32_t carag_lookup_find(const carag_lookup *lookup, int64_t key)
{
    if (lookup->capacity == 0 || key < 0)
        return CARAG_NONE;
    const size_t slot = slot_of(lookup, key);
    return lookup->slots[slot].key == key ? lookup->slots[slot].number : CARAG_NONE;
}

/* Requires room and key >= 0. False when the key is taken. */
bool carag_lookup_insert(carag_lookup *lookup, int64_t key, uint32_t number)
{
    const size_t slot = slot_of(lookup, key);
    if (lookup->slots[slot].key == key)
        return false;
    lookup->slots[slot].key = key;
    lookup->slots[slot].number = number;
    lookup->count++;
    return true;
}

/* Requires presence. */
void carag_lookup_remove(carag_lookup *lookup, int64_t key)
{
    const size_t last = lookup->capacity - 1;
    size_t hole = slot_of(lookup, key);
    for (size_t slot = (hole + 1) & last; lookup->slots[slot].key != -1; slot = (slot + 1) & last) {
        const size_t home = home_of(lookup, lookup->slots[slot].key);
        /* Move it back unless its home lies (cyclically) in (hole, slot]. */
        if (((slot - home) & last) >= ((slot - hole) & last)) {
            lookup->slots[hole] = lookup->slots[slot];
            hole = slot;
        }
    }
    lookup->slots[hole].key = -1;
    lookup->count--;
}

/* A map of the same keys with room for `wanted`; its slots are NULL where the present one has that room. */
carag_status carag_lookup_grown(const carag_lookup *from, size_t wanted, carag_lookup *out)
{
    *out = (carag_lookup){.capacity = FIRST_CAPACITY};
    if (from->capacity / 2 > wanted)
        return CARAG_OK;
    while (out->capacity / 2 <= wanted)
        out->capacity *= 2;
    out->slots = carag_allocate(out->capacity, sizeof *out->slots);
    if (!out->slots)
        return CARAG_NO_MEMORY;
    memset(out->slots, 0xFF, out->capacity * sizeof *out->slots); /* key -1 everywhere */
    for (size_t slot = 0; slot < from->capacity; slot++)
        if (from->slots[slot].key != -1)
            carag_lookup_insert(out, from->slots[slot].key, from->slots[slot].number);
    return CARAG_OK;
}

/* The documents that a caller names, each once; the slots are the caller's. */
carag_status carag_lookup_of(const int64_t *documents, size_t count, carag_lookup *out, carag_fault *out_fault)
{
    const carag_lookup none = {0};
    for (size_t i = 0; i < count; i++)
        if (documents[i] < 0)
            return carag_fail(out_fault, CARAG_BAD_KEY, i, "documents must be 0 or more");
    if (carag_lookup_grown(&none, count, out) != CARAG_OK)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    for (size_t i = 0; i < count; i++)
        carag_lookup_insert(out, documents[i], 0);
    return CARAG_OK;
}
