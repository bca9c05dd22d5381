/* file/load.c - load an index from a file, read whole or mapped.
 *
 * Loading trusts nothing. The layout of the sections is computed from the header's counts and must equal the table and
 * the length of the file before anything is allocated, so no count can ask for more memory than a small multiple of the
 * file's length; every byte is under a checksum or must be zero; and the index must satisfy every invariant of
 * index_check.c. What is mapped instead of read is file/map.c's business.
 */
#include "carag_internal.h"
#include "cost/cost.h"
#include "file/file.h"
#include "row/row.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the header */

static carag_status read_header(carag_reading *job, carag_fault *out_fault)
{
    unsigned char bytes[sizeof(carag_header)];
    struct stat stat;
    carag_crc_tables_init(&job->tables);
    if (fstat(job->file, &stat) != 0)
        return carag_io_failed(out_fault, "", "cannot read the file's status");
    if (!S_ISREG(stat.st_mode))
        return carag_corrupt(out_fault, "", "not a regular file");
    job->length = (uint64_t)stat.st_size;
    const ssize_t got = carag_read_all(job->file, bytes, sizeof bytes);
    if (got < 0)
        return carag_io_failed(out_fault, "header", "cannot read");
    return carag_parse_header(job, bytes, (size_t)got, out_fault);
}

/* ---------------------------------------------------------------- reading all */

static carag_status read_part(const carag_reading *job, const char *where, void *data, size_t size,
                              carag_fault *out_fault)
{
    const ssize_t got = carag_read_all(job->file, data, size);
    if (got < 0)
        return carag_io_failed(out_fault, where, "cannot read");
    return (size_t)got == size ? CARAG_OK : carag_corrupt(out_fault, where, "the file ends too early");
}

/* The header was read: the first section is next. */
static carag_status read_sections(const carag_reading *job, const carag_view *view, carag_fault *out_fault)
{
    for (int section = 0; section < SECTIONS; section++) {
        const char *name = carag_section_names[section];
        const uint64_t size = job->header.sections[section].size;
        void *data = carag_section_data(view, section);
        uint8_t padding[CARAG_ALIGNMENT];
        carag_status status = read_part(job, name, data, size, out_fault);
        if (status == CARAG_OK)
            status = read_part(job, name, padding, carag_aligned(size) - size, out_fault);
        if (status != CARAG_OK)
            return status;
        if (carag_crc(&job->tables, 0, data, size) != job->header.sections[section].crc)
            return carag_corrupt(out_fault, name, "the checksum does not match");
        if (!carag_are_zero(padding, carag_aligned(size) - size))
            return carag_corrupt(out_fault, name, "a byte between sections is not zero");
    }
    return CARAG_OK;
}

static carag_status read_view(const carag_reading *job, const carag_index *index, carag_view **out_view,
                              carag_fault *out_fault)
{
    const carag_header *header = &job->header;
    *out_view = carag_view_new(index, (uint32_t)header->rows, (uint32_t)header->upper_slots);
    if (!*out_view || carag_room_for_classes(header, *out_view) != CARAG_OK ||
        carag_room_for_cells(header, *out_view) != CARAG_OK)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    (*out_view)->bits.centred = header->centred;
    return read_sections(job, *out_view, out_fault);
}

/* ---------------------------------------------------------------- loading */

/* Number the upper slots, and see that no level leads beyond them. */
static carag_status number_slots(const carag_header *header, carag_graph *graph, carag_fault *out_fault)
{
    uint64_t slots = 0;
    uint8_t top = 0;
    for (uint32_t row = 0; row < header->rows; row++) {
        graph->upper_first[row] = (uint32_t)slots;
        slots += graph->levels[row];
        top = graph->levels[row] > top ? graph->levels[row] : top;
    }
    if (top > CARAG_MAX_LEVEL || slots != header->upper_slots)
        return carag_corrupt(out_fault, "levels", "the levels do not add up to the header's upper slots");
    if (top != header->max_level || (header->rows > 0 && graph->levels[header->entry_point] != top))
        return carag_corrupt(out_fault, "levels", "the entry point is not on the top layer");
    graph->upper_count = (uint32_t)slots;
    atomic_init(&graph->entry_point, header->entry_point);
    return CARAG_OK;
}

/* Terms of the version before were read to the beginning of the array, and move apart to make room for audiences. */
static void widen_terms(const carag_header *header, carag_terms *terms)
{
    for (uint32_t class = header->version < CARAG_FILE_VERSION ? header->classes : 0; class > 0; class --)
        terms[class - 1] = carag_terms_at(terms, CARAG_OLD_TERMS, class - 1);
}

