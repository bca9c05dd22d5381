/* file/header.c - lay out the sections of an index file, and verify its header; FORMAT.md draws every byte. */
#include "carag_internal.h"
#include "file/file.h"
#include "row/row.h"

#include <errno.h>
#include <string.h>

/* ---------------------------------------------------------------- the format */

const char carag_magic[8] = {'C', 'A', 'R', 'A', 'G', 'I', 'D', 'X'};

const char *const carag_section_names[SECTIONS] = {
    [WORDS] = "words",
    [CLASSES] = "classes",
    [TERMS] = "terms",
    [KEYS] = "keys",
    [LEVELS] = "levels",
    [VECTORS] = "vectors",
    [LINKS] = "links",
    [PARENTS] = "parents",
    [UPPER_LINKS] = "uplinks",
    [UPPER_PARENTS] = "uparents",
    [CODES] = "codes",
    [SCALES] = "scales",
    [ERRORS] = "errors",
    [CELLS] = "cells",
    [CENTRES] = "centres",
    [MEMBERS] = "members",
    [PACKS] = "packs",
    [CENTRE] = "centre",
};

/* Bytes of one item of a section. */
static uint64_t item_size(const carag_index *index, const carag_header *header, int section)
{
    const uint64_t dim = index->params.dim;
    switch (section) {
    case TERMS: return header->version < CARAG_FILE_VERSION ? CARAG_OLD_TERMS : sizeof(carag_terms);
    case KEYS: return 8;
    case LEVELS: return 1;
    case VECTORS: return index->vector_bytes;
    case LINKS: return (uint64_t)index->M0 * 4;
    case UPPER_LINKS: return (uint64_t)index->params.M * 4;
    case CELLS: return sizeof(carag_cell);
    case CENTRES:
    case CODES: return (dim + CARAG_CODE_BLOCK - 1) / CARAG_CODE_BLOCK * CARAG_CODE_BLOCK;
    case PACKS: return carag_pack_bytes(8 * carag_bits_words(index->params.dim));
    case CENTRE: return carag_bits_words(index->params.dim) * 64 * 4;
    default: return 4;
    }
}

static uint64_t item_count(const carag_header *header, int section)
{
    switch (section) {
    case TERMS: return header->classes;
    case UPPER_LINKS:
    case UPPER_PARENTS: return header->upper_slots;
    case CENTRE: return 1;
    case CELLS:
    case CENTRES: return header->cells;
    case MEMBERS: return header->listed;
    case PACKS: return (header->rows + CARAG_PACK - 1) / CARAG_PACK;
    default: return header->rows;
    }
}

/* Where each section begins, given the header's counts; false if the sizes do not fit 64 bits. Returns the file's
 * length. */
bool carag_lay_out(const carag_index *index, const carag_header *header, carag_section sections[SECTIONS],
                   uint64_t *out_end)
{
    uint64_t end = sizeof *header;
    for (int section = 0; section < SECTIONS; section++) {
        uint64_t size;
        if (__builtin_mul_overflow(item_count(header, section), item_size(index, header, section), &size) ||
            size > INT64_MAX / 2 - end)
            return false;
        sections[section] = (carag_section){.offset = end, .size = size};
        memcpy(sections[section].name, carag_section_names[section], strlen(carag_section_names[section]));
        end = carag_aligned(end + size);
    }
    *out_end = end;
    return true;
}

void *carag_section_data(const carag_view *view, int section)
{
    switch (section) {
    case WORDS: return (void *)view->words;
    case CLASSES: return view->catalog->classes;
    case TERMS: return view->catalog->terms;
    case KEYS: return view->keys;
    case LEVELS: return view->graph.levels;
    case VECTORS: return view->vectors;
    case LINKS: return (void *)view->graph.links;
    case PARENTS: return view->graph.parents;
    case UPPER_LINKS: return (void *)view->graph.upper_links;
    case UPPER_PARENTS: return view->graph.upper_parents;
    case CODES: return view->codes.bytes;
    case SCALES: return view->codes.scales;
    case ERRORS: return view->codes.errors;
    case PACKS: return view->bits.packs;
    case CELLS: return view->cells ? view->cells->cells : NULL;
    case CENTRES: return view->cells ? view->cells->centres : NULL;
    case MEMBERS: return view->cells ? view->cells->members : NULL;
    default: return view->bits.centre;
    }
}

carag_status carag_io_failed(carag_fault *out_fault, const char *where, const char *what)
{
    const int os_error = errno;
    carag_fail(out_fault, CARAG_IO, 0, what);
    if (out_fault) {
        out_fault->where = where;
        out_fault->os_error = os_error;
    }
    return CARAG_IO;
}

