/* text/format.c - lay out a file of words, and verify its header and checksums; FORMAT.md draws every byte. */
#include "carag_internal.h"
#include "file/file.h"
#include "text/format.h"

#include <string.h>

const char carag_text_magic[8] = {'C', 'A', 'R', 'A', 'G', 'T', 'X', 'T'};

static const char *const names[TEXT_SECTIONS] = {
    [TEXT_KEYS] = "keys",
    [TEXT_LENGTHS] = "lengths",
    [TEXT_DOCUMENTS] = "document",
    [TEXT_SIZES] = "sizes",
    [TEXT_LABELS] = "labels",
    [TEXT_ON] = "on",
    [TEXT_CLASSES] = "classes",
    [TEXT_WORDS] = "words",
    [TEXT_TERMS] = "terms",
    [TEXT_VOCABULARY_ENDS] = "vocabend",
    [TEXT_RUN_ENDS] = "runend",
    [TEXT_POSTING_ENDS] = "postend",
    [TEXT_VOCABULARY] = "vocab",
    [TEXT_RUNS] = "runs",
    [TEXT_POSTINGS] = "postings",
};

const char *carag_text_section_name(int section)
{
    return names[section];
}

/* Bytes of the terms of a class. */
uint64_t carag_text_terms_size(const carag_text_header *header)
{
    return header->version < CARAG_TEXT_VERSION ? CARAG_OLD_TERMS : sizeof(carag_terms);
}

static uint64_t item_size(const carag_text_header *header, int section)
{
    switch (section) {
    case TEXT_LENGTHS:
    case TEXT_SIZES:
    case TEXT_ON:
    case TEXT_CLASSES:
    case TEXT_WORDS: return 4;
    case TEXT_TERMS: return carag_text_terms_size(header);
    case TEXT_VOCABULARY:
    case TEXT_RUNS:
    case TEXT_POSTINGS: return 1;
    default: return 8;
    }
}

static uint64_t item_count(const carag_text_header *header, int section)
{
    switch (section) {
    case TEXT_KEYS:
    case TEXT_LENGTHS: return header->chunks;
    case TEXT_DOCUMENTS:
    case TEXT_SIZES: return header->parts;
    case TEXT_LABELS:
    case TEXT_ON:
    case TEXT_CLASSES: return header->labels;
    case TEXT_WORDS:
    case TEXT_TERMS: return header->classes;
    case TEXT_VOCABULARY:
    case TEXT_RUNS:
    case TEXT_POSTINGS: return header->streams[section - TEXT_VOCABULARY];
    default: return header->terms;
    }
}

/* Where each section begins, given the header's counts; false if the sizes do not fit 64 bits. */
bool carag_text_lay_out(const carag_text_header *header, carag_section sections[TEXT_SECTIONS], uint64_t *out_end)
{
    uint64_t end = sizeof *header;
    for (int section = 0; section < TEXT_SECTIONS; section++) {
        uint64_t size;
        if (__builtin_mul_overflow(item_count(header, section), item_size(header, section), &size) ||
            size > INT64_MAX / 2 - end)
            return false;
        sections[section] = (carag_section){.offset = end, .size = size};
        memcpy(sections[section].name, names[section], strlen(names[section]));
        end = carag_aligned(end + size);
    }
    *out_end = end;
    return true;
}

static carag_status verify_counts(const carag_text_header *header, uint64_t length, carag_fault *out_fault)
{
    carag_section expected[TEXT_SECTIONS];
    uint64_t end;
    if (header->chunks > CARAG_MAX_ROWS || header->parts > header->chunks || header->labels > CARAG_MAX_ROWS ||
        header->classes > header->labels || header->terms > header->streams[CARAG_WORDS])
        return carag_corrupt(out_fault, "header", "a count is out of its range");
    if (!carag_text_lay_out(header, expected, &end))
        return carag_corrupt(out_fault, "header", "the sections are larger than any file");
    if (length != end)
        return carag_corrupt(out_fault, "header", "the file is not as long as its sections");
    return carag_verify_sections(expected, header->sections, names, TEXT_SECTIONS, out_fault);
}

/* The header at the beginning of a file of this length; the table must be the layout the counts demand. */
carag_status carag_text_header_verify(const unsigned char *bytes, uint64_t size, uint64_t length,
                                      carag_text_header *header, carag_fault *out_fault)
{
    carag_crc_tables tables;
    carag_crc_tables_init(&tables);
    if (size < sizeof *header)
        return carag_corrupt(out_fault, "header", "the file ends too early");
    memcpy(header, bytes, sizeof *header);
    if (memcmp(header->magic, carag_text_magic, sizeof carag_text_magic) != 0)
        return carag_corrupt(out_fault, "header", "not a CARAG index of texts");
    if (header->version != CARAG_TEXT_VERSION && header->version != CARAG_TEXT_VERSION - 1)
        return carag_corrupt(out_fault, "header", "the format version is not one that this library reads");
    if (header->crc != carag_crc(&tables, 0, header, offsetof(carag_text_header, crc)))
        return carag_corrupt(out_fault, "header", "the checksum does not match");
    if (header->section_count != TEXT_SECTIONS || !carag_are_zero(header->zeros, sizeof header->zeros) ||
        !carag_are_zero(header->more_zeros, sizeof header->more_zeros))
        return carag_corrupt(out_fault, "header", "the section count is wrong, or a reserved byte is not zero");
    return verify_counts(header, length, out_fault);
}

/* Every byte after the header: under its checksum, or zero. */
carag_status carag_text_sums_verify(const carag_text_header *header, const unsigned char *bytes, carag_fault *out_fault)
{
    carag_crc_tables tables;
    carag_crc_tables_init(&tables);
    for (int section = 0; section < TEXT_SECTIONS; section++) {
        const carag_section *entry = &header->sections[section];
        const unsigned char *data = bytes + entry->offset;
        if (entry->crc != carag_crc(&tables, 0, data, entry->size))
            return carag_corrupt(out_fault, names[section], "the checksum does not match");
        if (!carag_are_zero(data + entry->size, carag_aligned(entry->size) - entry->size))
            return carag_corrupt(out_fault, names[section], "a byte between sections is not zero");
    }
    return CARAG_OK;
}
