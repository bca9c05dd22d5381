/* index_check.c - verify the invariants of an index.
 *
 * One function for the tests, for the loader (which trusts no file) and for anyone who doubts. Every invariant is
 * local, so the cost is O(rows x (links + dim)) and no search is made.
 *
 * That all rows can be reached follows from TREE: on each layer the parents, each an earlier row, lead from every row
 * to the layer's first, and the links back lead from it to every row. That exact answers are exact follows from CODES:
 * the stated error of a code is at least what it lost. That counts and scans are complete follows from CLASSES: every
 * live row is counted once, and posted once where its class looks for it, or listed as moved.
 */
#include "carag_internal.h"
#include "row/row.h"

#include <math.h>
#include <string.h>

enum { COUNTS, WORDS, VECTORS, KEYS, CODES, BITS, LEVELS, ENTRY, LINKS, TREE, CLASSES, CELLS, INVARIANTS };

static const char *const names[INVARIANTS] = {
    [COUNTS] = "counts: live is the number of rows not deleted",
    [WORDS] = "words: the schema version is 0 or 1",
    [VECTORS] = "vectors: finite, of unit length as far as they are kept, padding zero",
    [KEYS] = "keys: not negative; each live key leads to its row",
    [CODES] = "codes: a finite scale above 0, padding 128, the stated error no less than the true one",
    [BITS] = "bits: factors finite, lanes beyond the rows zero, the centre a mean of unit vectors that exist",
    [LEVELS] = "levels: what (seed, row) gives; upper slots are numbered in row order",
    [ENTRY] = "entry: the entry point is on the top layer",
    [LINKS] = "links: to other rows of the layer, none twice, unused slots last",
    [TREE] = "tree: every row but a layer's first shares a two-way link with its parent, an earlier row",
    [CLASSES] = "classes: every live row is counted in its class, and posted or listed as moved",
    [CELLS] = "cells: every row up to those that are in none is in one, ascending within it",
};

/* Where in a file a broken invariant shows. */
static const char *const sections[INVARIANTS] = {
    [COUNTS] = "header", [WORDS] = "words",   [VECTORS] = "vectors", [KEYS] = "keys",
    [CODES] = "codes",   [BITS] = "packs",    [LEVELS] = "levels",   [ENTRY] = "header",
    [LINKS] = "links",   [TREE] = "parents",  [CLASSES] = "words",   [CELLS] = "members",
};

/* What was found broken so far, and the row that showed it first. */
typedef struct findings {
    uint32_t broken;
    uint32_t row;
} findings;

static void find(findings *found, uint32_t invariant, uint32_t row)
{
    if (!found->broken)
        found->row = row;
    found->broken |= 1U << invariant;
}

const char *carag_invariant_name(uint32_t bit)
{
    return bit < INVARIANTS ? names[bit] : "";
}

/* ---------------------------------------------------------------- vectors and codes */

#define ROUNDING 5e-6      /* error of a float32 vector's length that is let pass; rounding leaves about 1e-7 */
#define HALF_STEP 0x1p-11  /* relative error of rounding to binary16 */
#define HALF_FLOOR 0x1p-25 /* absolute error of rounding a coordinate below 2^-14 to binary16 */

static double kept_coordinate(const carag_index *index, const carag_view *view, uint32_t row, size_t i)
{
    const size_t at = (size_t)row * index->stride + i;
    switch (index->params.dtype) {
    case CARAG_FLOAT32: return (double)((const float *)view->vectors)[at];
    case CARAG_FLOAT16: return (double)carag_widen(((const uint16_t *)view->vectors)[at]);
    case CARAG_INT8: break;
    }
    return (double)view->codes.scales[row] * ((double)view->codes.bytes[(size_t)row * view->codes.stride + i] - 128.0);
}

/* How far the kept vector may be from unit length. */
static double length_tolerance(const carag_index *index, const carag_view *view, uint32_t row)
{
    const double root = sqrt((double)index->params.dim);
    switch (index->params.dtype) {
    case CARAG_FLOAT32: return ROUNDING;
    case CARAG_FLOAT16: return ROUNDING + HALF_STEP + HALF_FLOOR * root;
    case CARAG_INT8: break;
    }
    return ROUNDING + 0.5 * (double)view->codes.scales[row] * root; /* each coordinate by half a step at most */
}

