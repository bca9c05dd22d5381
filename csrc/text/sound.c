/* text/sound.c - verify all that searches rest on: terms in order, runs and postings within their parts, and the tokens
 * of every chunk as many as its length says.
 */
#include "carag_internal.h"
#include "text/format.h"
#include "text/text.h"

#include <string.h>

typedef struct checking {
    const carag_shelf *shelf;
    uint64_t *tokens;   /* [chunks] of its own text, added up over terms */
    uint64_t *headings; /* [parts] of the heading, likewise */
} checking;

static bool postings_are_sound(checking *job, const carag_run *run, carag_stream postings)
{
    const carag_part *part = &job->shelf->parts[run->part];
    uint32_t place = CARAG_NONE;
    uint32_t most = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        uint32_t frequency;
        if (!carag_next_posting(&postings, &place, &frequency) || place >= part->size)
            return false;
        job->tokens[part->first + place] += frequency;
        most = frequency > most ? frequency : most;
    }
    return postings.at == postings.end && most == run->most;
}

static bool runs_are_sound(checking *job, carag_stream runs, carag_stream postings)
{
    const carag_shelf *shelf = job->shelf;
    carag_run run = {.part = CARAG_NONE};
    if (runs.at == runs.end) /* a term that stands nowhere */
        return false;
    while (runs.at < runs.end) {
        if (!carag_next_run(&runs, &run) || run.part >= shelf->part_count || run.count > shelf->parts[run.part].size ||
            run.bytes > (size_t)(postings.end - postings.at))
            return false;
        const carag_stream own = {postings.at, postings.at + run.bytes};
        postings.at = own.end;
        job->headings[run.part] += run.heading;
        if (!postings_are_sound(job, &run, own))
            return false;
    }
    return postings.at == postings.end;
}

static carag_status verify_segment(checking *job, const carag_segment *segment, carag_fault *out_fault)
{
    carag_stream before = {NULL, NULL};
    for (uint64_t term = 0; term < segment->terms; term++) {
        carag_stream streams[3];
        for (int which = 0; which < 3; which++)
            if (!carag_segment_term(segment, term, which, &streams[which]))
                return carag_corrupt(out_fault, "postings", "the ends of terms are not in order");
        const size_t size = (size_t)(streams[CARAG_WORDS].end - streams[CARAG_WORDS].at);
        const size_t other = before.at ? (size_t)(before.end - before.at) : 0;
        const int order = before.at ? memcmp(before.at, streams[CARAG_WORDS].at, size < other ? size : other) : -1;
        if (size == 0 || size > CARAG_MAX_TERM || order > 0 || (order == 0 && other >= size))
            return carag_corrupt(out_fault, "vocab", "the terms are not in the order of their bytes");
        if (!runs_are_sound(job, streams[CARAG_RUNS], streams[CARAG_POSTINGS]))
            return carag_corrupt(out_fault, "postings", "runs or postings are malformed, or name no chunk");
        before = streams[CARAG_WORDS];
    }
    for (int which = 0; which < 3; which++)
        if ((segment->terms ? segment->ends[which][segment->terms - 1] : 0) != segment->sizes[which])
            return carag_corrupt(out_fault, "postings", "there are more postings than the terms account for");
    return CARAG_OK;
}

/* Of what was deleted, postings may be there or not. */
static carag_status verify_lengths(const checking *job, carag_fault *out_fault)
{
    const carag_shelf *shelf = job->shelf;
    for (uint32_t chunk = 0; chunk < shelf->chunk_count; chunk++)
        if (shelf->chunks[chunk].key >= 0 &&
            job->tokens[chunk] + job->headings[shelf->chunks[chunk].part] != shelf->lengths[chunk])
            return carag_corrupt(out_fault, "lengths", "the number of tokens of a chunk differs from its length");
    return CARAG_OK;
}

/* What a search takes for granted of parts. */
static carag_status verify_parts(const carag_shelf *shelf, carag_fault *out_fault)
{
    for (uint32_t i = 0; i < shelf->part_count; i++) {
        const carag_part *part = &shelf->parts[i];
        uint64_t length = 0;
        uint32_t live = 0;
        bool is_short = false;
        for (uint32_t chunk = part->first; chunk < part->first + part->size; chunk++) {
            if (shelf->chunks[chunk].key < 0)
                continue;
            length += shelf->lengths[chunk];
            is_short |= shelf->lengths[chunk] < part->shortest;
            live++;
        }
        carag_part again = *part;
        if (part->is_even && live > 0)
            carag_part_settle(shelf, &again);
        if (live != part->live || length != part->length || is_short || again.is_even != part->is_even)
            return carag_corrupt(out_fault, "parts", "a part does not match its chunks");
    }
    return CARAG_OK;
}

/* What is still in its file, against the checksums that the file has now. */
static carag_status verify_sums(const carag_segment *segment, carag_fault *out_fault)
{
    carag_text_header header;
    const carag_blob *blob = &segment->blob;
    if (!blob->is_mapped)
        return CARAG_OK;
    const carag_status status = carag_text_header_verify(blob->bytes, blob->size, blob->size, &header, out_fault);
    return status == CARAG_OK ? carag_text_sums_verify(&header, blob->bytes, out_fault) : status;
}

bool carag_shelf_is_mapped(const carag_shelf *shelf)
{
    for (uint32_t i = 0; i < shelf->segment_count; i++)
        if (shelf->segments[i]->blob.is_mapped)
            return true;
    return false;
}

carag_status carag_shelf_verify(const carag_shelf *shelf, carag_fault *out_fault)
{
    checking job = {.shelf = shelf,
                    .tokens = carag_allocate_zeroed(shelf->chunk_count, sizeof *job.tokens),
                    .headings = carag_allocate_zeroed(shelf->part_count, sizeof *job.headings)};
    carag_status status = CARAG_OK;
    if (!job.tokens || !job.headings)
        status = carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    for (uint32_t i = 0; status == CARAG_OK && i < shelf->segment_count; i++) {
        status = verify_sums(shelf->segments[i], out_fault);
        if (status == CARAG_OK)
            status = verify_segment(&job, shelf->segments[i], out_fault);
    }
    if (status == CARAG_OK)
        status = verify_lengths(&job, out_fault);
    if (status == CARAG_OK)
        status = verify_parts(shelf, out_fault);
    carag_release(job.tokens);
    carag_release(job.headings);
    return status;
}

carag_status carag_text_verify(carag_text *text, carag_fault *out_fault)
{
    pthread_mutex_lock(&text->writer);
    const carag_status status = carag_shelf_verify(&text->shelf, out_fault);
    pthread_mutex_unlock(&text->writer);
    return status;
}
