/* heap.h - the total order of answers, and binary heaps over it.
 *
 * Nearer means: larger similarity, then smaller key, then smaller row number (a deleted row may share its key
 * with a later one). The order is total, so heaps, graph and oracle agree to the last tie. Keys are read only
 * on a tie, so an entry is 8 bytes. Heaps (heap_of.h) work in the caller's memory.
 *
 * One heap type serves both ends: `candidates` keep the nearest on top, bounded `results` the farthest.
 */
#ifndef CARAG_HEAP_H
#define CARAG_HEAP_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct carag_near {
    float similarity; /* to the query; never NaN */
    uint32_t node;
} carag_near;

/* What a mapped file holds is not verified before it is scored. A product that is not a number comes last, where
 * it cannot upset the order. */
static inline float carag_ordered(float similarity)
{
    return similarity > -INFINITY ? similarity : -INFINITY; /* one instruction: maximum, NaN loses */
}

typedef enum carag_top { CARAG_NEAREST_ON_TOP, CARAG_FARTHEST_ON_TOP } carag_top;

typedef struct carag_heap {
    carag_near *items;   /* room for every entry the owner will push */
    size_t count;
    const int64_t *keys; /* by node, for ties */
} carag_heap;

static inline bool carag_is_nearer(const int64_t *keys, carag_near a, carag_near b)
{
    if (a.similarity > b.similarity || a.similarity < b.similarity)
        return a.similarity > b.similarity;
    if (keys[a.node] != keys[b.node])
        return keys[a.node] < keys[b.node];
    return a.node < b.node;
}

typedef struct carag_heap_order {
    const int64_t *keys;
    carag_top top;
} carag_heap_order;

static inline bool carag_heap_above(carag_heap_order order, carag_near a, carag_near b)
{
    return order.top == CARAG_NEAREST_ON_TOP ? carag_is_nearer(order.keys, a, b) : carag_is_nearer(order.keys, b, a);
}

#define HEAP_ITEM carag_near
#define HEAP_NAME(what) carag_near_##what
#define HEAP_ORDER carag_heap_order
#define HEAP_ABOVE carag_heap_above
#include "heap_of.h"

static inline void carag_heap_push(carag_heap *heap, carag_top top, carag_near item)
{
    carag_near_sift_up(heap->items, heap->count++, item, (carag_heap_order){heap->keys, top});
}

/* Requires count > 0. */
static inline carag_near carag_heap_pop(carag_heap *heap, carag_top top)
{
    const carag_near first = heap->items[0];
    const carag_near last = heap->items[--heap->count];
    carag_near_sift_down(heap->items, heap->count, last, (carag_heap_order){heap->keys, top});
    return first;
}

/* Would a heap of the `limit` nearest take this item? Requires CARAG_FARTHEST_ON_TOP order, limit > 0. */
static inline bool carag_heap_accepts(const carag_heap *heap, size_t limit, carag_near item)
{
    return heap->count < limit || carag_is_nearer(heap->keys, item, heap->items[0]);
}

/* Keep the `limit` nearest. Requires carag_heap_accepts. */
static inline void carag_heap_keep(carag_heap *heap, size_t limit, carag_near item)
{
    if (heap->count < limit)
        carag_heap_push(heap, CARAG_FARTHEST_ON_TOP, item);
    else
        carag_near_sift_down(heap->items, heap->count, item, (carag_heap_order){heap->keys, CARAG_FARTHEST_ON_TOP});
}

/* Turn a farthest-on-top heap into an array, nearest first. */
static inline void carag_heap_sort(carag_heap *heap)
{
    carag_near_unstack(heap->items, heap->count, (carag_heap_order){heap->keys, CARAG_FARTHEST_ON_TOP});
}

#endif
