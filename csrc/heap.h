/* heap.h - the total order of answers, and binary heaps over it.
 *
 * Nearer means: larger similarity, then smaller key, then smaller row number (a deleted row may share its key
 * with a later one). The order is total, so heaps, graph and oracle agree to the last tie. Keys are read only
 * on a tie, so an entry is 8 bytes. Heaps work in the caller's memory and never allocate.
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

static inline bool carag_heap_above(const carag_heap *heap, carag_top top, carag_near a, carag_near b)
{
    return top == CARAG_NEAREST_ON_TOP ? carag_is_nearer(heap->keys, a, b) : carag_is_nearer(heap->keys, b, a);
}

static inline void carag_heap_sift_down(carag_heap *heap, carag_top top, carag_near item)
{
    size_t hole = 0;
    for (size_t child = 1; child < heap->count; child = 2 * hole + 1) {
        if (child + 1 < heap->count && carag_heap_above(heap, top, heap->items[child + 1], heap->items[child]))
            child++;
        if (!carag_heap_above(heap, top, heap->items[child], item))
            break;
        heap->items[hole] = heap->items[child];
        hole = child;
    }
    heap->items[hole] = item;
}

static inline void carag_heap_push(carag_heap *heap, carag_top top, carag_near item)
{
    size_t hole = heap->count++;
    while (hole > 0) {
        const size_t up = (hole - 1) / 2;
        if (!carag_heap_above(heap, top, item, heap->items[up]))
            break;
        heap->items[hole] = heap->items[up];
        hole = up;
    }
    heap->items[hole] = item;
}

/* Requires count > 0. */
static inline carag_near carag_heap_pop(carag_heap *heap, carag_top top)
{
    const carag_near first = heap->items[0];
    const carag_near last = heap->items[--heap->count];
    if (heap->count > 0)
        carag_heap_sift_down(heap, top, last);
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
        carag_heap_sift_down(heap, CARAG_FARTHEST_ON_TOP, item);
}

/* Turn a farthest-on-top heap into an array, nearest first. */
static inline void carag_heap_sort(carag_heap *heap)
{
    const size_t count = heap->count;
    while (heap->count > 1) {
        const carag_near farthest = carag_heap_pop(heap, CARAG_FARTHEST_ON_TOP);
        heap->items[heap->count] = farthest;
    }
    heap->count = count;
}

#endif
