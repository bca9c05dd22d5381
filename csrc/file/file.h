/* file/file.h - the format of the index file, shared by those who write it (file/save.c), read it (file/load.c) and
 * map it (file/map.c); FORMAT.md draws every byte.
 */
#ifndef CARAG_FILE_H
#define CARAG_FILE_H

#include "carag_internal.h"
#include "file/crc32c.h"
#include "row/row.h"

#include <sys/types.h>

#define CARAG_ALIGNMENT 64 /* bytes: every section begins at a multiple */
#define CARAG_OLD_TERMS offsetof(carag_terms, audience) /* bytes of the terms of a class in the version before */

/* The sections, in the order of the file. */
enum {
    WORDS,
    CLASSES,
    TERMS,
    KEYS,
    LEVELS,
    VECTORS,
    LINKS,
    PARENTS,
    UPPER_LINKS,
    UPPER_PARENTS,
    CODES,
    SCALES,
    ERRORS,
    CELLS,
    CENTRES,
    MEMBERS,
    PACKS,
    CENTRE, /* never empty, so every section begins before the end of the file */
    SECTIONS
};

typedef struct carag_section {
    char name[8];
    uint64_t offset; /* from the start of the file, a multiple of CARAG_ALIGNMENT */
    uint64_t size;   /* bytes, the zeros that follow to the next section not counted */
    uint32_t crc;
    uint32_t zero;
} carag_section;

typedef struct carag_header {
    char magic[8];
    uint32_t version;
    uint32_t section_count;
    uint32_t dim;
    uint32_t M;
    uint32_t ef_construction;
    uint32_t dtype;
    uint64_t seed;
    uint64_t rows;
    uint64_t live;
    uint64_t upper_slots;
    uint32_t entry_point;
    uint32_t max_level;
    uint32_t ef;
    uint32_t centred;
    uint32_t classes;
    uint32_t distances;
    uint32_t seeds;
    float slack;
    uint32_t cells;
    uint32_t listed;
    uint32_t cells_centred;
    float reach;
    uint32_t reached[2];
    uint32_t scored;
    uint32_t zero;
    carag_section sections[SECTIONS];
    uint8_t zeros[60];
    uint32_t crc; /* of everything before */
} carag_header;

_Static_assert(sizeof(carag_section) == 32, "no padding");
_Static_assert(offsetof(carag_header, sections) == 128, "no padding");
_Static_assert(sizeof(carag_header) == 768 && offsetof(carag_header, crc) == 764, "a multiple of CARAG_ALIGNMENT");
_Static_assert(sizeof(carag_cell) == 16, "cells are saved as they are");
_Static_assert(sizeof(carag_terms) == 16, "terms are saved as they are");

extern const char carag_magic[8];
extern const char *const carag_section_names[SECTIONS];

/* A file being loaded. */
typedef struct carag_reading {
    carag_crc_tables tables;
    carag_header header;
    int file;
    uint64_t length;
} carag_reading;

/* file/disk.c */
typedef bool (*carag_write_fn)(int file, const void *context);
ssize_t carag_read_all(int file, void *data, size_t size);
bool carag_write_all(int file, const void *data, size_t size);
carag_status carag_replace_file(const char *path, carag_write_fn write_to, const void *context,
                                carag_fault *out_fault);

/* file/header.c */
bool carag_lay_out(const carag_index *index, const carag_header *header, carag_section sections[SECTIONS],
                   uint64_t *out_end);
void *carag_section_data(const carag_view *view, int section);
bool carag_is_in_file(const carag_index *index, const void *data);
carag_status carag_io_failed(carag_fault *out_fault, const char *where, const char *what);
carag_status carag_corrupt(carag_fault *out_fault, const char *where, const char *what);
bool carag_are_zero(const void *data, size_t size);
carag_status carag_parse_header(carag_reading *job, const unsigned char *bytes, size_t size, carag_fault *out_fault);
carag_status carag_verify_sections(carag_section *expected, const carag_section *found, const char *const *names, int count,
                                   carag_fault *out_fault);
carag_status carag_verify_layout(const carag_reading *job, const carag_index *index, carag_fault *out_fault);
carag_status carag_room_for_classes(const carag_header *header, carag_view *view);
carag_status carag_room_for_cells(const carag_header *header, carag_view *view);

/* file/map.c */
carag_status carag_map_view(const carag_reading *job, carag_index *index, carag_view **out_view,
                            carag_fault *out_fault);
carag_status carag_verify_all(carag_index *index, carag_fault *out_fault);
carag_status carag_verify_if_mapped(carag_index *index, carag_fault *out_fault);

/* The terms of a class as a file has them; in the version before, all were for everybody. */
static inline carag_terms carag_terms_at(const void *saved, uint64_t size, uint32_t class)
{
    carag_terms terms = {.audience = CARAG_EVERYBODY};
    memcpy(&terms, (const unsigned char *)saved + size * class, size);
    return terms;
}

static inline uint64_t carag_aligned(uint64_t size)
{
    return (size + CARAG_ALIGNMENT - 1) / CARAG_ALIGNMENT * CARAG_ALIGNMENT;
}

#endif
