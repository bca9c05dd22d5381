/* text/chunks.c - add and delete chunks.
 *
 * A batch becomes a segment. Segments are few: one that is more than half as large as the one before is merged with it,
 * so sizes at least halve from each to the next, and a posting is written a bounded number of times.
 *
 * All or nothing: everything that can fail comes first.
 */
#include "carag_internal.h"
#include "text/text.h"

#include <string.h>

/* ---------------------------------------------------------------- checking */

static bool ascend(const uint64_t *ends, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (ends[i] < ends[i - 1])
            return false;
    return true;
}

static bool are_terms(const uint32_t *tokens, const uint64_t *ends, size_t texts, size_t terms)
{
    for (uint64_t i = 0; texts > 0 && i < ends[texts - 1]; i++)
        if (tokens[i] >= terms)
            return false;
    return true;
}

static bool are_words(const carag_text_batch *batch)
{
    for (size_t i = 0; i < batch->terms; i++) {
        const uint64_t begin = i > 0 ? batch->word_ends[i - 1] : 0;
        const size_t size = (size_t)(batch->word_ends[i] - begin);
        if (size == 0 || size > CARAG_MAX_TERM)
            return false;
        if (i == 0)
            continue;
        const uint64_t before = i > 1 ? batch->word_ends[i - 2] : 0;
        const size_t other = (size_t)(begin - before);
        const int order = memcmp(batch->words + before, batch->words + begin, other < size ? other : size);
        if (order > 0 || (order == 0 && other >= size))
            return false;
    }
    return true;
}

static carag_status verify_batch(const carag_text_batch *batch, carag_fault *out_fault)
{
    uint64_t chunks = 0;
    if (batch->chunks > CARAG_MAX_ROWS || batch->terms > CARAG_MAX_ROWS)
        return carag_fail(out_fault, CARAG_FULL, 0, "an index of texts holds at most 4,294,967,231 chunks");
    for (size_t part = 0; part < batch->parts; part++) {
        if (batch->documents[part] < 0)
            return carag_fail(out_fault, CARAG_BAD_ARGUMENT, part, "documents must be numbered 0 or more");
        if (batch->sizes[part] < 1 || batch->sizes[part] > CARAG_MAX_PART)
            return carag_fail(out_fault, CARAG_BAD_ARGUMENT, part, "a document must have 1 to 16,777,216 chunks");
        chunks += batch->sizes[part];
    }
    if (chunks != batch->chunks)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "the sizes of the parts must add up to the chunks");
    if (!ascend(batch->word_ends, batch->terms) || !are_words(batch))
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0,
                          "terms must ascend by their bytes, none twice, each 1 to 65,535 bytes long");
    if (!ascend(batch->token_ends, batch->chunks) || !ascend(batch->heading_ends, batch->parts) ||
        !are_terms(batch->tokens, batch->token_ends, batch->chunks, batch->terms) ||
        !are_terms(batch->headings, batch->heading_ends, batch->parts, batch->terms))
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "tokens must be numbers of terms, and their ends ascend");
    return CARAG_OK;
}

/* ---------------------------------------------------------------- adding */

/* Write the chunks and parts beyond what readers see. */
static carag_status write_records(carag_shelf *shelf, const carag_text_batch *batch, carag_fault *out_fault)
{
    uint32_t at = 0;
    for (size_t i = 0; i < batch->parts; i++) {
        const uint64_t heading = batch->heading_ends[i] - (i > 0 ? batch->heading_ends[i - 1] : 0);
        carag_part *part = &shelf->parts[shelf->part_count + i];
        *part = (carag_part){.document = batch->documents[i],
                             .first = shelf->chunk_count + at,
                             .size = batch->sizes[i],
                             .live = batch->sizes[i],
                             .shortest = UINT32_MAX,
                             .is_even = true}; /* no chunk has a label */
        for (uint32_t end = at + batch->sizes[i]; at < end; at++) {
            const uint64_t own = batch->token_ends[at] - (at > 0 ? batch->token_ends[at - 1] : 0);
            if (own + heading > UINT32_MAX)
                return carag_fail(out_fault, CARAG_FULL, at, "a chunk has at most 4,294,967,295 tokens");
            const uint32_t length = (uint32_t)(own + heading);
            shelf->lengths[shelf->chunk_count + at] = length;
            shelf->chunks[shelf->chunk_count + at] = (carag_chunk){
                .key = batch->keys[at], .part = shelf->part_count + (uint32_t)i, .label = CARAG_NONE};
            part->length += length;
            part->shortest = length < part->shortest ? length : part->shortest;
        }
    }
    return CARAG_OK;
}

