/* text/labels.c - open and close the labels of chunks.
 *
 * A label takes a slot and a place in the list of its chunk; postings are not touched. Every chunk of a part has labels
 * of the same classes most of the time: the part is even, and a search tests it once. A change makes it uneven, which
 * costs searches time and nothing else, and it is asked again after as many changes as it has chunks: so a change costs
 * O(1) over time, also where chunks are relabelled one by one.
 *
 * Windows of a chunk's live labels do not overlap: at each instant at most one of them can admit it.
 */
#include "carag_internal.h"
#include "text/text.h"

#include <string.h>

/* A window that is empty overlaps none. */
bool carag_windows_overlap(carag_terms a, carag_terms b)
{
    const uint32_t begin = a.public_at > b.public_at ? a.public_at : b.public_at;
    const uint32_t end = a.expires_at < b.expires_at ? a.expires_at : b.expires_at;
    return begin < end;
}

/* ---------------------------------------------------------------- one label */

/* Requires a slot that is in no list, in the part's room for labels. */
void carag_shelf_open(carag_shelf *shelf, uint32_t slot, int64_t key, uint32_t chunk, uint32_t class)
{
    uint32_t *link = &shelf->chunks[chunk].label;
    while (*link != CARAG_NONE && shelf->labels[*link].key < key)
        link = &shelf->labels[*link].next;
    shelf->labels[slot] = (carag_label){.key = key, .chunk = chunk, .class = class, .next = *link};
    *link = slot;
    atomic_fetch_add(&shelf->classes->live[class], 1);
    shelf->live_labels++;
    carag_part *part = &shelf->parts[shelf->chunks[chunk].part];
    part->is_even = false;
    part->changes++;
}

/* The slot is free afterwards, the key still in the map. */
void carag_shelf_close(carag_shelf *shelf, uint32_t slot)
{
    const carag_label before = shelf->labels[slot];
    uint32_t *link = &shelf->chunks[before.chunk].label;
    while (*link != slot)
        link = &shelf->labels[*link].next;
    *link = before.next;
    atomic_fetch_sub(&shelf->classes->live[before.class], 1);
    shelf->live_labels--;
    shelf->labels[slot] = (carag_label){.key = -1, .next = shelf->free_label};
    shelf->free_label = slot;
    carag_part *part = &shelf->parts[shelf->chunks[before.chunk].part];
    part->is_even = false;
    part->changes++;
}

/* ---------------------------------------------------------------- even parts */

static bool has_class(const carag_shelf *shelf, uint32_t chunk, uint32_t class)
{
    for (uint32_t at = shelf->chunks[chunk].label; at != CARAG_NONE; at = shelf->labels[at].next)
        if (shelf->labels[at].class == class)
            return true;
    return false;
}

/* Whether a chunk's labels have the part's classes, each of them and no other. */
static bool has_classes(const carag_shelf *shelf, const carag_part *part, uint32_t chunk)
{
    for (uint32_t i = 0; i < part->class_count; i++)
        if (!has_class(shelf, chunk, part->classes[i]))
            return false;
    for (uint32_t at = shelf->chunks[chunk].label; at != CARAG_NONE; at = shelf->labels[at].next) {
        bool is_known = false;
        for (uint32_t i = 0; i < part->class_count; i++)
            is_known |= part->classes[i] == shelf->labels[at].class;
        if (!is_known)
            return false;
    }
    return true;
}

/* Find whether a part is even. */
void carag_part_settle(const carag_shelf *shelf, carag_part *part)
{
    const uint32_t end = part->first + part->size;
    uint32_t chunk = part->first;
    part->changes = 0;
    part->class_count = 0;
    part->is_even = false;
    while (chunk < end && shelf->chunks[chunk].key < 0)
        chunk++;
    if (chunk == end)
        return;
    for (uint32_t at = shelf->chunks[chunk].label; at != CARAG_NONE; at = shelf->labels[at].next) {
        if (part->class_count == CARAG_PART_CLASSES)
            return;
        part->classes[part->class_count++] = shelf->labels[at].class;
    }
    for (chunk++; chunk < end; chunk++)
        if (shelf->chunks[chunk].key >= 0 && !has_classes(shelf, part, chunk))
            return;
    part->is_even = true;
}

static void settle_if_due(const carag_shelf *shelf, uint32_t chunk)
{
    carag_part *part = &shelf->parts[shelf->chunks[chunk].part];
    if (!part->is_even && part->changes >= part->live)
        carag_part_settle(shelf, part);
}

/* ---------------------------------------------------------------- classes */

