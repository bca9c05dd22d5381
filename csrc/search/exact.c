/* search/exact.c - find the exact answer: look at every admissible row and no other, to the last bit of float32.
 *
 *   1. The eight-bit code of each admissible row gives its score up to a bound that code/bytes.c proves, so an upper
 *      and a lower bound. The limit-th best lower bound so far is a floor: a row whose upper bound is below it cannot
 *      be among the `limit` best, whatever its vector says.
 *   2. Rows not ruled out are scored over what is kept of their vectors; those are the answer.
 *
 * A code is a quarter of a float32 vector, and few rows come to step 2 (their number is in the statistics), so this
 * reads about a quarter of what a plain scan reads and returns the same bits. Where most rows would be kept anyway
 * (few admissible, or all wanted) step 1 is left out.
 *
 * Nothing of an inadmissible row is read but its word, and its terms; codes and scores depend on their own row alone.
 * So the answer is a function of the admissible rows: this is the certified plan, too.
 */
#include "carag_internal.h"
#include "search/search.h"

#include <math.h>

#define MAX_LENGTH 1.001F /* no kept vector and no query is longer */

/* The k-th best lower bound: a bounded heap of them, in which row numbers only break ties. */
static void raise_floor(carag_heap *lowers, size_t limit, carag_near lower)
{
    if (carag_heap_accepts(lowers, limit, lower))
        carag_heap_keep(lowers, limit, lower);
}

/* Step 1 for one block: append the rows not ruled out to scratch->kept. */
static size_t bound_block(const carag_reader *reader, carag_scratch *scratch, const uint32_t *rows, size_t count,
                          size_t limit, size_t kept)
{
    const carag_codes *codes = &reader->view->codes;
    const carag_query *query = &scratch->query;
    carag_heap *lowers = &scratch->found;
    /* Float32 rounding of the kept score (a fold over dim / 64 steps and six levels) and of the lines below. */
    const float rounding = (float)(reader->index->params.dim / CARAG_LANES + 32) * 0x1p-23F;
    const float fixed = query->error * MAX_LENGTH + rounding;
    carag_kernel_get()->dot8(codes->bytes, codes->stride, rows, count, query->codes, codes->stride, scratch->dots);
    float floor = lowers->count == limit ? lowers->items[0].similarity : -INFINITY;
    for (size_t i = 0; i < count; i++) {
        const uint32_t row = rows[i];
        const float score = query->scale * codes->scales[row] * (float)scratch->dots[i];
        const float bound = codes->errors[row] * (MAX_LENGTH + query->error) + fixed;
        if (score + bound < floor)
            continue;
        scratch->kept[kept++] = (carag_near){score + bound, row};
        raise_floor(lowers, limit, (carag_near){carag_ordered(score - bound), row});
        if (lowers->count == limit)
            floor = lowers->items[0].similarity;
    }
    return kept;
}

/* Leave the `limit` nearest admissible rows in scratch->found, a heap. Requires room for them; limit > 0. */
void carag_scan_exact(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch,
                      size_t limit, carag_effort *effort)
{
    const carag_kernel *kernel = carag_kernel_get();
    const bool is_direct = carag_is_direct(selection->admissible, limit);
    carag_walk walk = carag_walk_begin(reader, selection);
    size_t kept = 0;
    scratch->found.count = 0;
    for (size_t count; (count = carag_walk_next(&walk, kernel, scratch->numbers)) > 0;) {
        if (is_direct) {
            for (size_t i = 0; i < count; i++)
                scratch->kept[kept++] = (carag_near){INFINITY, scratch->numbers[i]};
            continue;
        }
        kept = bound_block(reader, scratch, scratch->numbers, count, limit, kept);
        effort->distance_computations += count;
    }
    if (!is_direct && scratch->found.count == limit) {
        const float floor = scratch->found.items[0].similarity;
        size_t left = 0;
        for (size_t i = 0; i < kept; i++)
            if (!(scratch->kept[i].similarity < floor))
                scratch->kept[left++] = scratch->kept[i];
        kept = left;
    }
    carag_rerank(reader, scratch, scratch->kept, kept, limit, effort);
}
