/* text/admit.c - which chunks some predicates admit: classes first, then parts, then the chunks of uneven parts.
 *
 * Each predicate is asked once a class, and a class passes if any of them admits it. From there on nothing knows how many
 * predicates there are, so a chunk that several admit, by one label or by two, counts once. An even part without deleted
 * chunks is admitted whole or not at all, by the classes that stand in it; of any other, each chunk is asked for its
 * labels. What comes out counts and sums admissible chunks alone: all statistics of a search are made of it.
 */
#include "carag_internal.h"
#include "text/text.h"

#include <string.h>

carag_status carag_predicates_verify(const carag_predicate *predicates, size_t count, carag_fault *out_fault)
{
    if (count < 1 || count > CARAG_MAX_PREDICATES)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "want 1 to 8 predicates");
    for (size_t i = 0; i < count; i++)
        if (!carag_predicate_is_closed(&predicates[i]))
            return carag_fail(out_fault, CARAG_BAD_PREDICATE, i, CARAG_CLOSED_PREDICATE);
    return CARAG_OK;
}

/* Requires room for every class. */
void carag_admit_classes(const carag_shelf *shelf, const carag_predicate *predicates, size_t count, bool *out_passes)
{
    const uint32_t classes = atomic_load(&shelf->classes->count);
    carag_test test;
    memset(out_passes, 0, classes * sizeof *out_passes);
    for (size_t i = 0; i < count; i++) {
        carag_test_init(&test, &predicates[i]);
        for (uint32_t class = 0; class < classes; class ++)
            out_passes[class] =
                out_passes[class] ||
                carag_is_admissible(&test, atomic_load_explicit(&shelf->classes->words[class], memory_order_relaxed),
                                    shelf->classes->terms[class]);
    }
}

/* The key of the label that admits a chunk, the smallest of several; -1: none does, or the chunk is deleted. */
int64_t carag_admitting_label(const carag_shelf *shelf, const bool *passes, uint32_t chunk)
{
    if (shelf->chunks[chunk].key < 0)
        return -1;
    for (uint32_t at = shelf->chunks[chunk].label; at != CARAG_NONE; at = shelf->labels[at].next)
        if (passes[shelf->labels[at].class])
            return shelf->labels[at].key;
    return -1;
}

/* Whether anything of a part may be admissible: of an even one with a live chunk, exactly whether all of them are. */
bool carag_part_may_pass(const carag_part *part, const bool *passes)
{
    bool any = !part->is_even;
    for (uint32_t i = 0; part->is_even && i < part->class_count; i++)
        any |= passes[part->classes[i]];
    return any && part->live > 0;
}

/* Chunk by chunk: returns how many. */
static uint32_t admit_chunks(const carag_shelf *shelf, carag_admission *admission, const carag_part *part)
{
    uint32_t count = 0;
    for (uint32_t chunk = part->first; chunk < part->first + part->size; chunk++) {
        const uint64_t bit = (uint64_t)1 << (chunk % 64);
        if (carag_admitting_label(shelf, admission->passes, chunk) >= 0) {
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
    *out_count = 0;
    if (!carag_part_may_pass(part, admission->passes))
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
void carag_admit(const carag_shelf *shelf, const carag_predicate *predicates, size_t count, carag_admission *admission)
{
    admission->chunks = 0;
    admission->length = 0;
    carag_admit_classes(shelf, predicates, count, admission->passes);
    for (uint32_t i = 0; i < shelf->part_count; i++) {
        admission->shares[i] = (uint8_t)admit_part(shelf, admission, &shelf->parts[i], &admission->counts[i]);
        admission->chunks += admission->counts[i];
    }
}
