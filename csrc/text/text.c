/* text/text.c - make and release an index of texts, give it room, and say what it holds. */
#include "carag_internal.h"
#include "text/text.h"

#include <string.h>

#define FIRST_ROOM 64    /* items of the smallest array */
#define FIRST_CLASSES 64 /* classes that the smallest dictionary has room for */

/* ---------------------------------------------------------------- life */

carag_status carag_shelf_init(carag_shelf *shelf)
{
    *shelf = (carag_shelf){.free_label = CARAG_NONE, .classes = carag_catalog_room(FIRST_CLASSES, 0)};
    return shelf->classes ? CARAG_OK : CARAG_NO_MEMORY;
}

void carag_shelf_free(carag_shelf *shelf)
{
    carag_release(shelf->chunks);
    carag_release(shelf->lengths);
    carag_release(shelf->parts);
    carag_release(shelf->labels);
    carag_release(shelf->chunk_of.slots);
    carag_release(shelf->label_of.slots);
    carag_catalog_free(shelf->classes);
    for (uint32_t i = 0; i < shelf->segment_count; i++)
        carag_segment_free(shelf->segments[i]);
    *shelf = (carag_shelf){0};
}

carag_status carag_text_new(carag_text **out_text, carag_fault *out_fault)
{
    carag_text *text = carag_allocate_zeroed(1, sizeof *text);
    if (!text || carag_shelf_init(&text->shelf) != CARAG_OK) {
        carag_release(text);
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    }
    pthread_rwlockattr_t fair;
    pthread_rwlockattr_init(&fair);
#if defined(__GLIBC__) /* otherwise continuous readers would keep a writer out */
    pthread_rwlockattr_setkind_np(&fair, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
    pthread_mutex_init(&text->writer, NULL); /* none of these fails on Linux */
    pthread_rwlock_init(&text->lock, &fair);
    pthread_rwlockattr_destroy(&fair);
    *out_text = text;
    return CARAG_OK;
}

void carag_text_free(carag_text *text)
{
    if (!text)
        return;
    for (carag_block *block; (block = carag_slots_take(&text->scratches));)
        carag_block_free(block);
    carag_shelf_free(&text->shelf);
    pthread_mutex_destroy(&text->writer);
    pthread_rwlock_destroy(&text->lock);
    carag_release(text);
}

/* Publish another shelf, and release the previous one. For the writer. */
void carag_text_replace(carag_text *text, carag_shelf *shelf)
{
    carag_shelf before = text->shelf;
    pthread_rwlock_wrlock(&text->lock);
    text->shelf = *shelf;
    pthread_rwlock_unlock(&text->lock);
    for (uint32_t i = 0; i < before.segment_count; i++) /* one that both have stays */
        for (uint32_t j = 0; j < shelf->segment_count; j++)
            if (before.segments[i] == shelf->segments[j])
                before.segments[i] = NULL;
    carag_shelf_free(&before);
}

/* ---------------------------------------------------------------- room */

static size_t grown(size_t room, size_t wanted)
{
    const size_t twice = 2 * room > FIRST_ROOM ? 2 * room : FIRST_ROOM;
    return twice > wanted ? twice : wanted;
}

/* A larger copy of an array, *out_room for the size it has; NULL when out of memory. */
static void *larger(const void *array, size_t count, size_t room, size_t wanted, size_t size, uint32_t *out_room)
{
    const size_t after = grown(room, wanted);
    void *more = carag_allocate(after, size);
    if (more && count)
        memcpy(more, array, count * size);
    *out_room = (uint32_t)after;
    return more;
}

/* Reserve room for more chunks, parts and labels, in arrays and maps. For the writer, while readers go on. */
carag_status carag_text_reserve(carag_text *text, size_t chunks, size_t parts, size_t labels)
{
    const carag_shelf *have = &text->shelf;
    carag_shelf more = *have;
    carag_status status = CARAG_OK;
    if (have->chunk_count + chunks > have->chunk_room) {
        more.chunks = larger(have->chunks, have->chunk_count, have->chunk_room, have->chunk_count + chunks,
                             sizeof *more.chunks, &more.chunk_room);
        more.lengths = larger(have->lengths, have->chunk_count, have->chunk_room, have->chunk_count + chunks,
                              sizeof *more.lengths, &more.chunk_room);
        status = more.chunks && more.lengths ? status : CARAG_NO_MEMORY;
    }
    if (have->part_count + parts > have->part_room) {
        more.parts = larger(have->parts, have->part_count, have->part_room, have->part_count + parts,
                            sizeof *more.parts, &more.part_room);
        status = more.parts ? status : CARAG_NO_MEMORY;
    }
    if (have->label_count + labels > have->label_room) {
        more.labels = larger(have->labels, have->label_count, have->label_room, have->label_count + labels,
                             sizeof *more.labels, &more.label_room);
        status = more.labels ? status : CARAG_NO_MEMORY;
    }
    carag_lookup chunk_of = {0};
    carag_lookup label_of = {0};
    if (carag_lookup_grown(&have->chunk_of, have->chunk_of.count + chunks, &chunk_of) != CARAG_OK ||
        carag_lookup_grown(&have->label_of, have->label_of.count + labels, &label_of) != CARAG_OK)
        status = CARAG_NO_MEMORY;
    more.chunk_of = chunk_of.slots ? chunk_of : have->chunk_of;
    more.label_of = label_of.slots ? label_of : have->label_of;
    carag_shelf unused = status == CARAG_OK ? *have : more; /* what is not kept of the two */
    const carag_shelf kept = status == CARAG_OK ? more : *have;
    if (status == CARAG_OK) {
        pthread_rwlock_wrlock(&text->lock);
        text->shelf = more;
        pthread_rwlock_unlock(&text->lock);
    }
    carag_release(unused.chunks == kept.chunks ? NULL : unused.chunks);
    carag_release(unused.lengths == kept.lengths ? NULL : unused.lengths);
    carag_release(unused.parts == kept.parts ? NULL : unused.parts);
    carag_release(unused.labels == kept.labels ? NULL : unused.labels);
    carag_release(unused.chunk_of.slots == kept.chunk_of.slots ? NULL : unused.chunk_of.slots);
    carag_release(unused.label_of.slots == kept.label_of.slots ? NULL : unused.label_of.slots);
    return status;
}

/* ---------------------------------------------------------------- what there is */

void carag_text_get_info(carag_text *text, carag_text_info *out_info)
{
    pthread_rwlock_rdlock(&text->lock);
    const carag_shelf *shelf = &text->shelf;
    *out_info = (carag_text_info){.chunks = shelf->live_chunks,
                                  .labels = shelf->live_labels,
                                  .parts = shelf->part_count,
                                  .segments = shelf->segment_count,
                                  .classes = atomic_load(&shelf->classes->count)};
    for (uint32_t i = 0; i < shelf->segment_count; i++) {
        out_info->terms += shelf->segments[i]->terms;
        for (int which = 0; which < 3; which++)
            out_info->bytes += shelf->segments[i]->sizes[which];
    }
    pthread_rwlock_unlock(&text->lock);
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static size_t list_keys(carag_text *text, const carag_lookup *lookup, int64_t *out_keys, size_t room)
{
    size_t count = 0;
    pthread_rwlock_rdlock(&text->lock);
    for (size_t slot = 0; slot < lookup->capacity && count < room; slot++)
        if (lookup->slots[slot].key != -1)
            out_keys[count++] = lookup->slots[slot].key;
    pthread_rwlock_unlock(&text->lock);
    if (count > 0)
        qsort(out_keys, count, sizeof *out_keys, by_value);
    return count;
}

size_t carag_text_chunks(carag_text *text, int64_t *out_keys, size_t room)
{
    return list_keys(text, &text->shelf.chunk_of, out_keys, room);
}

size_t carag_text_label_keys(carag_text *text, int64_t *out_keys, size_t room)
{
    return list_keys(text, &text->shelf.label_of, out_keys, room);
}