static bool vector_is_sound(const carag_index *index, const carag_view *view, uint32_t row)
{
    double squares = 0.0;
    for (size_t i = 0; i < index->params.dim; i++) {
        const double coordinate = kept_coordinate(index, view, row, i);
        squares += coordinate * coordinate;
    }
    for (size_t i = index->params.dim; index->vector_bytes && i < index->stride; i++)
        if (fpclassify(kept_coordinate(index, view, row, i)) != FP_ZERO)
            return false;
    return fabs(sqrt(squares) - 1.0) <= length_tolerance(index, view, row); /* false for NaN and infinity */
}

static bool code_is_sound(const carag_index *index, const carag_view *view, uint32_t row)
{
    const carag_codes *codes = &view->codes;
    const uint8_t *bytes = codes->bytes + (size_t)row * codes->stride;
    const double scale = (double)codes->scales[row];
    const double error = (double)codes->errors[row];
    double lost = 0.0;
    for (size_t i = 0; i < index->params.dim; i++) {
        const double off = kept_coordinate(index, view, row, i) - scale * ((double)bytes[i] - 128.0);
        lost += off * off;
    }
    for (size_t i = index->params.dim; i < codes->stride; i++)
        if (bytes[i] != 128)
            return false;
    return scale > 0.0 && isfinite(scale) && isfinite(error) && error >= sqrt(lost); /* false for NaN */
}

/* The factors of a lane are finite; all of one that no row has is zero. */
static bool lane_is_sound(const carag_bits *bits, uint32_t position, bool is_row)
{
    const size_t size = 8 * bits->words;
    const size_t lane = position % CARAG_PACK;
    const uint8_t *pack = bits->packs + position / CARAG_PACK * carag_pack_bytes(size);
    unsigned any = 0;
    for (size_t byte = 0; byte < size; byte++)
        any |= pack[CARAG_PACK * byte + lane];
    for (size_t part = 0; part < 3; part++) {
        uint16_t half;
        memcpy(&half, pack + CARAG_PACK * size + sizeof half * (part * CARAG_PACK + lane), sizeof half);
        any |= half;
        if (!isfinite(carag_widen(half)))
            return false;
    }
    return is_row || any == 0;
}

/* A mean of unit vectors: no coordinate is above 1, but for rounding. */
bool carag_centre_is_sound(const carag_bits *bits, uint32_t rows)
{
    for (size_t i = 0; i < 64 * bits->words; i++)
        if (!(fabsf(bits->centre[i]) < 1.5F)) /* NaN, too */
            return false;
    return bits->centred <= rows && (bits->centred == 0) == (rows == 0);
}

/* ---------------------------------------------------------------- rows */

static bool word_is_sound(uint32_t word)
{
    return carag_word_is_storable(word & ~CARAG_TOMBSTONE, true);
}

static void check_row(const carag_index *index, const carag_view *view, uint32_t rows, uint32_t row, findings *found)
{
    const uint32_t word = atomic_load_explicit(&view->words[row], memory_order_relaxed);
    const int64_t key = view->keys[row];
    if (!word_is_sound(word))
        find(found, WORDS, row);
    if (!vector_is_sound(index, view, row))
        find(found, VECTORS, row);
    if (!code_is_sound(index, view, row))
        find(found, CODES, row);
    if (key < 0 || (!carag_word_is_deleted(word) && carag_map_find(index, view->keys, rows, key) != row))
        find(found, KEYS, row);
}

static void check_rows(const carag_index *index, const carag_view *view, uint32_t rows, findings *found)
{
    const carag_graph *graph = &view->graph;
    const uint32_t entry = atomic_load(&graph->entry_point);
    uint32_t live = 0;
    uint64_t slots = 0;
    uint32_t top = 0;
    for (uint32_t row = 0; row < rows; row++) {
        const uint8_t level = graph->levels[row];
        check_row(index, view, rows, row, found);
        if (level != carag_level_of(index->params.seed, row, index->params.M) || graph->upper_first[row] != slots)
            find(found, LEVELS, row);
        live += !carag_word_is_deleted(atomic_load_explicit(&view->words[row], memory_order_relaxed));
        slots += level;
        top = level > top ? level : top;
    }
    if (live != atomic_load(&index->live) || rows > view->capacity)
        find(found, COUNTS, 0);
    if (slots != graph->upper_count || graph->upper_count > graph->upper_capacity)
        find(found, LEVELS, 0);
    if (rows == 0 ? entry != CARAG_NONE : entry >= rows || graph->levels[entry] != top)
        find(found, ENTRY, 0);
    if (!carag_centre_is_sound(&view->bits, rows))
        find(found, BITS, 0);
    for (uint32_t position = 0; position < carag_packs(rows) * CARAG_PACK; position++)
        if (!lane_is_sound(&view->bits, position, position < rows))
            find(found, BITS, position < rows ? carag_row_at(view, position) : 0);
}

