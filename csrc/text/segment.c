/* text/segment.c - the postings of some parts: made from a batch, or from other segments.
 *
 * Each term has two streams of numbers, 7 bits a byte, least first, the top bit where more follow.
 *
 *   runs      of each part that has the term, ascending: part less the one before (of the first, plus 1);
 *             2 * count + (1 if the heading has it); if so, how often; and if count > 0, the bytes of its postings,
 *             and how often the term stands in a chunk at most
 *   postings  of each chunk, ascending by its place in the part: place less the one before (of the first, plus 1); how
 *             often
 *
 * So the count of a run, and whether to read its postings, are known without them. Nothing that depends on other parts
 * is kept: no frequency in the whole, no weight, no order of terms but that of their bytes.
 *
 * The streams of a file that is mapped may hold anything: every read reports whether it succeeded.
 */
#include "carag_internal.h"
#include "text/text.h"

#include <string.h>
#include <sys/mman.h>

#define FIRST_ROOM 256 /* bytes of the smallest stream being written */

/* ---------------------------------------------------------------- reading */

/* One of the streams of a term; false when its ends are not in order. */
bool carag_segment_term(const carag_segment *segment, uint64_t term, int which, carag_stream *out)
{
    const uint64_t *ends = segment->ends[which];
    const uint64_t begin = term > 0 ? ends[term - 1] : 0;
    const uint64_t end = ends[term];
    const uint64_t size = segment->sizes[which];
    *out = (carag_stream){NULL, NULL};
    if (begin > end || end > size)
        return false;
    *out = (carag_stream){segment->streams[which] + begin, segment->streams[which] + end};
    return true;
}

