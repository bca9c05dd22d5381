/* sketch.c - the fast scan: one-bit codes of the admissible rows, then eight-bit codes, then vectors.
 *
 * For each block of admissible rows the one-bit codes give an estimate and its standard deviation (bits.c). A row whose
 * estimate plus CONFIDENCE deviations is below the floor is passed over; the others are scored by their eight-bit code,
 * and the best SPARE of them, somewhat more than wanted, at last by what is kept of their vectors. The floor is the
 * lowest eight-bit score among those, so it rises as better rows are found, and how many rows survive follows the data:
 * no number of candidates is tuned to a collection.
 *
 * Not exact, by two margins: a true neighbour is lost when its estimate errs by more than CONFIDENCE deviations beyond
 * its own margin over the floor, or when eight-bit rounding moves it more than SPARE ranks. bench/ann measures what that
 * costs: recall stays above 0.99 in every cell.
 *
 * The order of rows does not change what the final floor lets through, and integer sums are the same on every kernel,
 * so the answer does not depend on the machine.
 */
#include "carag_internal.h"

#include <math.h>

#define CONFIDENCE 1.8F
#define SPARE_ROWS 4

size_t carag_sketch_room(size_t most)
{
    return most + most / 8 + SPARE_ROWS;
}

/* The eight-bit scores of the rows that came through; requires their uppers at or above the floor of then. */
static void score_codes(const carag_reader *reader, carag_scratch *scratch, const uint32_t *rows, size_t count,
                        size_t room)
{
    const carag_codes *codes = &reader->view->codes;
    const carag_query *query = &scratch->query;
    carag_kernel_get()->dot8(codes->bytes, codes->stride, rows, count, query->codes, codes->stride, scratch->dots);
    for (size_t i = 0; i < count; i++) {
        const float score = carag_ordered(query->scale * codes->scales[rows[i]] * (float)scratch->dots[i]);
        const carag_near near = {score, rows[i]};
        if (carag_heap_accepts(&scratch->found, room, near))
            carag_heap_keep(&scratch->found, room, near);
    }
}

/* Leave about the `most` nearest admissible rows in scratch->found. Requires room for carag_sketch_room(most) there. */
void carag_scan_sketch(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch,
                       size_t most, carag_effort *effort)
{
    const carag_kernel *kernel = carag_kernel_get();
    const carag_bits *bits = &reader->view->bits;
    carag_query *query = &scratch->query;
    const size_t room = carag_sketch_room(most);
    carag_heap *found = &scratch->found;
    carag_walk walk = carag_walk_begin(reader, selection);
    found->count = 0;
    carag_query_sketch(bits, reader->index->params.dim, query, CONFIDENCE);
    for (size_t count; (count = carag_walk_next(&walk, kernel, scratch->numbers)) > 0;) {
        const float floor = found->count == room ? found->items[0].similarity : -INFINITY;
        kernel->bits(bits->codes, bits->words, scratch->numbers, count, &query->bits, scratch->dots);
        const size_t left =
            kernel->screen(bits->factors, scratch->numbers, scratch->dots, count, query->base, query->slope,
                           query->intercept, query->tilt, query->spread, floor, scratch->numbers, scratch->scores);
        score_codes(reader, scratch, scratch->numbers, left, room);
        effort->estimates += count;
        effort->distance_computations += left;
    }
    const size_t kept = found->count;
    for (size_t i = 0; i < kept; i++)
        scratch->kept[i] = (carag_near){INFINITY, found->items[i].node};
    carag_rerank(reader, scratch, scratch->kept, kept, most, effort);
}