/* ---------------------------------------------------------------- the graph */

static uint32_t link_at(const _Atomic(uint32_t) *links, uint32_t i)
{
    return atomic_load_explicit(&links[i], memory_order_relaxed);
}

static uint32_t occurrences(const _Atomic(uint32_t) *links, uint32_t limit, uint32_t row)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < limit; i++)
        count += link_at(links, i) == row;
    return count;
}

static bool links_are_sound(const carag_graph *graph, uint32_t rows, uint32_t row, uint32_t layer)
{
    const uint32_t limit = carag_graph_limit(graph, layer);
    const _Atomic(uint32_t) *links = carag_graph_links(graph, row, layer);
    uint32_t count = 0;
    while (count < limit && link_at(links, count) != CARAG_NONE)
        count++;
    for (uint32_t i = count; i < limit; i++)
        if (link_at(links, i) != CARAG_NONE)
            return false;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t link = link_at(links, i);
        if (link >= rows || link == row || graph->levels[link] < layer || occurrences(links, count, link) != 1)
            return false;
    }
    return true;
}

/* Requires sound links everywhere. */
static bool parent_is_sound(const carag_graph *graph, uint32_t row, uint32_t layer, bool is_first)
{
    const uint32_t limit = carag_graph_limit(graph, layer);
    const uint32_t parent = *carag_graph_parent(graph, row, layer);
    if (is_first)
        return parent == CARAG_NONE;
    return parent < row && graph->levels[parent] >= layer &&
           occurrences(carag_graph_links(graph, row, layer), limit, parent) == 1 &&
           occurrences(carag_graph_links(graph, parent, layer), limit, row) == 1;
}

/* Requires sound levels. */
static void check_graph(const carag_graph *graph, uint32_t rows, findings *found)
{
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t layer = 0; layer <= graph->levels[row]; layer++)
            if (!links_are_sound(graph, rows, row, layer)) {
                find(found, LINKS, row);
                return;
            }
    bool begun[CARAG_MAX_LEVEL + 1] = {false};
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t layer = 0; layer <= graph->levels[row]; layer++) {
            if (!parent_is_sound(graph, row, layer, !begun[layer])) {
                find(found, TREE, row);
                return;
            }
            begun[layer] = true;
        }
}

/* ---------------------------------------------------------------- the catalog */

static bool is_moved(const carag_catalog *catalog, uint32_t row)
{
    return catalog->is_moved[row / 64] >> (row % 64) & 1;
}

/* Whether a row's (word, terms), its tombstone aside, are those of a class. */
static bool is_of_class(const carag_view *view, uint32_t row, uint32_t class)
{
    const carag_catalog *catalog = view->catalog;
    const uint32_t word = atomic_load_explicit(&view->words[row], memory_order_relaxed) & ~CARAG_TOMBSTONE;
    return word == atomic_load_explicit(&catalog->words[class], memory_order_relaxed) &&
           memcmp(&view->terms[row], &catalog->terms[class], sizeof *view->terms) == 0;
}

