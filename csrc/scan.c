/* scan.c - the exact search: every admissible row, no other, and the k nearest of them.
 *
 * The oracle of the graph, the plan for small admissible sets, and where every graph search ends that costs too
 * much or finds too little. It reads the words of all rows (4 bytes each) and the vectors of admissible rows
 * only, so its answer does not depend on what the others hold.
 */
#include "carag_internal.h"

uint64_t carag_count_admissible(const carag_index *index, const carag_predicate *predicate)
{
    uint64_t admissible = 0;
    for (uint32_t node = 0; node < index->rows; node++)
        admissible += carag_is_open(index, predicate, node, memory_order_relaxed);
    return admissible;
}

/* Leave the `limit` nearest admissible rows in results, a heap. Requires room for them; limit > 0. */
void carag_scan(const carag_index *index, carag_heap *results, const float *query,
                const carag_predicate *predicate, size_t limit, carag_effort *effort)
{
    const carag_dot_fn dot = carag_kernel_dot();
    results->count = 0;
    for (uint32_t node = 0; node < index->rows; node++) {
        if (!carag_is_open(index, predicate, node, memory_order_relaxed))
            continue;
        const carag_near near = {carag_similarity(index, dot, query, node), node};
        if (carag_heap_accepts(results, limit, near))
            carag_heap_keep(results, limit, near);
        effort->distance_computations++;
    }
}
