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
 * The terms are the same test's second half: public_at <= as_of and alive_at < expires_at, and the rules about entities
 * and audiences.
 * As as_of <= alive_at, the window of a row that passes holds both instants and all between them. CARAG_NEVER_PUBLIC is
 * above every instant a predicate may carry.
 */
#ifndef CARAG_POLICY_H
#define CARAG_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "carag.h"
#include "hash.h"

#define CARAG_VERSION_WORD ((uint32_t)1 << 27) /* schema version 1 */
#define CARAG_VERSION_BITS ((uint32_t)7 << 27) /* where the schema version stands */
#define CARAG_QUARANTINE ((uint32_t)1 << 30)
#define CARAG_TOMBSTONE ((uint32_t)1 << 31)
#define CARAG_CONTROL (CARAG_VERSION_BITS | CARAG_QUARANTINE | CARAG_TOMBSTONE)
#define CARAG_CLOSED_PREDICATE \
    "every pair must test the five control bits; entities must ascend; listed audiences need their bits; " \
    "alive_at must not be before as_of"

/* When a row is public, about whom, and to whom. Unlike its word, they are fixed for the life of the row. */
typedef struct carag_terms {
    uint32_t public_at, expires_at, entity, audience;
} carag_terms;

#define CARAG_SIEVE_LOG 15 /* bits of the number of a bit in the sieve */
#define CARAG_SIEVE_BITS (1U << CARAG_SIEVE_LOG) /* bits: 4 KB, which stay in L1 */

/* A predicate ready to be asked many times: its entities also as a sieve, one bit a hash, so that a list of a
 * thousand costs one load for an entity that is not in it. */
typedef struct carag_test {
    const carag_predicate *predicate;
    uint64_t sieve[CARAG_SIEVE_BITS / 64];
} carag_test;

static inline uint32_t carag_sieve_bit(uint32_t entity)
{
    return carag_scatter(entity, CARAG_SIEVE_LOG);
}

static inline void carag_test_init(carag_test *test, const carag_predicate *predicate)
{
    test->predicate = predicate;
    if (predicate->entity_rule == CARAG_ANY_ENTITY)
        return;
    memset(test->sieve, 0, sizeof test->sieve);
    for (size_t i = 0; i < predicate->entity_count; i++) {
        const uint32_t bit = carag_sieve_bit(predicate->entities[i]);
        test->sieve[bit / 64] |= (uint64_t)1 << (bit % 64);
    }
}

static inline bool carag_is_listed(const carag_test *test, uint32_t entity)
{
    const uint32_t bit = carag_sieve_bit(entity);
    if ((test->sieve[bit / 64] >> (bit % 64) & 1) == 0)
        return false;
    const uint32_t *entities = test->predicate->entities;
    size_t low = 0;
    size_t high = test->predicate->entity_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (entities[middle] < entity)
            low = middle + 1;
        else
            high = middle;
    }
    return low < test->predicate->entity_count && entities[low] == entity;
}

/* Without a branch on the answer, which a processor could not foresee. */
static inline bool carag_audience_passes(const carag_predicate *predicate, uint32_t audience)
{
    const uint64_t listed = audience < predicate->audience_count ? predicate->audiences[audience / 64] : 0;
    return (listed >> (audience % 64) & 1) | (audience == CARAG_EVERYBODY) |
           (predicate->audience_rule == CARAG_ANY_AUDIENCE);
}

/* Words of the list of audiences. */
static inline size_t carag_audience_words(const carag_predicate *predicate)
{
    return ((size_t)predicate->audience_count + 63) / 64;
}

static inline bool carag_word_passes(const carag_predicate *predicate, uint32_t word)
{
    for (uint32_t i = 0; i < predicate->pair_count; i++)
        if ((word & predicate->pairs[i].mask) == predicate->pairs[i].value)
            return true;
    return false;
}

static inline bool carag_terms_pass(const carag_test *test, carag_terms terms)
{
    const carag_predicate *predicate = test->predicate;
    if (terms.public_at > predicate->as_of || terms.expires_at <= predicate->alive_at)
        return false;
    return carag_audience_passes(predicate, terms.audience) &
           (predicate->entity_rule == CARAG_ANY_ENTITY ||
            carag_is_listed(test, terms.entity) == (predicate->entity_rule == CARAG_ONLY_ENTITIES));
}

/* Whether a row may be emitted. The caller loads the word; at emission, with acquire order. */
static inline bool carag_is_admissible(const carag_test *test, uint32_t word, carag_terms terms)
{
    return carag_word_passes(test->predicate, word) && carag_terms_pass(test, terms);
}

/* Whether a predicate is closed by default: each pair tests every control bit, against a live labelled word. */
static inline bool carag_predicate_is_closed(const carag_predicate *predicate)
{
    if (predicate->pair_count > CARAG_MAX_PAIRS || predicate->alive_at < predicate->as_of ||
        predicate->alive_at == CARAG_NEVER_PUBLIC || predicate->entity_rule > CARAG_NOT_ENTITIES)
        return false;
    if (predicate->audience_rule > CARAG_ANY_AUDIENCE || (predicate->audience_count > 0 && !predicate->audiences))
        return false;
    for (size_t i = 1; predicate->entity_rule != CARAG_ANY_ENTITY && i < predicate->entity_count; i++)
        if (predicate->entities[i - 1] >= predicate->entities[i])
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
