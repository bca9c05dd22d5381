/* text/rank.c - keep the best, or all, put them in order, higher score first, then smaller key, and hand them over.
 *
 * Where a number is wanted, a heap with the worst on top; where all are, an array that grows, sorted at the end by radix:
 * a hundred thousand of them in a few milliseconds.
 */
#include "carag_internal.h"
#include "text/text.h"

#include <string.h>

#define FIRST_ROOM 256 /* items of the smallest array */
#define RADIX_BITS 11  /* bits of a score, or key, that a pass looks at */

static bool is_better(carag_ranked a, carag_ranked b)
{
    if (a.score > b.score || a.score < b.score)
        return a.score > b.score;
    return a.key < b.key;
}

bool carag_rank_wants(const carag_ranking *ranking, double score, int64_t key)
{
    if (score < ranking->floor)
        return false;
    return ranking->limit == 0 || ranking->count < ranking->limit ||
           is_better((carag_ranked){.score = score, .key = key}, ranking->items[0]);
}

static carag_status make_room(carag_ranking *ranking)
{
    if (ranking->count < ranking->room)
        return CARAG_OK;
    size_t room = ranking->room ? 2 * ranking->room : FIRST_ROOM;
    if (ranking->limit > 0 && room > ranking->limit)
        room = ranking->limit;
    carag_ranked *items = carag_enlarged(ranking->items, ranking->count, room, sizeof *items);
    if (!items)
        return CARAG_NO_MEMORY;
    ranking->items = items;
    ranking->room = room;
    return CARAG_OK;
}

/* The worst on top; there is one order. */
#define HEAP_ITEM carag_ranked
#define HEAP_NAME(what) ranked_##what
#define HEAP_ORDER int
#define HEAP_ABOVE(order, a, b) ((void)(order), is_better(b, a))
#include "heap_of.h"

/* Requires carag_rank_wants. */
carag_status carag_rank_keep(carag_ranking *ranking, carag_ranked item)
{
    if (ranking->limit > 0 && ranking->count == ranking->limit) {
        ranked_sift_down(ranking->items, ranking->count, item, 0);
        return CARAG_OK;
    }
    const carag_status status = make_room(ranking);
    if (status != CARAG_OK)
        return status;
    if (ranking->limit > 0)
        ranked_sift_up(ranking->items, ranking->count, item, 0);
    else
        ranking->items[ranking->count] = item;
    ranking->count++;
    return CARAG_OK;
}

/* Ascending: of scores, which are 0 or more, the complement of their bits. */
static uint64_t rank_of(const carag_ranked *item, bool by_score)
{
    uint64_t bits;
    if (!by_score)
        return (uint64_t)item->key;
    memcpy(&bits, &item->score, sizeof bits);
    return ~bits;
}

static void radix_pass(const carag_ranked *from, carag_ranked *to, size_t count, bool by_score, int shift)
{
    size_t next[1 << RADIX_BITS] = {0};
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        next[rank_of(&from[i], by_score) >> shift & ((1 << RADIX_BITS) - 1)]++;
    for (size_t digit = 0; digit < 1 << RADIX_BITS; digit++) {
        const size_t here = next[digit];
        next[digit] = total;
        total += here;
    }
    for (size_t i = 0; i < count; i++)
        to[next[rank_of(&from[i], by_score) >> shift & ((1 << RADIX_BITS) - 1)]++] = from[i];
}

/* Keys first, then scores: each pass keeps the order of the one before. */
static void sort_passes(carag_ranked **items, carag_ranked **other, size_t count, bool by_score)
{
    uint64_t differs = 0;
    bool ascends = true;
    for (size_t i = 1; i < count; i++) {
        differs |= rank_of(&(*items)[i], by_score) ^ rank_of(&(*items)[0], by_score);
        ascends &= rank_of(&(*items)[i - 1], by_score) <= rank_of(&(*items)[i], by_score);
    }
    if (ascends) /* of keys, often: labels were made in the order of chunks */
        return;
    for (int shift = 0; shift < 64; shift += RADIX_BITS) {
        if ((differs >> shift & ((1 << RADIX_BITS) - 1)) == 0)
            continue;
        radix_pass(*items, *other, count, by_score, shift);
        carag_ranked *const swapped = *items;
        *items = *other;
        *other = swapped;
    }
}

carag_status carag_rank_sort(carag_ranking *ranking)
{
    if (ranking->limit > 0) {
        ranked_unstack(ranking->items, ranking->count, 0);
        return CARAG_OK;
    }
    carag_ranked *other = carag_allocate(ranking->count, sizeof *other);
    if (!other)
        return CARAG_NO_MEMORY;
    sort_passes(&ranking->items, &other, ranking->count, false);
    sort_passes(&ranking->items, &other, ranking->count, true);
    carag_release(other);
    return CARAG_OK;
}

/* ---------------------------------------------------------------- handing over */

/* What was kept, as it stands. */
carag_status carag_rank_give(const carag_shelf *shelf, const carag_ranking *ranking, const carag_text_stats *stats,
                             carag_text_found **out_found)
{
    const size_t count = ranking->count;
    carag_text_found *found = carag_allocate_zeroed(1, sizeof *found);
    if (!found)
        return CARAG_NO_MEMORY;
    found->count = count;
    found->stats = *stats;
    found->keys = carag_allocate(count, sizeof *found->keys);
    found->chunks = carag_allocate(count, sizeof *found->chunks);
    found->documents = carag_allocate(count, sizeof *found->documents);
    found->scores = carag_allocate(count, sizeof *found->scores);
    if (!found->keys || !found->chunks || !found->documents || !found->scores) {
        carag_text_found_free(found);
        return CARAG_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        const carag_ranked item = ranking->items[i];
        const carag_chunk *chunk = &shelf->chunks[item.chunk];
        found->keys[i] = item.key;
        found->chunks[i] = chunk->key;
        found->documents[i] = shelf->parts[chunk->part].document;
        found->scores[i] = item.score;
    }
    *out_found = found;
    return CARAG_OK;
}

void carag_text_found_free(carag_text_found *found)
{
    if (!found)
        return;
    carag_release(found->keys);
    carag_release(found->chunks);
    carag_release(found->documents);
    carag_release(found->scores);
    carag_release(found->frequencies);
    carag_release(found);
}
