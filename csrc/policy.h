/* policy.h - the one place that tests bits.
 *
 * The word of a row: bits 0-26 policy, 27-29 schema version (0 = unlabelled), 30 quarantine, 31 tombstone.
 * Every pair of a predicate compares all five control bits (checked where a predicate enters, below), so
 * deletion, quarantine and a missing label fail the same AND and compare as the policy itself:
 *
 *      word of the row                     required   forbidden    admissible
 *      version 1, has required             set        clear        yes
 *      version 1, lacks a required bit     missing    -            no
 *      version 1, has a forbidden bit      -          set          no
 *      version 0 (unlabelled)              any        any          no
 *      quarantine or tombstone             any        any          no
 *
 * The time window is the same test's second half: public_at <= as_of. CARAG_NEVER_PUBLIC is above every
 * as_of a predicate may carry.
 */
#ifndef CARAG_POLICY_H
#define CARAG_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "carag.h"

#define CARAG_VERSION_WORD ((uint32_t)1 << 27)
#define CARAG_VERSION_BITS ((uint32_t)7 << 27)
#define CARAG_QUARANTINE ((uint32_t)1 << 30)
#define CARAG_TOMBSTONE ((uint32_t)1 << 31)
#define CARAG_CONTROL (CARAG_VERSION_BITS | CARAG_QUARANTINE | CARAG_TOMBSTONE)

/* Whether a row may be emitted. The caller loads the word; at emission, with acquire order. */
static inline bool carag_is_admissible(const carag_predicate *predicate, uint32_t word, uint32_t public_at)
{
    if (public_at > predicate->as_of)
        return false;
    for (uint32_t i = 0; i < predicate->pair_count; i++)
        if ((word & predicate->pairs[i].mask) == predicate->pairs[i].value)
            return true;
    return false;
}

/* Whether a predicate is closed by default: each pair tests every control bit, against a live labelled word. */
static inline bool carag_predicate_is_closed(const carag_predicate *predicate)
{
    if (predicate->pair_count > CARAG_MAX_PAIRS || predicate->as_of == CARAG_NEVER_PUBLIC)
        return false;
    for (uint32_t i = 0; i < predicate->pair_count; i++) {
        const carag_pair pair = predicate->pairs[i];
        if ((pair.mask & CARAG_CONTROL) != CARAG_CONTROL ||
            (pair.value & CARAG_CONTROL) != CARAG_VERSION_WORD || (pair.value & ~pair.mask) != 0)
            return false;
    }
    return true;
}

/* Whether a caller may store this word: version 0 or 1, no tombstone, quarantine only where allowed. */
static inline bool carag_word_is_storable(uint32_t word, bool allow_quarantine)
{
    const uint32_t version = word & CARAG_VERSION_BITS;
    const uint32_t refused = CARAG_TOMBSTONE | (allow_quarantine ? 0 : CARAG_QUARANTINE);
    return (version == 0 || version == CARAG_VERSION_WORD) && (word & refused) == 0;
}

static inline bool carag_word_is_deleted(uint32_t word)
{
    return (word & CARAG_TOMBSTONE) != 0;
}

#endif
