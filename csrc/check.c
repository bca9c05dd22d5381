/* check.c - the invariants of an index, proved by looking.
 *
 * One function for the tests, for the loader (which trusts no file) and for anyone who doubts. Every invariant
 * is local, so the cost is O(rows x links) and no search is made. That all rows can be reached follows from
 * TREE: on each layer the parents, each an earlier row, lead from every row to the layer's first, and the links
 * back lead from it to every row.
 */
#include "carag_internal.h"

#include <math.h>

enum { COUNTS, WORDS, VECTORS, KEYS, LEVELS, ENTRY, LINKS, TREE, INVARIANTS };

static const char *const names[INVARIANTS] = {
    [COUNTS] = "counts: live is the number of rows not deleted",
    [WORDS] = "words: the schema version is 0 or 1",
    [VECTORS] = "vectors: finite, of unit length, padding zero",
    [KEYS] = "keys: not negative; each live key leads to its row",
    [LEVELS] = "levels: what (seed, row) gives; upper slots are numbered in row order",
    [ENTRY] = "entry: the entry point is on the top layer",
    [LINKS] = "links: to other rows of the layer, none twice, unused slots last",
    [TREE] = "tree: every row but a layer's first shares a two-way link with its parent, an earlier row",
};

const char *carag_invariant_name(uint32_t bit)
{
    return bit < INVARIANTS ? names[bit] : "";
}

#define UNIT_TOLERANCE 1e-5 /* of the squared length; rounding to float32 leaves about 1e-7 */

static bool vector_is_sound(const carag_index *index, uint32_t node)
{
    const float *vector = carag_vector(index, node);
    double squares = 0.0;
    for (size_t i = 0; i < index->params.dim; i++)
        squares += (double)vector[i] * (double)vector[i];
    for (size_t i = index->params.dim; i < index->stride; i++)
        if (vector[i] < 0.0F || vector[i] > 0.0F || isnan(vector[i]))
            return false;
    return fabs(squares - 1.0) <= UNIT_TOLERANCE; /* false for NaN and infinity */
}

static bool word_is_sound(uint32_t word)
{
    return carag_word_is_storable(word & ~CARAG_TOMBSTONE, true);
}

static uint32_t occurrences(const uint32_t *links, uint32_t limit, uint32_t node)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < limit; i++)
        count += links[i] == node;
    return count;
}

static bool links_are_sound(const carag_index *index, uint32_t node, uint32_t layer)
{
    const uint32_t limit = carag_degree_limit(index, layer);
    const uint32_t *links = carag_links(index, node, layer);
    uint32_t count = 0;
    while (count < limit && links[count] != CARAG_NONE)
        count++;
    for (uint32_t i = count; i < limit; i++)
        if (links[i] != CARAG_NONE)
            return false;
    for (uint32_t i = 0; i < count; i++)
        if (links[i] >= index->rows || links[i] == node || index->at.levels[links[i]] < layer ||
            occurrences(links, count, links[i]) != 1)
            return false;
    return true;
}

/* Requires sound links everywhere. */
static bool parent_is_sound(const carag_index *index, uint32_t node, uint32_t layer, bool is_first)
{
    const uint32_t limit = carag_degree_limit(index, layer);
    const uint32_t parent = *carag_parent(index, node, layer);
    if (is_first)
        return parent == CARAG_NONE;
    return parent < node && index->at.levels[parent] >= layer &&
           occurrences(carag_links(index, node, layer), limit, parent) == 1 &&
           occurrences(carag_links(index, parent, layer), limit, node) == 1;
}

/* Rows, keys and levels; returns the broken invariants, and the first row that breaks one. */
static uint32_t check_rows(const carag_index *index, uint32_t *out_row)
{
    uint32_t broken = 0;
    uint32_t live = 0;
    uint64_t slots = 0;
    uint32_t top = 0;
    for (uint32_t node = 0; node < index->rows; node++) {
        const uint32_t before = broken;
        const uint32_t word = atomic_load_explicit(&index->at.words[node], memory_order_relaxed);
        const uint8_t level = index->at.levels[node];
        if (!word_is_sound(word))
            broken |= 1U << WORDS;
        if (!vector_is_sound(index, node))
            broken |= 1U << VECTORS;
        if (index->at.keys[node] < 0 ||
            (!carag_word_is_deleted(word) && carag_map_find(index, index->at.keys[node]) != node))
            broken |= 1U << KEYS;
        if (level != carag_level_of(index->params.seed, node, index->params.M) ||
            index->at.upper_first[node] != slots)
            broken |= 1U << LEVELS;
        live += !carag_word_is_deleted(word);
        slots += level;
        top = level > top ? level : top;
        if (before == 0 && broken != 0)
            *out_row = node;
    }
    if (live != index->live || index->rows > index->capacity)
        broken |= 1U << COUNTS;
    if (slots != index->upper_count || index->upper_count > index->upper_capacity)
        broken |= 1U << LEVELS;
    const bool entry_is_sound = index->rows == 0 ? index->entry_point == CARAG_NONE && index->max_level == 0
                                                 : index->entry_point < index->rows && index->max_level == top &&
                                                       index->at.levels[index->entry_point] == top;
    if (!entry_is_sound)
        broken |= 1U << ENTRY;
    return broken;
}

/* Requires sound levels. */
static uint32_t check_graph(const carag_index *index, uint32_t *out_row)
{
    for (uint32_t node = 0; node < index->rows; node++)
        for (uint32_t layer = 0; layer <= index->at.levels[node]; layer++)
            if (!links_are_sound(index, node, layer)) {
                *out_row = node;
                return 1U << LINKS;
            }
    bool begun[CARAG_MAX_LEVEL + 1] = {false};
    for (uint32_t node = 0; node < index->rows; node++)
        for (uint32_t layer = 0; layer <= index->at.levels[node]; layer++) {
            if (!parent_is_sound(index, node, layer, !begun[layer])) {
                *out_row = node;
                return 1U << TREE;
            }
            begun[layer] = true;
        }
    return 0;
}

uint32_t carag_check_unlocked(const carag_index *index, carag_fault *out_fault)
{
    uint32_t row = 0;
    uint32_t broken = check_rows(index, &row);
    if ((broken & 1U << LEVELS) == 0 && (broken & 1U << COUNTS) == 0)
        broken |= check_graph(index, &row);
    if (broken)
        carag_fail(out_fault, CARAG_CORRUPT, row, names[__builtin_ctz(broken)]);
    return broken;
}

uint32_t carag_index_check(carag_index *index, carag_fault *out_fault)
{
    pthread_rwlock_rdlock(&index->lock);
    const uint32_t broken = carag_check_unlocked(index, out_fault);
    pthread_rwlock_unlock(&index->lock);
    return broken;
}