/* How many of the last segments go into one with the new one: their sizes would not halve. */
static uint32_t segments_to_merge(const carag_shelf *shelf, uint64_t size)
{
    uint32_t count = 0;
    while (count < shelf->segment_count) {
        const carag_segment *last = shelf->segments[shelf->segment_count - 1 - count];
        const uint64_t before = last->sizes[CARAG_RUNS] + last->sizes[CARAG_POSTINGS];
        if (before / 2 >= size && shelf->segment_count - count < CARAG_TEXT_SEGMENTS)
            break;
        size += before;
        count++;
    }
    return count;
}

static uint32_t widest_with(const carag_shelf *shelf, const carag_text_batch *batch)
{
    uint32_t widest = shelf->widest;
    for (size_t i = 0; i < batch->parts; i++)
        widest = batch->sizes[i] > widest ? batch->sizes[i] : widest;
    return widest;
}

/* The last segment that there will be: the new one, or what it makes with some of those there are. */
static carag_status last_segment(const carag_shelf *shelf, const carag_text_batch *batch, uint32_t *out_merged,
                                 carag_segment **out, carag_fault *out_fault)
{
    carag_segment *fresh = NULL;
    carag_status status = carag_segment_build(batch, shelf->part_count, &fresh);
    if (status != CARAG_OK)
        return carag_fail(out_fault, status, 0, "");
    *out = fresh;
    *out_merged = segments_to_merge(shelf, fresh->sizes[CARAG_RUNS] + fresh->sizes[CARAG_POSTINGS]);
    if (*out_merged == 0)
        return CARAG_OK;
    carag_segment *some[CARAG_TEXT_SEGMENTS + 1];
    for (uint32_t i = 0; i < *out_merged; i++)
        some[i] = shelf->segments[shelf->segment_count - *out_merged + i];
    some[*out_merged] = fresh;
    if (carag_shelf_is_mapped(shelf)) /* nothing is built on damage */
        status = carag_shelf_verify(shelf, out_fault);
    if (status != CARAG_OK) {
        carag_segment_free(fresh);
        return status;
    }
    carag_shelf after = *shelf; /* with the records that are written and not counted yet */
    after.part_count += (uint32_t)batch->parts;
    after.chunk_count += (uint32_t)batch->chunks;
    after.widest = widest_with(shelf, batch);
    status = carag_segment_merge(&after, some, *out_merged + 1, NULL, NULL, out, out_fault);
    carag_segment_free(fresh);
    return status;
}

/* All keys, or none. */
static carag_status insert_keys(carag_shelf *shelf, const carag_text_batch *batch, carag_fault *out_fault)
{
    for (size_t i = 0; i < batch->chunks; i++) {
        if (carag_lookup_insert(&shelf->chunk_of, batch->keys[i], shelf->chunk_count + (uint32_t)i))
            continue;
        for (size_t j = 0; j < i; j++)
            carag_lookup_remove(&shelf->chunk_of, batch->keys[j]);
        return carag_fail(out_fault, CARAG_DUPLICATE_KEY, i, "it is the key of another chunk, in the index or the batch");
    }
    return CARAG_OK;
}

