/* text/admit.c - which chunks a predicate admits: classes first, then parts, then the chunks of parts that are uneven.
 *
 * A predicate is asked once a class. An even part without deleted chunks is admitted whole or not at all, by the classes
 * that stand in it; of any other, each chunk is asked for its labels. What comes out counts and sums admissible chunks
 * alone: all statistics of a search are made of it.
 */
#include "carag_internal.h"
#include "text/text.h"

static bool is_open(const carag_shelf *shelf, const carag_admission *admission, uint32_t chunk)
{
    for (uint32_t at = shelf->chunks[chunk].label; at != CARAG_NONE; at = shelf->labels[at].next)
        if (admission->passes[shelf->labels[at].class])
            return true;
    return false;
}

/* Chunk by chunk: returns how many. */
static uint32_t admit_chunks(const carag_shelf *shelf, carag_admission *admission, const carag_part *part)
{
    uint32_t count = 0;
    for (uint32_t chunk = part->first; chunk < part->first + part->size; chunk++) {
        const uint64_t bit = (uint64_t)1 << (chunk % 64);
        if (shelf->chunks[chunk].key >= 0 && is_open(shelf, admission, chunk)) {
            admission->bits[chunk / 64] |= bit;
            admission->length += shelf->lengths[chunk];
            count++;
        } else {
            admission->bits[chunk / 64] &= ~bit;
        }
    }
    return count;
}

static carag_share admit_part(const carag_shelf *shelf, carag_admission *admission, const carag_part *part,
                              uint32_t *out_count)
{
    bool passes = !part->is_even;
    for (uint32_t i = 0; part->is_even && i < part->class_count; i++)
        passes |= admission->passes[part->classes[i]];
    *out_count = 0;
    if (!passes || part->live == 0)
        return CARAG_NOTHING;
    if (part->is_even && part->live == part->size) {
        admission->length += part->length;
        *out_count = part->size;
        return CARAG_ALL;
    }
    *out_count = admit_chunks(shelf, admission, part);
    return *out_count > 0 ? CARAG_SOME : CARAG_NOTHING;
}

/* Requires room in the admission's arrays. */
void carag_admit(const carag_shelf *shelf, const carag_test *test, carag_admission *admission)
{
    const uint32_t classes = atomic_load(&shelf->classes->count);
    admission->chunks = 0;
    admission->length = 0;
    for (uint32_t class = 0; class < classes; class ++)
        admission->passes[class] =
            carag_is_admissible(test, atomic_load_explicit(&shelf->classes->words[class], memory_order_relaxed),
                                shelf->classes->terms[class]);
    for (uint32_t i = 0; i < shelf->part_count; i++) {
        admission->shares[i] = (uint8_t)admit_part(shelf, admission, &shelf->parts[i], &admission->counts[i]);
        admission->chunks += admission->counts[i];
    }
}

/* The key of the label that admits a chunk, the smallest if there are several; -1: none does. */
int64_t carag_admitting_label(const carag_shelf *shelf, const carag_admission *admission, uint32_t chunk)
{
    for (uint32_t at = shelf->chunks[chunk].label; at != CARAG_NONE; at = shelf->labels[at].next)
        if (admission->passes[shelf->labels[at].class])
            return shelf->labels[at].key;
    return -1;
}
