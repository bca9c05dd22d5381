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
 *
 * A second search, under a wider predicate, looks only at rows that the first did not (carag_scan_rest), and starts from
 * what that found: both together read each row once.
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

/* Those rows that the test does not admit; mostly all, which their words tell. */
static size_t keep_undone(const carag_reader *reader, const carag_test *done, uint32_t *rows, size_t count)
{
    uint32_t passing[CARAG_BLOCK];
    size_t kept = 0;
    if (carag_kernel_get()->admit(reader->view->words, rows, count, done->predicate->pairs,
                                  done->predicate->pair_count, passing) == 0)
        return count;
    for (size_t i = 0; i < count; i++)
        if (!carag_is_open(reader, done, rows[i], memory_order_relaxed))
            rows[kept++] = rows[i];
    return kept;
}

/* Leave the `limit` nearest in scratch->found, a heap: of the selection's rows, but for those that `done` admits, and of
 * the `kept` first rows in scratch->kept, whose lower bounds are in scratch->found. No class of the selection is one
 * that `done` admits, so that only rows which left their class, or never were in one, are asked. */
static void scan(const carag_reader *reader, const carag_selection *selection, const carag_test *done,
                 carag_scratch *scratch, size_t kept, size_t limit, carag_effort *effort)
{
    const carag_kernel *kernel = carag_kernel_get();
    const bool is_direct = carag_is_direct(selection->admissible, limit);
    if (!is_direct)
        carag_query_encode(reader->index, &reader->view->codes, &scratch->query);
    carag_walk walk = carag_walk_begin(reader, selection);
    for (size_t count; (count = carag_walk_next(&walk, kernel, scratch->numbers)) > 0;) {
        if (done && (walk.moved_end > 0 || walk.class_at == selection->count))
            count = keep_undone(reader, done, scratch->numbers, count);
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

/* Leave the `limit` nearest admissible rows in scratch->found, a heap. Requires room for them; limit > 0. */
void carag_scan_exact(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch,
                      size_t limit, carag_effort *effort)
{
    scratch->found.count = 0;
    scan(reader, selection, NULL, scratch, 0, limit, effort);
}

/* The same where an exact search under the test `done` has just left its nearest rows in scratch->found, in order:
 * `rest` are the classes that it did not look at. If some of its rows were `left_out`, false where one of them might be
 * among the nearest here, which takes rows that it found and this search does not admit: what was found is then void.
 */
bool carag_scan_rest(const carag_reader *reader, const carag_selection *rest, const carag_test *done, bool left_out,
                     carag_scratch *scratch, size_t limit, carag_effort *effort)
{
    carag_heap *found = &scratch->found;
    const size_t known = found->count;
    const carag_near horizon = known > 0 ? found->items[known - 1] : (carag_near){0};
    size_t kept = 0;
    for (size_t i = 0; i < known; i++)
        if (carag_is_open(reader, &rest->test, found->items[i].node, memory_order_relaxed))
            scratch->kept[kept++] = found->items[i];
    found->count = 0;
    for (size_t i = 0; i < kept; i++)
        raise_floor(found, limit, scratch->kept[i]);
    scan(reader, rest, done, scratch, kept, limit, effort);
    return !left_out || (found->count == limit && !carag_is_nearer(found->keys, horizon, found->items[0]));
}
