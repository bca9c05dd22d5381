/* text/compact.c - rebuild the shelf from live chunks: one segment, no gap in any array.
 *
 * Deleting hides a chunk at once, but its words stay in postings and in the list of terms. Compacting writes both again
 * without them, and overwrites the memory of before as it is released. What comes out depends on the live chunks, their
 * order and their labels alone: parts and chunks in the order in which they came, labels chunk after chunk by key, classes
 * where they first occur. Saving does it first, so equal contents make equal files.
 */
#include "carag_internal.h"
#include "text/text.h"

typedef struct compaction {
    const carag_shelf *from;
    carag_shelf to;
    uint32_t *parts;  /* [parts of before] new numbers, CARAG_NONE: gone */
    uint32_t *places; /* [chunks of before] new places in their parts */
} compaction;

/* Arrays exactly as large as what lives. */
static carag_status make_room(compaction *job)
{
    const carag_shelf *from = job->from;
    carag_shelf *to = &job->to;
    uint32_t classes = 0;
    const carag_lookup none = {0};
    *to = (carag_shelf){.free_label = CARAG_NONE};
    for (uint32_t class = 0; class < atomic_load(&from->classes->count); class ++)
        classes += atomic_load(&from->classes->live[class]) > 0;
    to->chunk_room = from->live_chunks;
    to->part_room = from->part_count;
    to->label_room = from->live_labels;
    to->classes = carag_catalog_room(classes + CARAG_SPARE_CLASSES, 0);
    to->chunks = carag_allocate(to->chunk_room, sizeof *to->chunks);
    to->lengths = carag_allocate(to->chunk_room, sizeof *to->lengths);
    to->parts = carag_allocate(to->part_room, sizeof *to->parts);
    to->labels = carag_allocate(to->label_room, sizeof *to->labels);
    job->parts = carag_allocate(from->part_count, sizeof *job->parts);
    job->places = carag_allocate(from->chunk_count, sizeof *job->places);
    const bool has_all = to->classes && to->chunks && to->lengths && to->parts && to->labels && job->parts && job->places;
    return has_all && carag_lookup_grown(&none, from->live_chunks, &to->chunk_of) == CARAG_OK &&
                   carag_lookup_grown(&none, from->live_labels, &to->label_of) == CARAG_OK
               ? CARAG_OK
               : CARAG_NO_MEMORY;
}

static void copy_labels(compaction *job, uint32_t before, uint32_t after)
{
    const carag_shelf *from = job->from;
    carag_shelf *to = &job->to;
    for (uint32_t at = from->chunks[before].label; at != CARAG_NONE; at = from->labels[at].next) {
        const uint32_t old = from->labels[at].class;
        const uint32_t word = atomic_load(&from->classes->words[old]);
        uint32_t class = carag_catalog_find(to->classes, word, from->classes->terms[old]);
        if (class == CARAG_NONE)
            class = carag_catalog_add(to->classes, word, from->classes->terms[old]);
        const uint32_t slot = to->label_count++;
        carag_shelf_open(to, slot, from->labels[at].key, after, class);
        carag_lookup_insert(&to->label_of, from->labels[at].key, slot);
    }
}

static void copy_part(compaction *job, const carag_part *before)
{
    const carag_shelf *from = job->from;
    carag_shelf *to = &job->to;
    const uint32_t number = to->part_count++;
    carag_part *part = &to->parts[number];
    *part = (carag_part){.document = before->document, .first = to->chunk_count, .shortest = UINT32_MAX};
    for (uint32_t chunk = before->first; chunk < before->first + before->size; chunk++) {
        if (from->chunks[chunk].key < 0)
            continue;
        const uint32_t length = from->lengths[chunk];
        const uint32_t after = to->chunk_count++;
        job->places[chunk] = part->size++;
        to->chunks[after] = (carag_chunk){.key = from->chunks[chunk].key, .part = number, .label = CARAG_NONE};
        to->lengths[after] = length;
        part->live++;
        part->length += length;
        part->shortest = length < part->shortest ? length : part->shortest;
        carag_lookup_insert(&to->chunk_of, from->chunks[chunk].key, after);
        copy_labels(job, chunk, after);
    }
    to->widest = part->size > to->widest ? part->size : to->widest;
    to->live_chunks += part->size;
    carag_part_settle(to, part);
}

static carag_status compact(compaction *job, carag_fault *out_fault)
{
    const carag_shelf *from = job->from;
    if (make_room(job) != CARAG_OK)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    for (uint32_t part = 0; part < from->part_count; part++) {
        job->parts[part] = from->parts[part].live > 0 ? job->to.part_count : CARAG_NONE;
        if (from->parts[part].live > 0)
            copy_part(job, &from->parts[part]);
    }
    if (from->segment_count == 1 && from->live_chunks == from->chunk_count) {
        job->to.segments[job->to.segment_count++] = from->segments[0]; /* as it would be made again */
        return CARAG_OK;
    }
    const carag_status status = carag_segment_merge(from, from->segments, from->segment_count, job->parts, job->places,
                                                    &job->to.segments[0], out_fault);
    job->to.segment_count = status == CARAG_OK;
    return status;
}

carag_status carag_text_compact_now(carag_text *text, carag_fault *out_fault)
{
    compaction job = {.from = &text->shelf};
    carag_status status = CARAG_OK;
    if (carag_shelf_is_mapped(&text->shelf)) /* nothing is built on damage */
        status = carag_shelf_verify(&text->shelf, out_fault);
    if (status != CARAG_OK)
        return status;
    status = compact(&job, out_fault);
    if (status == CARAG_OK)
        carag_text_replace(text, &job.to);
    else
        carag_shelf_free(&job.to);
    carag_release(job.parts);
    carag_release(job.places);
    return status;
}

carag_status carag_text_compact(carag_text *text, carag_fault *out_fault)
{
    pthread_mutex_lock(&text->writer);
    const carag_status status = carag_text_compact_now(text, out_fault);
    pthread_mutex_unlock(&text->writer);
    return status;
}
