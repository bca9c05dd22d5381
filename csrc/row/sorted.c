/* row/sorted.c - the one-bit codes of rows in cells a second time, in the order of their words, and of their classes.
 *
 * In the order of cells, a pack of thirty-two rows has many words: if a twentieth of the rows is admissible, most packs
 * hold an admissible row, and nearly everything read belongs to inadmissible ones. Here the rows of a word lie together,
 * and among them those of a class, so that a scan reads only the words that pass, or only the classes that are open
 * (search/scan.c). A row's code is the same as in its cell, relative to the cell's centre; the cell is stored with it.
 *
 * Made from classes and cells as they are when a view is made, and in memory alone: a file does not hold it. Afterwards
 * it does not change. A relabel leaves a row at its old word and class, so what it says is where to look, and no more: a
 * reader tests the word and the terms of every row that comes through, and also reads the rows that were moved since the
 * catalog was made, or added since this was.
 *
 * It takes dim / 8 + 12 bytes a row, 8 a class, and a tenth of a second for a million rows of 128 dimensions on one
 * thread. It pays where words have many rows. Where they have few, it is not made.
 */
#include "carag_internal.h"
#include "hash.h"
#include "row/row.h"

#include <string.h>

#if !defined(CARAG_WORD_ROWS)
#define CARAG_WORD_ROWS 128 /* rows of a word, on the mean, below which there is no copy; tests make it less */
#endif
#define MAX_ROWS (UINT32_MAX / 2) /* greatest number of rows, as places have 32 bits, */
#define MAX_CELLS (UINT16_MAX + 1) /* and of cells, which have 16 */

/* What one is made with. */
typedef struct sorting {
    const carag_view *view;
    carag_sorted *sorted;
    uint32_t *table;   /* [slots] number of a word, by hash, or CARAG_NONE */
    size_t slots;
    uint32_t *numbers; /* [classes] number of the word of a class */
    uint32_t limit;    /* words beyond which there is no copy */
} sorting;

void carag_sorted_free(carag_sorted *sorted)
{
    if (!sorted)
        return;
    carag_release(sorted->words);
    carag_release(sorted->sizes);
    carag_release(sorted->firsts);
    carag_release(sorted->starts);
    carag_release(sorted->ends);
    carag_release(sorted->rows);
    carag_release(sorted->cells);
    carag_release_aligned(sorted->bits.packs);
    carag_release(sorted);
}

/* The number of a word, which may be new; CARAG_NONE when there is no room for it. */
static uint32_t number_of(sorting *job, uint32_t word)
{
    carag_sorted *sorted = job->sorted;
    size_t slot = (size_t)carag_mix(word) & (job->slots - 1);
    for (; job->table[slot] != CARAG_NONE; slot = (slot + 1) & (job->slots - 1))
        if (sorted->words[job->table[slot]] == word)
            return job->table[slot];
    if (sorted->count == job->limit)
        return CARAG_NONE;
    sorted->words[sorted->count] = word;
    job->table[slot] = sorted->count;
    return sorted->count++;
}

/* Number the words of classes that have rows; false when there are too many. */
static bool number_words(sorting *job)
{
    const carag_catalog *catalog = job->view->catalog;
    for (uint32_t class = 0; class < job->sorted->classes; class++) {
        job->numbers[class] = CARAG_NONE;
        if (atomic_load_explicit(&catalog->live[class], memory_order_relaxed) == 0)
            continue;
        job->numbers[class] = number_of(job, atomic_load_explicit(&catalog->words[class], memory_order_relaxed));
        if (job->numbers[class] == CARAG_NONE)
            return false;
    }
    return true;
}

/* Where the rows of each word begin, whole packs, and among them those of each class; `ends` are where its next row goes.
 * Returns the places that all take. */
static uint32_t count_rows(const sorting *job)
{
    carag_sorted *sorted = job->sorted;
    const uint32_t *classes = job->view->catalog->classes;
    uint32_t places = 0;
    for (uint32_t row = 0; row < sorted->covered; row++)
        if (classes[row] != CARAG_NONE) {
            sorted->sizes[job->numbers[classes[row]]]++;
            sorted->ends[classes[row]]++;
        }
    for (uint32_t w = 0; w < sorted->count; w++) {
        sorted->firsts[w] = places;
        places += (sorted->sizes[w] + CARAG_PACK - 1) / CARAG_PACK * CARAG_PACK;
        sorted->sizes[w] = 0;
    }
    for (uint32_t class = 0; class < sorted->classes; class++) {
        const uint32_t w = job->numbers[class];
        if (w == CARAG_NONE)
            continue;
        const uint32_t size = sorted->ends[class];
        sorted->starts[class] = sorted->ends[class] = sorted->firsts[w] + sorted->sizes[w];
        sorted->sizes[w] += size;
    }
    return places;
}