static carag_status add(carag_text *text, const carag_text_batch *batch, carag_fault *out_fault)
{
    carag_shelf *shelf = &text->shelf;
    carag_segment *segment = NULL;
    uint32_t merged = 0;
    if (batch->chunks > CARAG_MAX_ROWS - shelf->chunk_count)
        return carag_fail(out_fault, CARAG_FULL, 0, "an index of texts holds at most 4,294,967,231 chunks");
    carag_status status = carag_text_reserve(text, batch->chunks, batch->parts, 0);
    if (status != CARAG_OK)
        return carag_fail(out_fault, status, 0, "");
    status = write_records(shelf, batch, out_fault);
    if (status == CARAG_OK)
        status = last_segment(shelf, batch, &merged, &segment, out_fault);
    if (status != CARAG_OK)
        return status;
    pthread_rwlock_wrlock(&text->lock);
    status = insert_keys(shelf, batch, out_fault);
    carag_segment *before[CARAG_TEXT_SEGMENTS];
    if (status == CARAG_OK) {
        shelf->segment_count -= merged;
        memcpy(before, shelf->segments + shelf->segment_count, merged * sizeof *before);
        shelf->segments[shelf->segment_count++] = segment;
        shelf->chunk_count += (uint32_t)batch->chunks;
        shelf->part_count += (uint32_t)batch->parts;
        shelf->live_chunks += (uint32_t)batch->chunks;
        shelf->widest = widest_with(shelf, batch);
    }
    pthread_rwlock_unlock(&text->lock);
    if (status != CARAG_OK)
        carag_segment_free(segment);
    for (uint32_t i = 0; status == CARAG_OK && i < merged; i++)
        carag_segment_free(before[i]);
    return status;
}

carag_status carag_text_add(carag_text *text, const carag_text_batch *batch, carag_fault *out_fault)
{
    carag_status status = verify_batch(batch, out_fault);
    for (size_t i = 0; status == CARAG_OK && i < batch->chunks; i++)
        if (batch->keys[i] < 0)
            status = carag_fail(out_fault, CARAG_BAD_KEY, i, "keys must be 0 or more");
    if (status != CARAG_OK || batch->chunks == 0)
        return status;
    pthread_mutex_lock(&text->writer);
    status = add(text, batch, out_fault);
    pthread_mutex_unlock(&text->writer);
    return status;
}

/* ---------------------------------------------------------------- deleting */

static void delete_chunk(carag_shelf *shelf, uint32_t number)
{
    carag_chunk *chunk = &shelf->chunks[number];
    carag_part *part = &shelf->parts[chunk->part];
    while (chunk->label != CARAG_NONE) {
        carag_lookup_remove(&shelf->label_of, shelf->labels[chunk->label].key);
        carag_shelf_close(shelf, chunk->label);
    }
    carag_lookup_remove(&shelf->chunk_of, chunk->key);
    chunk->key = -1;
    part->live--;
    part->length -= shelf->lengths[number];
    shelf->live_chunks--;
}

/* A key named twice is deleted once. */
carag_status carag_text_delete(carag_text *text, const int64_t *chunks, size_t count, carag_fault *out_fault)
{
    carag_status status = CARAG_OK;
    carag_shelf *shelf = &text->shelf;
    uint32_t *numbers = carag_allocate(count, sizeof *numbers);
    if (!numbers)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    pthread_mutex_lock(&text->writer);
    for (size_t i = 0; status == CARAG_OK && i < count; i++) {
        numbers[i] = carag_lookup_find(&shelf->chunk_of, chunks[i]);
        if (numbers[i] == CARAG_NONE)
            status = carag_fail(out_fault, CARAG_UNKNOWN_KEY, i, "no chunk has the key");
    }
    if (status == CARAG_OK) {
        pthread_rwlock_wrlock(&text->lock);
        for (size_t i = 0; i < count; i++)
            if (shelf->chunks[numbers[i]].key >= 0)
                delete_chunk(shelf, numbers[i]);
        pthread_rwlock_unlock(&text->lock);
    }
    pthread_mutex_unlock(&text->writer);
    carag_release(numbers);
    return status;
}
