/* text/keep.c - save an index of texts to a file, compacted, so that equal contents make equal bytes. */
#include "carag_internal.h"
#include "file/file.h"
#include "text/format.h"
#include "text/text.h"

#include <string.h>

typedef struct keeping {
    const carag_shelf *shelf;
    carag_text_header header;
    void *arrays[TEXT_SECTIONS]; /* NULL: the segment's */
} keeping;

static const void *section_data(const keeping *job, int section)
{
    const carag_segment *segment = job->shelf->segments[0];
    if (section >= TEXT_VOCABULARY)
        return segment->streams[section - TEXT_VOCABULARY];
    if (section >= TEXT_VOCABULARY_ENDS)
        return segment->ends[section - TEXT_VOCABULARY_ENDS];
    return job->arrays[section];
}

static void fill_header(keeping *job)
{
    const carag_shelf *shelf = job->shelf;
    const carag_segment *segment = shelf->segments[0];
    carag_text_header *header = &job->header;
    uint64_t end;
    *header = (carag_text_header){.version = CARAG_TEXT_VERSION,
                                  .section_count = TEXT_SECTIONS,
                                  .chunks = shelf->chunk_count,
                                  .parts = shelf->part_count,
                                  .labels = shelf->label_count,
                                  .classes = atomic_load(&shelf->classes->count),
                                  .terms = segment->terms,
                                  .streams = {segment->sizes[0], segment->sizes[1], segment->sizes[2]}};
    memcpy(header->magic, carag_text_magic, sizeof carag_text_magic);
    carag_text_lay_out(header, header->sections, &end); /* what is in memory fits */
}

/* The columns of records that are rows in memory. */
static void fill_arrays(const keeping *job)
{
    const carag_shelf *shelf = job->shelf;
    int64_t *keys = job->arrays[TEXT_KEYS];
    uint32_t *lengths = job->arrays[TEXT_LENGTHS];
    int64_t *documents = job->arrays[TEXT_DOCUMENTS];
    uint32_t *sizes = job->arrays[TEXT_SIZES];
    int64_t *labels = job->arrays[TEXT_LABELS];
    uint32_t *on = job->arrays[TEXT_ON];
    uint32_t *classes = job->arrays[TEXT_CLASSES];
    uint32_t *words = job->arrays[TEXT_WORDS];
    carag_terms *terms = job->arrays[TEXT_TERMS];
    for (uint32_t chunk = 0; chunk < shelf->chunk_count; chunk++) {
        keys[chunk] = shelf->chunks[chunk].key;
        lengths[chunk] = shelf->lengths[chunk];
    }
    for (uint32_t part = 0; part < shelf->part_count; part++) {
        documents[part] = shelf->parts[part].document;
        sizes[part] = shelf->parts[part].size;
    }
    for (uint32_t label = 0; label < shelf->label_count; label++) {
        labels[label] = shelf->labels[label].key;
        on[label] = shelf->labels[label].chunk;
        classes[label] = shelf->labels[label].class;
    }
    for (uint32_t class = 0; class < atomic_load(&shelf->classes->count); class ++) {
        words[class] = atomic_load(&shelf->classes->words[class]);
        terms[class] = shelf->classes->terms[class];
    }
}

static bool write_sections(int file, const void *context)
{
    static const unsigned char zeros[CARAG_ALIGNMENT];
    const keeping *job = context;
    if (!carag_write_all(file, &job->header, sizeof job->header))
        return false;
    for (int section = 0; section < TEXT_SECTIONS; section++) {
        const uint64_t size = job->header.sections[section].size;
        if (!carag_write_all(file, section_data(job, section), size) ||
            !carag_write_all(file, zeros, carag_aligned(size) - size))
            return false;
    }
    return true;
}

static carag_status save(keeping *job, const char *path, carag_fault *out_fault)
{
    carag_crc_tables tables;
    carag_crc_tables_init(&tables);
    fill_header(job);
    for (int section = 0; section < TEXT_VOCABULARY_ENDS; section++) {
        job->arrays[section] = carag_allocate(job->header.sections[section].size, 1);
        if (!job->arrays[section])
            return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    }
    fill_arrays(job);
    for (int section = 0; section < TEXT_SECTIONS; section++)
        job->header.sections[section].crc =
            carag_crc(&tables, 0, section_data(job, section), job->header.sections[section].size);
    job->header.crc = carag_crc(&tables, 0, &job->header, offsetof(carag_text_header, crc));
    return carag_replace_file(path, write_sections, job, out_fault);
}

carag_status carag_text_save(carag_text *text, const char *path, carag_fault *out_fault)
{
    pthread_mutex_lock(&text->writer);
    carag_status status = carag_text_compact_now(text, out_fault);
    if (status == CARAG_OK) {
        keeping job = {.shelf = &text->shelf};
        status = save(&job, path, out_fault);
        for (int section = 0; section < TEXT_SECTIONS; section++)
            carag_release(job.arrays[section]);
    }
    pthread_mutex_unlock(&text->writer);
    return status;
}
