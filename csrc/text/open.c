/* text/open.c - load an index of texts from a file, read whole or mapped.
 *
 * Loading trusts nothing. The layout computed from the header's counts must equal the table and the length of the file
 * before anything is allocated; every byte is under a checksum that is compared, or must be zero; chunks, parts, labels
 * and classes are copied, and checked as they are. Terms and postings stay where they were read, or mapped: read whole,
 * all of them are verified (text/sound.c); mapped, their readers trust nothing.
 *
 * A file that is truncated while it is mapped ends the process (SIGBUS): replace files, as saving does, and never edit
 * them.
 */
#include "carag_internal.h"
#include "file/file.h"
#include "text/format.h"
#include "text/text.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct opening {
    carag_text_header header;
    carag_blob blob;
    carag_shelf *shelf;
} opening;

static const void *section_of(const opening *job, int section)
{
    return job->blob.bytes + job->header.sections[section].offset;
}

/* ---------------------------------------------------------------- the bytes */

static carag_status get_bytes(opening *job, int file, bool map, carag_fault *out_fault)
{
    unsigned char first[sizeof(carag_text_header)];
    struct stat stat;
    if (fstat(file, &stat) != 0)
        return carag_io_failed(out_fault, "", "cannot read the file's status");
    if (!S_ISREG(stat.st_mode))
        return carag_corrupt(out_fault, "", "not a regular file");
    const size_t size = (size_t)stat.st_size;
    const ssize_t got = carag_read_all(file, first, sizeof first);
    if (got < 0)
        return carag_io_failed(out_fault, "header", "cannot read");
    const carag_status status =
        carag_text_header_verify(first, (uint64_t)got, (uint64_t)size, &job->header, out_fault);
    if (status != CARAG_OK)
        return status;
    if (map) {
        void *mapping = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (mapping == MAP_FAILED)
            return carag_io_failed(out_fault, "", "cannot map the file");
        job->blob = (carag_blob){.bytes = mapping, .size = size, .is_mapped = true};
        return carag_text_sums_verify(&job->header, job->blob.bytes, out_fault);
    }
    job->blob = (carag_blob){.bytes = carag_allocate_aligned(size, 1), .size = size};
    if (!job->blob.bytes)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    memcpy(job->blob.bytes, first, sizeof first);
    const ssize_t rest = carag_read_all(file, job->blob.bytes + sizeof first, size - sizeof first);
    if (rest < 0)
        return carag_io_failed(out_fault, "", "cannot read");
    if ((size_t)rest != size - sizeof first)
        return carag_corrupt(out_fault, "", "the file ends too early");
    return carag_text_sums_verify(&job->header, job->blob.bytes, out_fault);
}

/* ---------------------------------------------------------------- what is in them */

static carag_status make_room(const opening *job)
{
    const carag_text_header *header = &job->header;
    const carag_lookup none = {0};
    carag_shelf *shelf = job->shelf;
    *shelf = (carag_shelf){.free_label = CARAG_NONE};
    shelf->chunk_room = (uint32_t)header->chunks;
    shelf->part_room = (uint32_t)header->parts;
    shelf->label_room = (uint32_t)header->labels;
    shelf->classes = carag_catalog_room((uint32_t)header->classes + CARAG_SPARE_CLASSES, 0);
    shelf->chunks = carag_allocate(shelf->chunk_room, sizeof *shelf->chunks);
    shelf->lengths = carag_allocate(shelf->chunk_room, sizeof *shelf->lengths);
    shelf->parts = carag_allocate(shelf->part_room, sizeof *shelf->parts);
    shelf->labels = carag_allocate(shelf->label_room, sizeof *shelf->labels);
    const bool has_all = shelf->classes && shelf->chunks && shelf->lengths && shelf->parts && shelf->labels;
    return has_all && carag_lookup_grown(&none, shelf->chunk_room, &shelf->chunk_of) == CARAG_OK &&
                   carag_lookup_grown(&none, shelf->label_room, &shelf->label_of) == CARAG_OK
               ? CARAG_OK
               : CARAG_NO_MEMORY;
}

