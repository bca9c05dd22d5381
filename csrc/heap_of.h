/* heap_of.h - binary heaps of items of any type, without a function pointer. Define HEAP_ITEM and HEAP_ORDER, two types,
 * HEAP_NAME(what), and HEAP_ABOVE(order, a, b): whether `a` stands nearer to the top than `b`. Then include this. Heaps work
 * in the caller's memory and never allocate.
 */

static inline void HEAP_NAME(sift_down)(HEAP_ITEM *items, size_t count, HEAP_ITEM item, HEAP_ORDER order)
{
    size_t hole = 0;
    for (size_t child = 1; child < count; child = 2 * hole + 1) {
        if (child + 1 < count && HEAP_ABOVE(order, items[child + 1], items[child]))
            child++;
        if (!HEAP_ABOVE(order, items[child], item))
            break;
        items[hole] = items[child];
        hole = child;
    }
    items[hole] = item;
}

/* Requires room for one more item. */
static inline void HEAP_NAME(sift_up)(HEAP_ITEM *items, size_t count, HEAP_ITEM item, HEAP_ORDER order)
{
    size_t hole = count;
    while (hole > 0) {
        const size_t up = (hole - 1) / 2;
        if (!HEAP_ABOVE(order, item, items[up]))
            break;
        items[hole] = items[up];
        hole = up;
    }
    items[hole] = item;
}

/* Turn a heap into an array whose last item stood on top. */
static inline void HEAP_NAME(unstack)(HEAP_ITEM *items, size_t count, HEAP_ORDER order)
{
    for (; count > 1; count--) {
        const HEAP_ITEM top = items[0];
        HEAP_NAME(sift_down)(items, count - 1, items[count - 1], order);
        items[count - 1] = top;
    }
}

#undef HEAP_ITEM
#undef HEAP_NAME
#undef HEAP_ORDER
#undef HEAP_ABOVE