/* Reserve room for more classes, in a new dictionary without those that no longer have a label. */
static carag_status reserve_classes(carag_text *text, size_t count)
{
    carag_shelf *shelf = &text->shelf;
    const carag_catalog *have = shelf->classes;
    const uint32_t known = atomic_load(&have->count);
    if (have->capacity - known >= count)
        return CARAG_OK;
    uint32_t used = 0;
    for (uint32_t class = 0; class < known; class ++)
        used += atomic_load(&have->live[class]) > 0;
    if (count > CARAG_MAX_ROWS / 4)
        return CARAG_FULL;
    carag_catalog *more = carag_catalog_room(2 * used + (uint32_t)count, 0);
    uint32_t *numbers = carag_allocate(known, sizeof *numbers);
    if (!more || !numbers) {
        carag_catalog_free(more);
        carag_release(numbers);
        return CARAG_NO_MEMORY;
    }
    for (uint32_t class = 0; class < known; class ++) {
        const uint32_t live = atomic_load(&have->live[class]);
        numbers[class] = CARAG_NONE;
        if (live == 0)
            continue;
        numbers[class] = carag_catalog_add(more, atomic_load(&have->words[class]), have->terms[class]);
        atomic_store(&more->live[numbers[class]], live);
    }
    pthread_rwlock_wrlock(&text->lock);
    carag_catalog *before = shelf->classes;
    shelf->classes = more;
    for (uint32_t slot = 0; slot < shelf->label_count; slot++)
        if (shelf->labels[slot].key >= 0)
            shelf->labels[slot].class = numbers[shelf->labels[slot].class];
    for (uint32_t part = 0; part < shelf->part_count; part++)
        for (uint32_t i = 0; shelf->parts[part].is_even && i < shelf->parts[part].class_count; i++)
            shelf->parts[part].classes[i] = numbers[shelf->parts[part].classes[i]];
    pthread_rwlock_unlock(&text->lock);
    carag_catalog_free(before);
    carag_release(numbers);
    return CARAG_OK;
}

/* ---------------------------------------------------------------- many labels */

typedef struct labelling {
    carag_text *text;
    const carag_text_labels *labels;
    uint32_t *closing; /* [close_count] slots */
    uint32_t *chunks;  /* [count] numbers */
    uint32_t *before;  /* [count] the label of the batch before this one on its chunk */
    carag_lookup keys; /* of the batch */
    carag_lookup last; /* by chunk: the last label of the batch that was looked at */
} labelling;

static carag_terms terms_of(const carag_text_labels *labels, size_t i)
{
    return (carag_terms){.public_at = labels->public_at ? labels->public_at[i] : CARAG_ALWAYS_PUBLIC,
                         .expires_at = labels->expires_at ? labels->expires_at[i] : CARAG_NEVER_EXPIRES,
                         .entity = labels->entities ? labels->entities[i] : CARAG_NO_ENTITY,
                         .audience = labels->audiences ? labels->audiences[i] : CARAG_EVERYBODY};
}

static carag_status fail_at(carag_fault *out_fault, carag_status status, size_t row, const char *where, const char *what)
{
    carag_fail(out_fault, status, row, what);
    if (out_fault)
        out_fault->where = where;
    return status;
}

static carag_status find_closing(labelling *job, carag_fault *out_fault)
{
    const carag_shelf *shelf = &job->text->shelf;
    for (size_t i = 0; i < job->labels->close_count; i++) {
        job->closing[i] = carag_lookup_find(&shelf->label_of, job->labels->closes[i]);
        if (job->closing[i] == CARAG_NONE)
            return fail_at(out_fault, CARAG_UNKNOWN_KEY, i, "closes", "no live label has the key");
    }
    for (size_t i = 0; i < job->labels->close_count; i++)
        shelf->labels[job->closing[i]].is_closing = true;
    return CARAG_OK;
}

static void forget_closing(const labelling *job)
{
    for (size_t i = 0; i < job->labels->close_count; i++)
        job->text->shelf.labels[job->closing[i]].is_closing = false;
}

static carag_status check_label(labelling *job, size_t i, carag_fault *out_fault)
{
    const carag_shelf *shelf = &job->text->shelf;
    const carag_text_labels *labels = job->labels;
    const carag_terms terms = terms_of(labels, i);
    job->chunks[i] = carag_lookup_find(&shelf->chunk_of, labels->chunks[i]);
    if (job->chunks[i] == CARAG_NONE)
        return fail_at(out_fault, CARAG_UNKNOWN_KEY, i, "chunks", "no chunk has the key");
    if (carag_lookup_find(&shelf->label_of, labels->keys[i]) != CARAG_NONE ||
        !carag_lookup_insert(&job->keys, labels->keys[i], 0))
        return fail_at(out_fault, CARAG_DUPLICATE_KEY, i, "keys", "it is the key of another label, live or in the batch");
    const int64_t chunk = job->chunks[i];
    job->before[i] = carag_lookup_find(&job->last, chunk);
    if (job->before[i] != CARAG_NONE)
        carag_lookup_remove(&job->last, chunk);
    carag_lookup_insert(&job->last, chunk, (uint32_t)i);
    size_t others = 0;
    for (uint32_t at = job->before[i]; at != CARAG_NONE; at = job->before[at], others++)
        if (carag_windows_overlap(terms, terms_of(labels, at)))
            return fail_at(out_fault, CARAG_OVERLAP, i, "keys", "");
    for (uint32_t at = shelf->chunks[chunk].label; at != CARAG_NONE; at = shelf->labels[at].next, others++)
        if (!shelf->labels[at].is_closing &&
            carag_windows_overlap(terms, shelf->classes->terms[shelf->labels[at].class]))
            return fail_at(out_fault, CARAG_OVERLAP, i, "keys", "");
    if (others >= CARAG_MAX_LABELS)
        return fail_at(out_fault, CARAG_FULL, i, "keys",
                       "a chunk has at most 4,096 labels, including those closed in the call");
    return CARAG_OK;
}