static carag_status read_parts(const opening *job, carag_fault *out_fault)
{
    const int64_t *documents = section_of(job, TEXT_DOCUMENTS);
    const uint32_t *sizes = section_of(job, TEXT_SIZES);
    carag_shelf *shelf = job->shelf;
    uint64_t first = 0;
    for (uint32_t i = 0; i < shelf->part_room; i++) {
        carag_part *part = &shelf->parts[shelf->part_count++];
        const uint32_t size = sizes[i];
        *part = (carag_part){
            .document = documents[i], .first = (uint32_t)first, .size = size, .live = size, .shortest = UINT32_MAX};
        first += size;
        if (part->document < 0 || size < 1 || size > CARAG_MAX_PART || first > shelf->chunk_room)
            return carag_corrupt(out_fault, "sizes", "a part has a negative document, or the wrong number of chunks");
        shelf->widest = size > shelf->widest ? size : shelf->widest;
    }
    if (first != shelf->chunk_room)
        return carag_corrupt(out_fault, "sizes", "the parts do not hold all the chunks");
    return CARAG_OK;
}

static carag_status read_chunks(const opening *job, carag_fault *out_fault)
{
    const int64_t *keys = section_of(job, TEXT_KEYS);
    const uint32_t *lengths = section_of(job, TEXT_LENGTHS);
    carag_shelf *shelf = job->shelf;
    for (uint32_t number = 0; number < shelf->part_count; number++) {
        carag_part *part = &shelf->parts[number];
        for (uint32_t chunk = part->first; chunk < part->first + part->size; chunk++) {
            const int64_t key = keys[chunk];
            const uint32_t length = lengths[chunk];
            shelf->chunks[chunk] = (carag_chunk){.key = key, .part = number, .label = CARAG_NONE};
            shelf->lengths[chunk] = length;
            part->length += length;
            part->shortest = length < part->shortest ? length : part->shortest;
            if (key < 0 || !carag_lookup_insert(&shelf->chunk_of, key, chunk))
                return carag_corrupt(out_fault, "keys", "a key is negative, or belongs to two chunks");
        }
    }
    shelf->chunk_count = shelf->chunk_room;
    shelf->live_chunks = shelf->chunk_count;
    return CARAG_OK;
}

/* Classes are numbered where they first occur, and none is like another. */
static bool enter_class(const opening *job, uint32_t class)
{
    const uint32_t *words = section_of(job, TEXT_WORDS);
    carag_catalog *classes = job->shelf->classes;
    const uint32_t known = atomic_load(&classes->count);
    if (class < known)
        return true;
    if (class > known || class >= job->header.classes)
        return false;
    const uint32_t word = words[class];
    const carag_terms own = carag_terms_at(section_of(job, TEXT_TERMS), carag_text_terms_size(&job->header), class);
    if (!carag_word_is_storable(word, true) || carag_catalog_find(classes, word, own) != CARAG_NONE)
        return false;
    carag_catalog_add(classes, word, own);
    return true;
}

