/* row/kept.c - answer a predicate from the selection it had, as long as the index has not changed.
 *
 * Asking costs three nanoseconds a class, and documents with an audience each may have a hundred thousand classes. What
 * is kept is found by the predicate itself, compared whole, at an instant between which no class opens or expires; it
 * holds for one view and one generation of the index, so a change, whatever it is, ends it. It is memory of at most
 * four bytes a row: a selection of more than its share is not kept.
 */
#include "row/kept.h"

#include "row/row.h"

#include <string.h>

void carag_kept_init(carag_kept *kept)
{
    pthread_mutex_init(&kept->lock, NULL);
}

static void empty(carag_kept_selection *one)
{
    carag_standing_release(&one->standing);
    carag_release(one->classes);
    *one = (carag_kept_selection){.used = 0};
}

void carag_kept_release(carag_kept *kept)
{
    for (size_t i = 0; i < CARAG_KEPT; i++)
        empty(&kept->selections[i]);
    pthread_mutex_destroy(&kept->lock);
}

/* Of all but the instants. */
uint64_t carag_kept_hash(const carag_predicate *predicate)
{
    uint64_t hash = predicate->pair_count + ((uint64_t)predicate->entity_rule << 8) +
                    ((uint64_t)predicate->audience_rule << 16) + 1;
    for (uint32_t i = 0; i < predicate->pair_count; i++)
        hash = carag_mix(hash + (((uint64_t)predicate->pairs[i].mask << 32) | predicate->pairs[i].value));
    for (size_t i = 0; i < predicate->entity_count; i++)
        hash = carag_mix(hash + predicate->entities[i]);
    for (size_t i = 0; i < carag_audience_words(predicate); i++)
        hash = carag_mix(hash + predicate->audiences[i]);
    return hash;
}

/* Whether it was kept; then the selection is as it was. */
static bool recall(const carag_reader *reader, uint64_t hash, uint64_t generation, carag_selection *selection)
{
    carag_kept *kept = &reader->index->kept;
    for (size_t i = 0; i < CARAG_KEPT; i++) {
        carag_kept_selection *one = &kept->selections[i];
        if (!one->used || one->hash != hash || one->view != reader->view || one->generation != generation ||
            (selection->classes && one->count > selection->room) ||
            !carag_stands_for(&one->standing, selection->test.predicate))
            continue;
        if (selection->classes && one->count)
            memcpy(selection->classes, one->classes, one->count * sizeof *one->classes);
        selection->count = selection->classes ? one->count : 0;
        selection->admissible = one->admissible;
        selection->labelled = one->labelled;
        selection->test_terms = one->test_terms;
        selection->is_exact = true;
        one->used = ++kept->uses;
        return true;
    }
    return false;
}

/* In the place of the one that was not used for longest. What finds no memory is not kept. */
static void keep(const carag_reader *reader, uint64_t hash, uint64_t generation, const carag_selection *selection,
                 carag_standing *standing)
{
    carag_kept *kept = &reader->index->kept;
    carag_kept_selection *oldest = &kept->selections[0];
    for (size_t i = 1; i < CARAG_KEPT; i++)
        if (kept->selections[i].used < oldest->used)
            oldest = &kept->selections[i];
    uint32_t *classes = carag_allocate(selection->count, sizeof *classes);
    if (!classes) {
        carag_standing_release(standing);
        return;
    }
    if (selection->count)
        memcpy(classes, selection->classes, selection->count * sizeof *classes);
    empty(oldest);
    *oldest = (carag_kept_selection){
        .standing = *standing, .view = reader->view, .generation = generation, .used = ++kept->uses, .hash = hash,
        .admissible = selection->admissible, .labelled = selection->labelled, .classes = classes,
        .count = selection->count, .test_terms = selection->test_terms,
    };
}

/* carag_select, or what it gave before; the same requirements. */
void carag_select_again(const carag_reader *reader, carag_selection *selection)
{
    carag_index *index = reader->index;
    carag_kept *kept = &index->kept;
    if (atomic_load_explicit(&reader->view->catalog->count, memory_order_acquire) < CARAG_KEPT_CLASSES) {
        carag_select(reader, selection);
        return;
    }
    const uint64_t generation = atomic_load_explicit(&index->generation, memory_order_acquire);
    const uint64_t hash = carag_kept_hash(selection->test.predicate);
    pthread_mutex_lock(&kept->lock);
    const bool is_found = recall(reader, hash, generation, selection);
    uint64_t *seen = &kept->seen[hash % CARAG_KEPT_SEEN];
    const bool is_seen = *seen == hash;
    *seen = hash;
    pthread_mutex_unlock(&kept->lock);
    if (is_found)
        return;
    carag_select(reader, selection);
    if (!is_seen || !selection->classes || !selection->is_exact || selection->count > reader->rows / CARAG_KEPT)
        return;
    carag_standing standing;
    if (carag_standing_copy(selection->test.predicate, &standing) != CARAG_OK) {
        carag_standing_release(&standing);
        return;
    }
    carag_standing_find_window(reader, &standing);
    atomic_thread_fence(memory_order_acquire);
    if (generation % 2 != 0 || atomic_load_explicit(&index->generation, memory_order_relaxed) != generation) {
        carag_standing_release(&standing);
        return;
    }
    pthread_mutex_lock(&kept->lock);
    keep(reader, hash, generation, selection, &standing);
    pthread_mutex_unlock(&kept->lock);
}