/* The dictionary of classes, as the file gives it; and what the header says of it. */
static carag_status make_catalog(const carag_header *header, carag_view *view, carag_fault *out_fault)
{
    const uint32_t rows = (uint32_t)header->rows;
    widen_terms(header, view->catalog->terms);
    const carag_status status =
        carag_catalog_complete(view->catalog, view->words, view->terms, rows, header->classes);
    if (status == CARAG_CORRUPT)
        return carag_corrupt(out_fault, "classes",
                             "a row's class is not that of its word, or not where it first occurs");
    if (status != CARAG_OK)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    uint64_t live = 0;
    const uint32_t count = atomic_load(&view->catalog->count);
    for (uint32_t class = 0; class < count; class ++) {
        live += atomic_load_explicit(&view->catalog->live[class], memory_order_relaxed);
        if (!carag_word_is_storable(atomic_load_explicit(&view->catalog->words[class], memory_order_relaxed), true))
            return carag_corrupt(out_fault, "words", "a word has a schema version that this library does not know");
    }
    if (live != header->live)
        return carag_corrupt(out_fault, "words", "the number of live rows differs from the header's");
    return CARAG_OK;
}

static carag_status install_view(const carag_reading *job, carag_index *index, carag_view *view, carag_fault *out_fault)
{
    const carag_header *header = &job->header;
    carag_status status = number_slots(header, &view->graph, out_fault);
    if (status == CARAG_OK)
        status = make_catalog(header, view, out_fault);
    if (status == CARAG_OK && view->cells && !carag_cells_are_sound(view->cells))
        status = carag_corrupt(out_fault, "cells", "a number is out of its range, or the cells do not list their rows");
    if (status == CARAG_OK && !index->mapping && carag_sort_words(view) != CARAG_OK)
        status = carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    if (status != CARAG_OK) {
        carag_view_free(index, view, atomic_load(&index->view));
        return status;
    }
    if (view->cells)
        carag_cells_note_order(view->cells);
    view->costs = (carag_costs){.ef = header->ef,
                                .slack = header->slack,
                                .distances = header->distances,
                                .seeds = header->seeds,
                                .reached = {header->reached[0], header->reached[1]},
                                .scored = header->scored};
    atomic_init(&view->rows, (uint32_t)header->rows);
    atomic_init(&index->live, (uint32_t)header->live);
    atomic_init(&index->map_waits, header->rows > 0);
    carag_publish(index, view);
    if (!index->mapping) {
        status = carag_verify_all(index, out_fault);
        if (status != CARAG_OK)
            return status;
    }
    if (header->slack <= 0.0F && !index->mapping)
        carag_costs_tune(index, view);
    else
        carag_costs_measure(index, view);
    return CARAG_OK;
}

static carag_status load(carag_reading *job, bool map, carag_index **out_index, carag_fault *out_fault)
{
    carag_status status = read_header(job, out_fault);
    if (status != CARAG_OK)
        return status;
    const carag_header *header = &job->header;
    const carag_params params = {header->dim, header->M, header->ef_construction, header->seed,
                                 (carag_dtype)header->dtype};
    if (carag_params_verify(&params, NULL) != CARAG_OK)
        return carag_corrupt(out_fault, "header", "dim, M, ef_construction or dtype is out of range");
    status = carag_index_new(&params, out_index, out_fault);
    if (status == CARAG_OK)
        status = carag_verify_layout(job, *out_index, out_fault);
    if (status != CARAG_OK)
        return status;
    carag_view *view = NULL;
    status = map ? carag_map_view(job, *out_index, &view, out_fault) : read_view(job, *out_index, &view, out_fault);
    if (status != CARAG_OK) {
        carag_view_free(*out_index, view, atomic_load(&(*out_index)->view));
        return status;
    }
    return install_view(job, *out_index, view, out_fault);
}

carag_status carag_index_load(const char *path, int map, carag_index **out_index, carag_fault *out_fault)
{
    carag_index *index = NULL;
    carag_reading job = {.file = open(path, O_RDONLY | O_CLOEXEC)};
    if (job.file < 0)
        return carag_io_failed(out_fault, "", "cannot open");
    const carag_status status = load(&job, map != 0, &index, out_fault);
    close(job.file);
    if (status == CARAG_OK)
        *out_index = index;
    else
        carag_index_free(index);
    return status;
}