/* Cell after cell, so that the rows of a cell follow each other within a class. */
static void place_rows(const sorting *job)
{
    const carag_cells *cells = job->view->cells;
    const uint32_t *classes = job->view->catalog->classes;
    carag_sorted *sorted = job->sorted;
    uint32_t position = 0;
    for (uint32_t cell = 0; cell < cells->count; cell++)
        for (; position < cells->cells[cell].end; position++) {
            const uint32_t row = cells->members[position];
            if (row >= sorted->covered || classes[row] == CARAG_NONE)
                continue;
            const uint32_t place = sorted->ends[classes[row]]++;
            sorted->rows[place] = row;
            sorted->cells[place] = (uint16_t)cell;
            carag_bits_move(&sorted->bits, place, &job->view->bits, position);
        }
}

static carag_status fill(sorting *job)
{
    carag_sorted *sorted = job->sorted;
    const uint32_t places = count_rows(job);
    const size_t packs = places / CARAG_PACK;
    sorted->bits.words = job->view->bits.words;
    sorted->rows = carag_allocate_zeroed(places, sizeof *sorted->rows);
    sorted->cells = carag_allocate_zeroed(places, sizeof *sorted->cells);
    sorted->bits.packs = carag_allocate_aligned(packs, carag_pack_bytes(8 * sorted->bits.words));
    if (!sorted->rows || !sorted->cells || !sorted->bits.packs)
        return CARAG_NO_MEMORY;
    place_rows(job);
    for (uint32_t w = 0; w < sorted->count; w++)
        carag_bits_clear(&sorted->bits, sorted->firsts[w] + sorted->sizes[w]);
    return CARAG_OK;
}

static carag_status prepare(sorting *job, uint32_t covered)
{
    job->limit = covered / CARAG_WORD_ROWS;
    for (job->slots = 1; job->slots <= 2 * (size_t)job->limit;)
        job->slots *= 2;
    carag_sorted *sorted = job->sorted = carag_allocate_zeroed(1, sizeof *sorted);
    job->table = carag_allocate(job->slots, sizeof *job->table);
    const uint32_t classes = atomic_load(&job->view->catalog->count);
    job->numbers = carag_allocate(classes, sizeof *job->numbers);
    if (!sorted || !job->table || !job->numbers)
        return CARAG_NO_MEMORY;
    sorted->classes = classes;
    sorted->starts = carag_allocate_zeroed(classes, sizeof *sorted->starts);
    sorted->ends = carag_allocate_zeroed(classes, sizeof *sorted->ends);
    memset(job->table, 0xFF, job->slots * sizeof *job->table); /* CARAG_NONE everywhere */
    sorted->covered = covered;
    sorted->words = carag_allocate(job->limit, sizeof *sorted->words);
    sorted->firsts = carag_allocate(job->limit, sizeof *sorted->firsts);
    sorted->sizes = carag_allocate_zeroed(job->limit, sizeof *sorted->sizes);
    return sorted->words && sorted->firsts && sorted->sizes && sorted->starts && sorted->ends ? CARAG_OK : CARAG_NO_MEMORY;
}

/* Give a view that has none, and is not published yet, the copy for its classes and cells; none where it would not pay.
 * The writer's. */
carag_status carag_sort_words(carag_view *view)
{
    const carag_cells *cells = view->cells;
    const uint32_t listed = view->catalog->rows;
    if (!cells || cells->count > MAX_CELLS || cells->rows > MAX_ROWS)
        return CARAG_OK;
    sorting job = {.view = view};
    carag_status status = prepare(&job, cells->rows < listed ? cells->rows : listed);
    const bool is_wanted = status == CARAG_OK && number_words(&job);
    if (is_wanted)
        status = fill(&job);
    if (is_wanted && status == CARAG_OK)
        view->sorted = job.sorted;
    else
        carag_sorted_free(job.sorted);
    carag_release(job.table);
    carag_release(job.numbers);
    return status;
}
