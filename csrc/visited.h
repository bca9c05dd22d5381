/* visited.h - the set of rows a search has scored.
 *
 * Workload: a few thousand test-and-sets per query over up to millions of rows, then a clear. A bitset (one
 * bit a row: 3 KB at 26,595 rows, in L1) with a log of the words it dirtied, so that clearing costs what was
 * touched, not the size of the index.
 */
#ifndef CARAG_VISITED_H
#define CARAG_VISITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct carag_visited {
    uint64_t *bits;    /* ceil(rows / 64) words, all zero between searches */
    uint32_t *touched; /* as many; indices of the non-zero words */
    size_t touched_count;
} carag_visited;

/* Mark a row; true if it was new. */
static inline bool carag_visited_insert(carag_visited *visited, uint32_t node)
{
    const uint32_t word = node / 64;
    const uint64_t bit = (uint64_t)1 << (node % 64);
    if (visited->bits[word] & bit)
        return false;
    if (visited->bits[word] == 0)
        visited->touched[visited->touched_count++] = word;
    visited->bits[word] |= bit;
    return true;
}

static inline bool carag_visited_has(const carag_visited *visited, uint32_t node)
{
    return (visited->bits[node / 64] >> (node % 64) & 1) != 0;
}

static inline void carag_visited_clear(carag_visited *visited)
{
    while (visited->touched_count > 0)
        visited->bits[visited->touched[--visited->touched_count]] = 0;
}

#endif
