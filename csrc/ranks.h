/* ranks.h - the k nearest in a row of similarities.
 *
 * Workload of the bulk build: k of some 16 out of some 500, for every row and leaf, thousands of millions of
 * similarities in all. So most are only ever looked at by vector instructions: maxima of small groups give a
 * floor that few but the k nearest reach, and only what reaches it becomes a rank and is selected from. A
 * rank is one integer, larger the nearer; ties go to the smaller index, so ranks are distinct and the k
 * nearest are a fact. /
 */
#ifndef CARAG_RANKS_H
#define CARAG_RANKS_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CARAG_RANK_LANES 16 /* a constant, so that compilers make vectors of the inner loops */
#define CARAG_RANK_ROWS 8   /* similarities, CARAG_RANK_LANES apart, that share a maximum */
#define CARAG_RANK_STRIPE (CARAG_RANK_LANES * CARAG_RANK_ROWS)

/* A number that is larger the nearer: similarity first, then the smaller index. */
static inline uint64_t carag_rank(float similarity, uint32_t index)
{
    uint32_t bits;
    memcpy(&bits, &similarity, sizeof bits);
    bits ^= bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31;
    return (uint64_t)bits << 32 | (UINT32_MAX - index);
}

static inline float carag_rank_similarity(uint64_t rank)
{
    uint32_t bits = (uint32_t)(rank >> 32);
    bits ^= bits >> 31 ? UINT32_C(1) << 31 : UINT32_MAX;
    float similarity;
    memcpy(&similarity, &bits, sizeof similarity);
    return similarity;
}

static inline uint32_t carag_rank_index(uint64_t rank)
{
    return UINT32_MAX - (uint32_t)rank;
}

/* Move the k largest to the front (quickselect; the values are distinct). Requires 0 < k < count. */
static inline void carag_ranks_keep(uint64_t *values, size_t count, size_t k)
{
    size_t begin = 0;
    size_t end = count;
    while (end - begin > 1) {
        const uint64_t middle = values[begin + (end - begin - 1) / 2];
        size_t low = begin;
        size_t high = end - 1;
        for (;;) {
            while (values[low] > middle)
                low++;
            while (values[high] < middle)
                high--;
            if (low >= high)
                break;
            const uint64_t swapped = values[low];
            values[low++] = values[high];
            values[high--] = swapped;
        }
        const size_t cut = high + 1;
        if (cut == k)
            return;
        if (cut < k)
            begin = cut;
        else
            end = cut;
    }
}

static inline void carag_ranks_sort(uint64_t *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const uint64_t value = values[i];
        size_t hole = i;
        for (; hole > 0 && values[hole - 1] < value; hole--)
            values[hole] = values[hole - 1];
        values[hole] = value;
    }
}

/* A similarity that at least k reach, and not many more: the k-th largest of the maxima of groups of
 * CARAG_RANK_ROWS. Minus infinity when there are fewer groups than k. */
static inline float carag_ranks_floor(const float *similarities, uint32_t padded, size_t k, uint64_t *maxima)
{
    if (padded / CARAG_RANK_ROWS < k)
        return -INFINITY;
    size_t count = 0;
    for (uint32_t from = 0; from < padded; from += CARAG_RANK_STRIPE) {
        float largest[CARAG_RANK_LANES];
        memcpy(largest, similarities + from, sizeof largest);
        for (uint32_t i = CARAG_RANK_LANES; i < CARAG_RANK_STRIPE; i += CARAG_RANK_LANES)
            for (uint32_t l = 0; l < CARAG_RANK_LANES; l++) {
                const float next = similarities[from + i + l];
                largest[l] = largest[l] > next ? largest[l] : next;
            }
        for (uint32_t l = 0; l < CARAG_RANK_LANES; l++)
            maxima[count++] = carag_rank(largest[l], from + l);
    }
    if (k < count)
        carag_ranks_keep(maxima, count, k);
    uint64_t least = maxima[0];
    for (size_t i = 1; i < k; i++)
        least = maxima[i] < least ? maxima[i] : least;
    return carag_rank_similarity(least);
}

/* The ranks of the k nearest of similarities[0 .. n), in no order; returns how many. Those at minus
 * infinity do not count. Requires room for whole stripes in both arrays; best is scratch past what is
 * returned. */
static inline size_t carag_ranks_nearest(float *similarities, uint32_t n, size_t k, uint64_t *best)
{
    const uint32_t padded = (n + CARAG_RANK_STRIPE - 1) / CARAG_RANK_STRIPE * CARAG_RANK_STRIPE;
    for (uint32_t i = n; i < padded; i++)
        similarities[i] = -INFINITY;
    float floor = carag_ranks_floor(similarities, padded, k, best);
    floor = floor < -FLT_MAX ? -FLT_MAX : floor;
    size_t count = 0;
    for (uint32_t from = 0; from < padded; from += CARAG_RANK_LANES) {
        int reached = 0;
        for (uint32_t i = 0; i < CARAG_RANK_LANES; i++)
            reached |= similarities[from + i] >= floor;
        for (uint32_t i = 0; reached && i < CARAG_RANK_LANES; i++)
            if (similarities[from + i] >= floor)
                best[count++] = carag_rank(similarities[from + i], from + i);
    }
    if (count > k)
        carag_ranks_keep(best, count, k);
    return count < k ? count : k;
}

#endif
