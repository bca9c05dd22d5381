/* text/format.h - the format of a file of words, shared by those who write it and read it; FORMAT.md draws every byte. */
#ifndef CARAG_TEXT_FORMAT_H
#define CARAG_TEXT_FORMAT_H

#include "carag_internal.h"
#include "file/file.h"
#include "text/text.h"

#define CARAG_TEXT_VERSION 2 /* of the files that are saved; those of the version before are loaded, too */

/* The sections, in the order of the file. */
enum {
    TEXT_KEYS,
    TEXT_LENGTHS,
    TEXT_DOCUMENTS,
    TEXT_SIZES,
    TEXT_LABELS,
    TEXT_ON,
    TEXT_CLASSES,
    TEXT_WORDS,
    TEXT_TERMS,
    TEXT_VOCABULARY_ENDS,
    TEXT_RUN_ENDS,
    TEXT_POSTING_ENDS,
    TEXT_VOCABULARY,
    TEXT_RUNS,
    TEXT_POSTINGS,
    TEXT_SECTIONS
};

typedef struct carag_text_header {
    char magic[8];
    uint32_t version;
    uint32_t section_count;
    uint64_t chunks;
    uint64_t parts;
    uint64_t labels;
    uint64_t classes;
    uint64_t terms;
    uint64_t streams[3]; /* bytes: vocabulary, runs, postings */
    uint8_t zeros[48];
    carag_section sections[TEXT_SECTIONS];
    uint8_t more_zeros[28];
    uint32_t crc; /* of everything before */
} carag_text_header;

_Static_assert(offsetof(carag_text_header, sections) == 128, "no padding");
_Static_assert(sizeof(carag_text_header) == 640 && offsetof(carag_text_header, crc) == 636,
               "a multiple of CARAG_ALIGNMENT");

extern const char carag_text_magic[8];

/* text/format.c */
const char *carag_text_section_name(int section);
uint64_t carag_text_terms_size(const carag_text_header *header);
bool carag_text_lay_out(const carag_text_header *header, carag_section sections[TEXT_SECTIONS], uint64_t *out_end);
carag_status carag_text_header_verify(const unsigned char *bytes, uint64_t size, uint64_t length,
                                      carag_text_header *out_header, carag_fault *out_fault);
carag_status carag_text_sums_verify(const carag_text_header *header, const unsigned char *bytes,
                                    carag_fault *out_fault);

#endif
