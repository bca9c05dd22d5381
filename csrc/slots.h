/* slots.h - keep working memory between calls, in a few slots that any number of threads share without waiting.
 *
 * A call takes what an earlier one has given back, by atomic exchange, so that a search of a few microseconds need not
 * allocate; its contents are undefined. When all slots are full or empty, memory is released or allocated.
 */
#ifndef CARAG_SLOTS_H
#define CARAG_SLOTS_H

#include <stdatomic.h>
#include <stddef.h>

#define CARAG_SLOTS 8

typedef struct carag_slots {
    _Atomic(void *) items[CARAG_SLOTS];
} carag_slots;

/* NULL when all slots are empty. */
static inline void *carag_slots_take(carag_slots *slots)
{
    void *item = NULL;
    for (size_t slot = 0; !item && slot < CARAG_SLOTS; slot++)
        item = atomic_exchange_explicit(&slots->items[slot], NULL, memory_order_acq_rel);
    return item;
}

/* Returns what found no empty slot, for the caller to release, or NULL. */
static inline void *carag_slots_give(carag_slots *slots, void *item)
{
    for (size_t slot = 0; item && slot < CARAG_SLOTS; slot++) {
        void *empty = NULL;
        if (atomic_compare_exchange_strong_explicit(&slots->items[slot], &empty, item, memory_order_acq_rel,
                                                    memory_order_relaxed))
            return NULL;
    }
    return item;
}

#endif
