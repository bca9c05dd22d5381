/* row/standing.c - copy a predicate, find how far its instants may move, and tell whether another asks the same. */
#include "row/standing.h"

#include "row/row.h"

#include <string.h>

/* With a window of nothing yet. On failure, what was copied is for carag_standing_release. */
carag_status carag_standing_copy(const carag_predicate *predicate, carag_standing *out_standing)
{
    *out_standing = (carag_standing){
        .predicate = *predicate,
        .entities = carag_allocate(predicate->entity_count, sizeof *out_standing->entities),
        .audiences = carag_allocate(carag_audience_words(predicate), sizeof *out_standing->audiences),
    };
    if (!out_standing->entities || !out_standing->audiences)
        return CARAG_NO_MEMORY;
    if (predicate->entity_count)
        memcpy(out_standing->entities, predicate->entities, predicate->entity_count * sizeof *out_standing->entities);
    if (predicate->audience_count)
        memcpy(out_standing->audiences, predicate->audiences,
               carag_audience_words(predicate) * sizeof *out_standing->audiences);
    out_standing->predicate.entities = out_standing->entities;
    out_standing->predicate.audiences = out_standing->audiences;
    return CARAG_OK;
}

void carag_standing_release(carag_standing *standing)
{
    carag_release(standing->entities);
    carag_release(standing->audiences);
}

static void narrow(uint32_t at, uint32_t instant, uint32_t *from, uint32_t *until)
{
    if (at <= instant)
        *from = at > *from ? at : *from;
    else
        *until = at < *until ? at : *until;
}

/* Classes without rows count, too: they may get some. */
void carag_standing_find_window(const carag_reader *reader, carag_standing *standing)
{
    const carag_catalog *catalog = reader->view->catalog;
    const carag_predicate *predicate = &standing->predicate;
    const uint32_t count = atomic_load_explicit(&catalog->count, memory_order_acquire);
    standing->window = (carag_window){.public_until = UINT32_MAX, .alive_until = UINT32_MAX};
    for (uint32_t class = 0; class < count; class ++) {
        const carag_terms terms = catalog->terms[class];
        if (!carag_word_passes(predicate, atomic_load_explicit(&catalog->words[class], memory_order_relaxed)))
            continue;
        narrow(terms.public_at, predicate->as_of, &standing->window.public_from, &standing->window.public_until);
        narrow(terms.expires_at, predicate->alive_at, &standing->window.alive_from, &standing->window.alive_until);
    }
}

/* Whether the predicate is this one, at an instant of its window. */
bool carag_stands_for(const carag_standing *standing, const carag_predicate *predicate)
{
    const carag_predicate *own = &standing->predicate;
    const carag_window *window = &standing->window;
    if (predicate->as_of < window->public_from || predicate->as_of >= window->public_until ||
        predicate->alive_at < window->alive_from || predicate->alive_at >= window->alive_until)
        return false;
    if (predicate->pair_count != own->pair_count || predicate->entity_rule != own->entity_rule ||
        predicate->entity_count != own->entity_count || predicate->audience_rule != own->audience_rule ||
        predicate->audience_count != own->audience_count)
        return false;
    return memcmp(predicate->pairs, own->pairs, own->pair_count * sizeof *own->pairs) == 0 &&
           (own->entity_count == 0 ||
            memcmp(predicate->entities, own->entities, own->entity_count * sizeof *own->entities) == 0) &&
           (own->audience_count == 0 ||
            memcmp(predicate->audiences, own->audiences, carag_audience_words(own) * sizeof *own->audiences) == 0);
}