bool carag_is_in_file(const carag_index *index, const void *data)
{
    const unsigned char *at = data;
    return index->mapping && at >= index->mapping && at < index->mapping + index->mapping_size;
}

/* ---------------------------------------------------------------- reading a header */

carag_status carag_corrupt(carag_fault *out_fault, const char *where, const char *what)
{
    carag_fail(out_fault, CARAG_CORRUPT, 0, what);
    if (out_fault)
        out_fault->where = where;
    return CARAG_CORRUPT;
}

bool carag_are_zero(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint8_t any = 0;
    for (size_t i = 0; i < size; i++)
        any |= bytes[i];
    return any == 0;
}

/* Verify and take apart the header at the beginning of a file. */
carag_status carag_parse_header(carag_reading *job, const unsigned char *bytes, size_t size, carag_fault *out_fault)
{
    carag_header *header = &job->header;
    if (size < sizeof *header)
        return carag_corrupt(out_fault, "header", "the file ends too early");
    memcpy(header, bytes, sizeof *header);
    if (memcmp(header->magic, carag_magic, sizeof carag_magic) != 0)
        return carag_corrupt(out_fault, "header", "not a CARAG index");
    if (header->version != CARAG_FILE_VERSION && header->version != CARAG_FILE_VERSION - 1)
        return carag_corrupt(out_fault, "header", "the format version is not one that this library reads");
    if (header->crc != carag_crc(&job->tables, 0, header, offsetof(carag_header, crc)))
        return carag_corrupt(out_fault, "header", "the checksum does not match");
    if (header->section_count != SECTIONS || header->zero != 0 ||
        !carag_are_zero(header->zeros, sizeof header->zeros))
        return carag_corrupt(out_fault, "header", "the section count is wrong, or a reserved byte is not zero");
    return CARAG_OK;
}

/* The table of sections must be the expected one, whose checksums are not known. */
carag_status carag_verify_sections(carag_section *expected, const carag_section *found, const char *const *names, int count,
                                   carag_fault *out_fault)
{
    for (int section = 0; section < count; section++) {
        expected[section].crc = found[section].crc;
        if (memcmp(&expected[section], &found[section], sizeof *expected) != 0)
            return carag_corrupt(out_fault, names[section], "the section table does not match the counts");
    }
    return CARAG_OK;
}

/* The table must be the layout the counts demand, and the file exactly so long. */
carag_status carag_verify_layout(const carag_reading *job, const carag_index *index, carag_fault *out_fault)
{
    const carag_header *header = &job->header;
    carag_section expected[SECTIONS];
    uint64_t end;
    if (header->rows > CARAG_MAX_ROWS || header->live > header->rows || header->upper_slots > CARAG_MAX_ROWS)
        return carag_corrupt(out_fault, "header", "more rows than an index can hold");
    if (header->rows == 0 ? header->entry_point != CARAG_NONE : header->entry_point >= header->rows)
        return carag_corrupt(out_fault, "header", "the entry point is not a row");
    if (header->ef < 1 || header->ef > CARAG_MAX_EF || header->centred > header->rows ||
        header->classes > header->live || header->max_level > CARAG_MAX_LEVEL || header->listed > header->rows ||
        (header->cells == 0) != (header->listed == 0) || !(header->slack >= 0.0F && header->slack <= CARAG_MAX_SLACK))
        return carag_corrupt(out_fault, "header", "a number is out of its range");
    if (!carag_lay_out(index, header, expected, &end))
        return carag_corrupt(out_fault, "header", "the sections are larger than any file");
    if (job->length != end)
        return carag_corrupt(out_fault, "header", "the file is not as long as its sections");
    return carag_verify_sections(expected, header->sections, carag_section_names, SECTIONS, out_fault);
}

/* ---------------------------------------------------------------- room */

/* A catalog for the classes of the file to be read into. */
carag_status carag_room_for_classes(const carag_header *header, carag_view *view)
{
    view->catalog = carag_catalog_room(header->classes + CARAG_SPARE_CLASSES, (uint32_t)header->rows);
    return view->catalog ? CARAG_OK : CARAG_NO_MEMORY;
}

/* Cells for those of the file to be read into, where it has any. */
carag_status carag_room_for_cells(const carag_header *header, carag_view *view)
{
    if (header->cells == 0)
        return CARAG_OK;
    view->cells = carag_cells_room(header->cells, header->listed, view->codes.stride);
    if (!view->cells)
        return CARAG_NO_MEMORY;
    view->cells->centred = header->cells_centred;
    view->cells->reach = header->reach;
    return CARAG_OK;
}