static bool is_posted(const carag_catalog *catalog, uint32_t class, uint32_t row)
{
    uint32_t low = catalog->first[class];
    uint32_t high = catalog->first[class + 1];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (catalog->postings[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low < catalog->first[class + 1] && catalog->postings[low] == row;
}

/* Each class is found under its own name, so no two are alike. */
static bool dictionary_is_sound(const carag_catalog *catalog, uint32_t rows)
{
    const uint32_t count = atomic_load(&catalog->count);
    if (count > catalog->capacity || catalog->homes > count || catalog->rows > rows)
        return false;
    for (uint32_t class = 0; class < count; class ++) {
        const uint32_t word = atomic_load_explicit(&catalog->words[class], memory_order_relaxed);
        if (carag_catalog_find(catalog, word, catalog->terms[class]) != class || carag_word_is_deleted(word))
            return false;
    }
    return true;
}

/* Postings ascend within their class, and hold rows of it; those moved since are as many as are listed. A row that was
 * not moved has one class, so it is posted at most once. */
static bool postings_are_sound(const carag_view *view)
{
    const carag_catalog *catalog = view->catalog;
    const uint32_t moved = atomic_load(&catalog->moved_count);
    uint32_t posted_moved = 0;
    if (moved > catalog->moved_capacity || catalog->first[0] != 0)
        return false;
    for (uint32_t class = 0; class < catalog->homes; class ++) {
        if (catalog->first[class + 1] < catalog->first[class] || catalog->first[class + 1] > catalog->rows)
            return false;
        for (uint32_t i = catalog->first[class]; i < catalog->first[class + 1]; i++) {
            const uint32_t row = catalog->postings[i];
            if (row >= catalog->rows || (i > catalog->first[class] && catalog->postings[i - 1] >= row))
                return false;
            if (is_moved(catalog, row))
                posted_moved++;
            else if (!is_of_class(view, row, class))
                return false;
        }
    }
    for (uint32_t i = 0; i < moved; i++) {
        const carag_moved entry = catalog->moved[i];
        if (entry.row >= catalog->rows || entry.home >= catalog->homes || !is_moved(catalog, entry.row) ||
            !is_posted(catalog, entry.home, entry.row))
            return false;
    }
    uint32_t marked = 0;
    for (size_t i = 0; i < (size_t)catalog->rows / 64 + 1; i++)
        marked += (uint32_t)__builtin_popcountll(catalog->is_moved[i]);
    return marked == moved && posted_moved == moved;
}

/* Whether a row is in its class, and where a walk looks for it. Requires a sound dictionary. */
static bool class_is_sound(const carag_view *view, uint32_t row)
{
    const carag_catalog *catalog = view->catalog;
    const uint32_t class = catalog->classes[row];
    if (carag_word_is_deleted(atomic_load_explicit(&view->words[row], memory_order_relaxed)))
        return class == CARAG_NONE;
    if (class >= atomic_load(&catalog->count) || !is_of_class(view, row, class))
        return false;
    const bool has_home = row < catalog->rows && !is_moved(catalog, row);
    return !has_home || (class < catalog->homes && is_posted(catalog, class, row));
}

/* Counts are compared by a sum of hashes over all rows: no memory, and a miscount hides by a coincidence of 64 bits. */
static void check_classes(const carag_view *view, uint32_t rows, findings *found)
{
    const carag_catalog *catalog = view->catalog;
    if (!dictionary_is_sound(catalog, rows) || !postings_are_sound(view)) {
        find(found, CLASSES, 0);
        return;
    }
    uint64_t difference = 0;
    for (uint32_t class = 0; class < atomic_load(&catalog->count); class ++)
        difference +=
            carag_mix((uint64_t)class + 1) * atomic_load_explicit(&catalog->live[class], memory_order_relaxed);
    for (uint32_t row = 0; row < rows; row++) {
        if (!class_is_sound(view, row)) {
            find(found, CLASSES, row);
            return;
        }
        if (catalog->classes[row] != CARAG_NONE)
            difference -= carag_mix((uint64_t)catalog->classes[row] + 1);
    }
    if (difference != 0)
        find(found, CLASSES, 0);
}

/* ---------------------------------------------------------------- the cells */

/* That no row is listed twice is seen as for the counts of classes: by a sum of hashes. */
static void check_cells(const carag_cells *cells, uint32_t rows, findings *found)
{
    if (cells->rows > rows || cells->centred > cells->rows || !carag_cells_are_sound(cells))
        find(found, CELLS, 0);
}

/* ---------------------------------------------------------------- all of it */

/* Requires the writer's lock, since parents and catalog are the writer's, and a key map made. */
uint32_t carag_check_view(const carag_index *index, const carag_view *view, carag_fault *out_fault)
{
    const uint32_t rows = atomic_load(&view->rows);
    findings found = {0};
    check_rows(index, view, rows, &found);
    if ((found.broken & (1U << LEVELS | 1U << COUNTS)) == 0)
        check_graph(&view->graph, rows, &found);
    check_classes(view, rows, &found);
    if (view->cells)
        check_cells(view->cells, rows, &found);
    if (found.broken) {
        const int first = __builtin_ctz(found.broken);
        carag_fail(out_fault, CARAG_CORRUPT, found.row, names[first]);
        if (out_fault)
            out_fault->where = sections[first];
    }
    return found.broken;
}

uint32_t carag_index_check(carag_index *index, carag_fault *out_fault)
{
    pthread_mutex_lock(&index->writer);
    uint32_t broken = 1U << KEYS;
    if (carag_map_ready(index, out_fault) == CARAG_OK) {
        pthread_rwlock_rdlock(&index->map_lock);
        broken = carag_check_view(index, atomic_load(&index->view), out_fault);
        pthread_rwlock_unlock(&index->map_lock);
    }
    pthread_mutex_unlock(&index->writer);
    return broken;
}