/* Cannot fail: everything was checked, and there is room. */
static void apply(const labelling *job)
{
    carag_shelf *shelf = &job->text->shelf;
    const carag_text_labels *labels = job->labels;
    pthread_rwlock_wrlock(&job->text->lock);
    for (size_t i = 0; i < labels->close_count; i++) {
        const uint32_t slot = job->closing[i];
        job->closing[i] = CARAG_NONE;
        if (shelf->labels[slot].key < 0) /* named twice */
            continue;
        job->closing[i] = shelf->labels[slot].chunk; /* from here on */
        carag_lookup_remove(&shelf->label_of, labels->closes[i]);
        carag_shelf_close(shelf, slot);
    }
    for (size_t i = 0; i < labels->count; i++) {
        const carag_terms terms = terms_of(labels, i);
        uint32_t class = carag_catalog_find(shelf->classes, labels->words[i], terms);
        if (class == CARAG_NONE)
            class = carag_catalog_add(shelf->classes, labels->words[i], terms);
        uint32_t slot = shelf->free_label;
        if (slot == CARAG_NONE)
            slot = shelf->label_count++;
        else
            shelf->free_label = shelf->labels[slot].next;
        carag_shelf_open(shelf, slot, labels->keys[i], job->chunks[i], class);
        carag_lookup_insert(&shelf->label_of, labels->keys[i], slot);
    }
    for (size_t i = 0; i < labels->close_count; i++)
        if (job->closing[i] != CARAG_NONE)
            settle_if_due(shelf, job->closing[i]);
    for (size_t i = 0; i < labels->count; i++)
        settle_if_due(shelf, job->chunks[i]);
    pthread_rwlock_unlock(&job->text->lock);
}

static carag_status change_labels(labelling *job, carag_fault *out_fault)
{
    const size_t count = job->labels->count;
    if (count > CARAG_MAX_ROWS - job->text->shelf.label_count)
        return carag_fail(out_fault, CARAG_FULL, 0, "an index of texts holds at most 4,294,967,231 labels");
    carag_status status = carag_text_reserve(job->text, 0, 0, count);
    if (status == CARAG_OK)
        status = reserve_classes(job->text, count);
    if (status != CARAG_OK)
        return carag_fail(out_fault, status, 0, status == CARAG_FULL ? "too many labels in one call" : "");
    status = find_closing(job, out_fault);
    if (status != CARAG_OK)
        return status;
    for (size_t i = 0; status == CARAG_OK && i < count; i++)
        status = check_label(job, i, out_fault);
    forget_closing(job);
    if (status == CARAG_OK)
        apply(job);
    return status;
}

carag_status carag_text_label(carag_text *text, const carag_text_labels *labels, carag_fault *out_fault)
{
    for (size_t i = 0; i < labels->count; i++) {
        if (!carag_word_is_storable(labels->words[i], labels->allow_quarantine != 0))
            return carag_fail(out_fault, CARAG_BAD_WORD, i, "version must be 0 or 1, bits 30 and 31 clear");
        if (labels->keys[i] < 0)
            return carag_fail(out_fault, CARAG_BAD_KEY, i, "keys must be 0 or more");
    }
    const carag_lookup none = {0};
    labelling job = {.text = text, .labels = labels};
    job.closing = carag_allocate(labels->close_count, sizeof *job.closing);
    job.chunks = carag_allocate(labels->count, sizeof *job.chunks);
    job.before = carag_allocate(labels->count, sizeof *job.before);
    carag_status status = CARAG_NO_MEMORY;
    if (job.closing && job.chunks && job.before && carag_lookup_grown(&none, labels->count, &job.keys) == CARAG_OK &&
        carag_lookup_grown(&none, labels->count, &job.last) == CARAG_OK) {
        pthread_mutex_lock(&text->writer);
        status = change_labels(&job, out_fault);
        pthread_mutex_unlock(&text->writer);
    } else {
        carag_fail(out_fault, status, 0, "");
    }
    carag_release(job.closing);
    carag_release(job.chunks);
    carag_release(job.before);
    carag_release(job.keys.slots);
    carag_release(job.last.slots);
    return status;
}