static carag_status read_label(const opening *job, uint32_t slot, carag_fault *out_fault)
{
    const int64_t key = ((const int64_t *)section_of(job, TEXT_LABELS))[slot];
    const uint32_t chunk = ((const uint32_t *)section_of(job, TEXT_ON))[slot];
    const uint32_t class = ((const uint32_t *)section_of(job, TEXT_CLASSES))[slot];
    carag_shelf *shelf = job->shelf;
    if (chunk >= shelf->chunk_count || (slot > 0 && chunk < shelf->labels[slot - 1].chunk))
        return carag_corrupt(out_fault, "on", "labels are not in the order of their chunks");
    if (!enter_class(job, class))
        return carag_corrupt(out_fault, "classes",
                             "a class is not numbered where it first occurs, or its word is not one that this library knows");
    const bool is_first = slot == 0 || shelf->labels[slot - 1].chunk != chunk;
    if (key < 0 || (!is_first && key <= shelf->labels[slot - 1].key) ||
        !carag_lookup_insert(&shelf->label_of, key, slot))
        return carag_corrupt(out_fault, "labels", "a key is negative, out of order, or belongs to two labels");
    for (uint32_t other = slot; !is_first && other > 0 && shelf->labels[other - 1].chunk == chunk; other--)
        if (slot - other >= CARAG_MAX_LABELS ||
            carag_windows_overlap(shelf->classes->terms[class],
                                  shelf->classes->terms[shelf->labels[other - 1].class]))
            return carag_corrupt(out_fault, "labels", "two labels of a chunk are valid at one instant, or it has too many");
    shelf->label_count++;
    shelf->labels[slot] = (carag_label){.key = key, .chunk = chunk, .class = class, .next = CARAG_NONE};
    if (is_first)
        shelf->chunks[chunk].label = slot;
    else
        shelf->labels[slot - 1].next = slot;
    atomic_fetch_add(&shelf->classes->live[class], 1);
    shelf->live_labels++;
    return CARAG_OK;
}

static carag_status read_labels(const opening *job, carag_fault *out_fault)
{
    carag_shelf *shelf = job->shelf;
    for (uint32_t slot = 0; slot < shelf->label_room; slot++) {
        const carag_status status = read_label(job, slot, out_fault);
        if (status != CARAG_OK)
            return status;
    }
    if (atomic_load(&shelf->classes->count) != job->header.classes)
        return carag_corrupt(out_fault, "classes", "there is a class that no label has");
    for (uint32_t part = 0; part < shelf->part_count; part++)
        carag_part_settle(shelf, &shelf->parts[part]);
    return CARAG_OK;
}

/* The segment takes the bytes. */
static carag_status make_segment(opening *job)
{
    carag_segment *segment = carag_allocate_zeroed(1, sizeof *segment);
    if (!segment)
        return CARAG_NO_MEMORY;
    segment->terms = job->header.terms;
    segment->blob = job->blob;
    for (int which = 0; which < 3; which++) {
        segment->ends[which] = section_of(job, TEXT_VOCABULARY_ENDS + which);
        segment->streams[which] = section_of(job, TEXT_VOCABULARY + which);
        segment->sizes[which] = job->header.streams[which];
    }
    job->blob = (carag_blob){0};
    job->shelf->segments[job->shelf->segment_count++] = segment;
    return CARAG_OK;
}

/* ---------------------------------------------------------------- loading */

static carag_status load(opening *job, int file, bool map, carag_fault *out_fault)
{
    carag_status status = get_bytes(job, file, map, out_fault);
    if (status != CARAG_OK)
        return status;
    carag_shelf_free(job->shelf);
    if (make_room(job) != CARAG_OK)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    status = read_parts(job, out_fault);
    if (status == CARAG_OK)
        status = read_chunks(job, out_fault);
    if (status == CARAG_OK)
        status = read_labels(job, out_fault);
    if (status != CARAG_OK)
        return status;
    if (make_segment(job) != CARAG_OK)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    return map ? CARAG_OK : carag_shelf_verify(job->shelf, out_fault);
}

carag_status carag_text_load(const char *path, int map, carag_text **out_text, carag_fault *out_fault)
{
    carag_text *text = NULL;
    carag_status status = carag_text_new(&text, out_fault);
    if (status != CARAG_OK)
        return status;
    opening job = {.shelf = &text->shelf};
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    status = file < 0 ? carag_io_failed(out_fault, "", "cannot open") : load(&job, file, map != 0, out_fault);
    if (file >= 0)
        close(file);
    carag_blob_free(&job.blob);
    if (status == CARAG_OK)
        *out_text = text;
    else
        carag_text_free(text);
    return status;
}