static int compare_words(const unsigned char *a, size_t a_size, const unsigned char *b, size_t b_size)
{
    const int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

/* The number of a term; false when an end is not in order. */
bool carag_segment_find(const carag_segment *segment, const unsigned char *word, size_t size, uint64_t *out_term,
                        bool *out_found)
{
    uint64_t low = 0;
    uint64_t high = segment->terms;
    *out_found = false;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        carag_stream other;
        if (!carag_segment_term(segment, middle, CARAG_WORDS, &other))
            return false;
        const int order = compare_words(other.at, (size_t)(other.end - other.at), word, size);
        if (order == 0) {
            *out_term = middle;
            *out_found = true;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return true;
}

/* ---------------------------------------------------------------- writing */

/* Words are text, which must not remain even in released memory. */
static void wipe(unsigned char *bytes, size_t size)
{
    memset(bytes, 0, size);
    __asm__ volatile("" : : "r"(bytes) : "memory"); /* otherwise the compiler may drop the store to memory that is released */
}

typedef struct builder {
    carag_bytes streams[3];
    uint64_t *ends[3]; /* [room] */
    uint64_t terms, room;
    uint32_t *places, *frequencies; /* of the run being made */
    uint32_t part;                  /* of the last run of the term, CARAG_NONE: none yet */
    bool failed;                    /* out of memory */
} builder;

static void put(builder *to, int which, const void *data, size_t size)
{
    carag_bytes *bytes = &to->streams[which];
    if (!to->failed && bytes->room - bytes->size < size) {
        const size_t room = 2 * bytes->room + size + FIRST_ROOM;
        unsigned char *more = carag_allocate(room, 1);
        to->failed = !more;
        if (more) {
            if (bytes->size) {
                memcpy(more, bytes->data, bytes->size);
                wipe(bytes->data, bytes->size);
            }
            carag_release(bytes->data);
            bytes->data = more;
            bytes->room = room;
        }
    }
    if (to->failed || size == 0)
        return;
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

static void put_number(builder *to, int which, uint32_t number)
{
    unsigned char bytes[5];
    size_t size = 0;
    for (; number > 127; number >>= 7)
        bytes[size++] = (unsigned char)(number | 128);
    bytes[size++] = (unsigned char)number;
    put(to, which, bytes, size);
}

/* A part's run of the present term: `count` chunks in places and frequencies; nothing when there is nothing. */
static void put_run(builder *to, uint32_t part, uint32_t heading, uint32_t count)
{
    const size_t before = to->streams[CARAG_POSTINGS].size;
    uint32_t last = CARAG_NONE;
    uint32_t most = 0;
    if (count == 0 && heading == 0)
        return;
    for (uint32_t i = 0; i < count; i++) {
        put_number(to, CARAG_POSTINGS, to->places[i] - last);
        put_number(to, CARAG_POSTINGS, to->frequencies[i]);
        last = to->places[i];
        most = to->frequencies[i] > most ? to->frequencies[i] : most;
    }
    put_number(to, CARAG_RUNS, part - to->part);
    put_number(to, CARAG_RUNS, 2 * count + (heading > 0));
    if (heading > 0)
        put_number(to, CARAG_RUNS, heading);
    if (count > 0) {
        put_number(to, CARAG_RUNS, (uint32_t)(to->streams[CARAG_POSTINGS].size - before));
        put_number(to, CARAG_RUNS, most);
    }
    to->part = part;
}

/* End the present term: with its word if it has runs, else as if it had not been. */
static void put_word(builder *to, const unsigned char *word, size_t size)
{
    if (to->part == CARAG_NONE)
        return;
    put(to, CARAG_WORDS, word, size);
    for (int which = 0; which < 3; which++)
        to->ends[which][to->terms] = to->streams[which].size;
    to->terms++;
    to->part = CARAG_NONE;
}

static void builder_free(builder *to)
{
    for (int which = 0; which < 3; which++) {
        if (to->streams[which].data)
            wipe(to->streams[which].data, to->streams[which].size);
        carag_release(to->streams[which].data);
        carag_release(to->ends[which]);
    }
    carag_release(to->places);
    carag_release(to->frequencies);
}

static carag_status builder_init(builder *to, uint64_t terms, uint32_t widest)
{
    *to = (builder){.part = CARAG_NONE, .room = terms};
    to->places = carag_allocate(widest, sizeof *to->places);
    to->frequencies = carag_allocate(widest, sizeof *to->frequencies);
    for (int which = 0; which < 3; which++)
        to->ends[which] = carag_allocate(terms, sizeof *to->ends[which]);
    if (to->places && to->frequencies && to->ends[0] && to->ends[1] && to->ends[2])
        return CARAG_OK;
    builder_free(to);
    return CARAG_NO_MEMORY;
}

/* Put what was written into one piece of memory. */
static carag_status finish(const builder *from, carag_segment **out)
{
    const size_t table = (size_t)from->terms * sizeof(uint64_t);
    size_t size = 3 * table;
    for (int which = 0; which < 3; which++)
        size += from->streams[which].size;
    carag_segment *segment = from->failed ? NULL : carag_allocate_zeroed(1, sizeof *segment);
    unsigned char *bytes = segment ? carag_allocate_aligned(size, 1) : NULL;
    if (!bytes) {
        carag_release(segment);
        return CARAG_NO_MEMORY;
    }
    segment->terms = from->terms;
    segment->blob = (carag_blob){.bytes = bytes, .size = size};
    for (int which = 0; which < 3; which++) {
        if (table)
            memcpy(bytes, from->ends[which], table);
        segment->ends[which] = (const uint64_t *)(void *)bytes;
        bytes += table;
    }
    for (int which = 0; which < 3; which++) {
        if (from->streams[which].size)
            memcpy(bytes, from->streams[which].data, from->streams[which].size);
        segment->streams[which] = bytes;
        segment->sizes[which] = from->streams[which].size;
        bytes += from->streams[which].size;
    }
    *out = segment;
    return CARAG_OK;
}

void carag_blob_free(carag_blob *blob)
{
    if (blob->bytes && blob->is_mapped)
        munmap(blob->bytes, blob->size);
    else if (blob->bytes) {
        wipe(blob->bytes, blob->size);
        carag_release_aligned(blob->bytes);
    }
    *blob = (carag_blob){0};
}

void carag_segment_free(carag_segment *segment)
{
    if (!segment)
        return;
    carag_blob_free(&segment->blob);
    carag_release(segment);
}

/* ---------------------------------------------------------------- from a batch */

/* A term in a chunk, or in a heading. */
typedef struct entry {
    uint32_t part, place; /* CARAG_NONE: the heading */
    uint32_t frequency;
} entry;

typedef struct sorting {
    const carag_text_batch *batch;
    uint64_t *ends;        /* [terms] of each term's entries: first how many, then where the next goes */
    uint32_t *frequencies; /* [terms] in the text being read */
    uint32_t *met;         /* [terms] the terms of that text */
    entry *entries;        /* NULL: only count them */
} sorting;

static void sort_text(sorting *job, const uint32_t *tokens, uint64_t begin, uint64_t end, uint32_t part, uint32_t place)
{
    size_t met = 0;
    for (uint64_t at = begin; at < end; at++)
        if (job->frequencies[tokens[at]]++ == 0)
            job->met[met++] = tokens[at];
    for (size_t i = 0; i < met; i++) {
        const uint32_t term = job->met[i];
        const uint64_t to = job->ends[term]++;
        if (job->entries)
            job->entries[to] = (entry){part, place, job->frequencies[term]};
        job->frequencies[term] = 0;
    }
}

/* Texts in order, a part's heading before its chunks. */
static void sort_texts(sorting *job)
{
    const carag_text_batch *batch = job->batch;
    size_t chunk = 0;
    for (size_t part = 0; part < batch->parts; part++) {
        sort_text(job, batch->headings, part > 0 ? batch->heading_ends[part - 1] : 0, batch->heading_ends[part],
                  (uint32_t)part, CARAG_NONE);
        for (uint32_t place = 0; place < batch->sizes[part]; place++, chunk++)
            sort_text(job, batch->tokens, chunk > 0 ? batch->token_ends[chunk - 1] : 0, batch->token_ends[chunk],
                      (uint32_t)part, place);
    }
}

static void put_entries(builder *to, const entry *entries, uint64_t begin, uint64_t end, uint32_t first_part)
{
    for (uint64_t at = begin; at < end;) {
        const uint32_t part = entries[at].part;
        uint32_t heading = 0;
        uint32_t count = 0;
        for (; at < end && entries[at].part == part; at++) {
            if (entries[at].place == CARAG_NONE) {
                heading = entries[at].frequency;
            } else {
                to->places[count] = entries[at].place;
                to->frequencies[count++] = entries[at].frequency;
            }
        }
        put_run(to, first_part + part, heading, count);
    }
}

static carag_status build(sorting *job, builder *to, uint32_t first_part, carag_segment **out)
{
    const carag_text_batch *batch = job->batch;
    sort_texts(job);
    uint64_t total = 0;
    for (size_t term = 0; term < batch->terms; term++) {
        const uint64_t count = job->ends[term];
        job->ends[term] = total; /* where its first goes */
        total += count;
    }
    job->entries = carag_allocate(total, sizeof *job->entries);
    if (!job->entries)
        return CARAG_NO_MEMORY;
    sort_texts(job);
    for (size_t term = 0; term < batch->terms; term++) {
        const uint64_t begin = term > 0 ? batch->word_ends[term - 1] : 0;
        put_entries(to, job->entries, term > 0 ? job->ends[term - 1] : 0, job->ends[term], first_part);
        put_word(to, batch->words + begin, (size_t)(batch->word_ends[term] - begin));
    }
    return finish(to, out);
}

/* Requires a batch that was verified (text/chunks.c). */
carag_status carag_segment_build(const carag_text_batch *batch, uint32_t first_part, carag_segment **out)
{
    uint32_t widest = 0;
    for (size_t part = 0; part < batch->parts; part++)
        widest = batch->sizes[part] > widest ? batch->sizes[part] : widest;
    builder to;
    if (builder_init(&to, batch->terms, widest) != CARAG_OK)
        return CARAG_NO_MEMORY;
    sorting job = {.batch = batch,
                   .ends = carag_allocate_zeroed(batch->terms, sizeof *job.ends),
                   .frequencies = carag_allocate_zeroed(batch->terms, sizeof *job.frequencies),
                   .met = carag_allocate(batch->terms, sizeof *job.met)};
    carag_status status = CARAG_NO_MEMORY;
    if (job.ends && job.frequencies && job.met)
        status = build(&job, &to, first_part, out);
    carag_release(job.ends);
    carag_release(job.frequencies);
    carag_release(job.met);
    carag_release(job.entries);
    builder_free(&to);
    return status;
}

/* ---------------------------------------------------------------- from segments */

typedef struct merging {
    const carag_shelf *shelf;
    const uint32_t *parts;  /* the new number of each part, CARAG_NONE: it goes; NULL: as it is */
    const uint32_t *places; /* the new place of each chunk in its part; NULL: as it is */
    builder to;
} merging;

/* A run of one segment's stream. */
static bool merge_run(merging *job, const carag_run *run, carag_stream *postings)
{
    const carag_shelf *shelf = job->shelf;
    if (run->part >= shelf->part_count || run->bytes > (size_t)(postings->end - postings->at))
        return false;
    const carag_part *part = &shelf->parts[run->part];
    carag_stream own = {postings->at, postings->at + run->bytes};
    uint32_t place = CARAG_NONE;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        uint32_t frequency;
        if (!carag_next_posting(&own, &place, &frequency) || place >= part->size)
            return false;
        if (shelf->chunks[part->first + place].key < 0)
            continue;
        job->to.places[kept] = job->places ? job->places[part->first + place] : place;
        job->to.frequencies[kept++] = frequency;
    }
    if (own.at != own.end)
        return false;
    postings->at = own.end;
    const uint32_t number = job->parts ? job->parts[run->part] : run->part;
    if (part->live > 0)
        put_run(&job->to, number, run->heading, kept);
    return true;
}

static bool merge_term(merging *job, const carag_segment *segment, uint64_t term)
{
    carag_stream runs;
    carag_stream postings;
    carag_run run = {.part = CARAG_NONE};
    if (!carag_segment_term(segment, term, CARAG_RUNS, &runs) ||
        !carag_segment_term(segment, term, CARAG_POSTINGS, &postings))
        return false;
    while (runs.at < runs.end)
        if (!carag_next_run(&runs, &run) || !merge_run(job, &run, &postings))
            return false;
    return postings.at == postings.end;
}

/* Term by term, the least of those that segments stand at. Segments ascend by their parts. */
static bool merge(merging *job, carag_segment *const *segments, uint32_t count)
{
    uint64_t at[CARAG_TEXT_SEGMENTS + 1] = {0};
    for (;;) {
        carag_stream least = {NULL, NULL};
        for (uint32_t i = 0; i < count; i++) {
            carag_stream word;
            if (at[i] == segments[i]->terms)
                continue;
            if (!carag_segment_term(segments[i], at[i], CARAG_WORDS, &word))
                return false;
            if (!least.at || compare_words(word.at, (size_t)(word.end - word.at), least.at,
                                           (size_t)(least.end - least.at)) < 0)
                least = word;
        }
        if (!least.at)
            return true;
        for (uint32_t i = 0; i < count; i++) {
            carag_stream word;
            if (at[i] == segments[i]->terms || !carag_segment_term(segments[i], at[i], CARAG_WORDS, &word) ||
                compare_words(word.at, (size_t)(word.end - word.at), least.at, (size_t)(least.end - least.at)) != 0)
                continue;
            if (!merge_term(job, segments[i], at[i]++))
                return false;
        }
        put_word(&job->to, least.at, (size_t)(least.end - least.at));
    }
}

/* One segment of several, without what stood in deleted chunks; parts and places may get other numbers. */
carag_status carag_segment_merge(const carag_shelf *shelf, carag_segment *const *segments, uint32_t count,
                                 const uint32_t *parts, const uint32_t *places, carag_segment **out,
                                 carag_fault *out_fault)
{
    merging job = {.shelf = shelf, .parts = parts, .places = places};
    uint64_t terms = 0;
    for (uint32_t i = 0; i < count; i++)
        terms += segments[i]->terms;
    if (builder_init(&job.to, terms, shelf->widest) != CARAG_OK)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    carag_status status = CARAG_CORRUPT;
    if (merge(&job, segments, count)) {
        status = finish(&job.to, out);
        if (status != CARAG_OK)
            carag_fail(out_fault, status, 0, "");
    } else {
        carag_fail(out_fault, status, 0, "the postings of the mapped file are damaged");
        if (out_fault)
            out_fault->where = "postings";
    }
    builder_free(&job.to);
    return status;
}
