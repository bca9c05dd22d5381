/* test_policy.c - policy.h is its own plain statement: a word bit by bit, a date as a number on a line, a list
 * looked through from end to end. Over all control bits and all boundaries there are; drawn, with a seed, for
 * the rest.
 *
 * Needs nothing of the core but the header, so that what is broken there is noticed within a second.
 */
#include "check.h"
#include "policy.h"

#define TOMBSTONE ((uint32_t)1 << 31)
#define CORNERS 128 /* all five control bits, the lowest and the highest policy bit */

/* Corner n as a word: bits 0 and 1 of n are the policy bits, 2 to 6 the control bits. */
static uint32_t corner(uint32_t n)
{
    return (n & 1) | (n >> 1 & 1) << 26 | n >> 2 << 27;
}

static bool bit_of(uint32_t word, uint32_t bit)
{
    return word >> bit & 1;
}

static uint32_t version_of(uint32_t word)
{
    return word >> 27 & 7;
}

/* ---------------------------------------------------------------- words */

/* A pair asks for the bits of its value where its mask looks, and for nothing where it does not look. */
static bool pair_is_met(carag_pair pair, uint32_t word)
{
    for (uint32_t bit = 0; bit < 32; bit++) {
        const bool seen = bit_of(pair.mask, bit) && bit_of(word, bit);
        if (seen != bit_of(pair.value, bit))
            return false;
    }
    return true;
}

static void a_word_passes_the_pair_it_meets(void)
{
    carag_predicate predicate = {.pair_count = 1};
    for (uint32_t mask = 0; mask < CORNERS; mask++)
        for (uint32_t value = 0; value < CORNERS; value++) {
            predicate.pairs[0] = (carag_pair){corner(mask), corner(value)};
            for (uint32_t word = 0; word < CORNERS; word++)
                CHECK(pair_is_met(predicate.pairs[0], corner(word)) == carag_word_passes(&predicate, corner(word)));
        }
    uint64_t state = 1;
    for (int i = 0; i < 100000; i++) { /* near misses: words that differ from a met pair in one bit */
        const uint32_t mask = (uint32_t)(draw(&state) >> 32);
        const uint32_t word = (uint32_t)(draw(&state) >> 32);
        predicate.pairs[0] = (carag_pair){mask, word & mask};
        CHECK(carag_word_passes(&predicate, word));
        const uint32_t other = word ^ (uint32_t)1 << i % 32;
        CHECK(pair_is_met(predicate.pairs[0], other) == carag_word_passes(&predicate, other));
    }
}

/* One pair is enough, wherever it stands; none admit nothing; and those past the count are not looked at. */
static void any_pair_within_the_count_is_enough(void)
{
    const carag_pair met = {CONTROL, WORD(0)};
    const carag_pair missed = {CONTROL | 1, WORD(1)};
    for (uint32_t count = 0; count <= CARAG_MAX_PAIRS; count++)
        for (uint32_t at = 0; at <= CARAG_MAX_PAIRS; at++) {
            carag_predicate predicate = {.pair_count = count};
            for (uint32_t i = 0; i < CARAG_MAX_PAIRS; i++)
                predicate.pairs[i] = i == at ? met : missed;
            CHECK((at < count) == carag_word_passes(&predicate, WORD(0)));
        }
}

static void a_deleted_word_has_the_highest_bit(void)
{
    for (uint32_t word = 0; word < CORNERS; word++)
        CHECK(bit_of(corner(word), 31) == carag_word_is_deleted(corner(word)));
}

static void a_storable_word_is_live_and_of_a_known_version(void)
{
    for (uint32_t n = 0; n < CORNERS; n++)
        for (int allows = 0; allows < 2; allows++) {
            const uint32_t word = corner(n);
            bool expected = version_of(word) <= 1 && !bit_of(word, 31);
            if (bit_of(word, 30) && !allows)
                expected = false;
            CHECK(expected == carag_word_is_storable(word, allows));
        }
}

/* ---------------------------------------------------------------- terms */

static bool is_in(const uint32_t *entities, size_t count, uint32_t entity)
{
    for (size_t i = 0; i < count; i++)
        if (entities[i] == entity)
            return true;
    return false;
}

static void terms_pass_if_public_at_the_one_instant_and_alive_at_the_other(void)
{
    const uint32_t times[] = {0, 1, 9, 10, 11, 0x7FFFFFFF, 0x80000000, UINT32_MAX - 1, UINT32_MAX};
    enum { TIMES = sizeof times / sizeof *times };
    static carag_test test;
    for (size_t p = 0; p < TIMES; p++)
        for (size_t e = 0; e < TIMES; e++)
            for (size_t a = 0; a < TIMES; a++)
                for (size_t l = 0; l < TIMES; l++) {
                    const carag_predicate predicate = {.as_of = times[a], .alive_at = times[l]};
                    carag_test_init(&test, &predicate);
                    const double after_opening = (double)times[a] - (double)times[p];
                    const double before_expiry = (double)times[e] - (double)times[l];
                    CHECK((after_opening >= 0.0 && before_expiry > 0.0) ==
                          carag_terms_pass(&test, (carag_terms){times[p], times[e], 7, CARAG_EVERYBODY}));
                    CHECK(carag_predicate_is_closed(&predicate) == (a <= l && l + 1 < TIMES));
                }
}

/* Another entity of the same bit in the sieve, where a list is not looked through but for its hashes. */
static uint32_t twin_of(uint32_t entity)
{
    uint32_t twin = entity + 1;
    while (carag_sieve_bit(twin) != carag_sieve_bit(entity))
        twin++;
    return twin;
}

static void asks_about(const carag_test *test, uint32_t entity)
{
    const carag_predicate *predicate = test->predicate;
    const carag_terms terms = {0, CARAG_NEVER_EXPIRES, entity, CARAG_EVERYBODY};
    const bool listed = is_in(predicate->entities, predicate->entity_count, entity);
    switch (predicate->entity_rule) {
    case CARAG_ANY_ENTITY: CHECK(carag_terms_pass(test, terms)); break;
    case CARAG_ONLY_ENTITIES: CHECK(carag_terms_pass(test, terms) == listed); break;
    case CARAG_NOT_ENTITIES: CHECK(carag_terms_pass(test, terms) != listed); break;
    }
}

static void the_rule_about_entities_is_the_list(void)
{
    enum { MOST = 1000 };
    static carag_test test;
    static uint32_t listed[MOST];
    const size_t sizes[] = {0, 1, 2, 3, 4, 5, 8, 64, 999, MOST};
    uint64_t state = 3;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int ends = 0; ends < 2; ends++)
            for (int rule = CARAG_ANY_ENTITY; rule <= CARAG_NOT_ENTITIES; rule++) {
                const size_t count = sizes[s];
                uint32_t entity = ends ? 0 : 1 + (uint32_t)(draw(&state) >> 40);
                for (size_t i = 0; i < count; i++, entity += 1 + (uint32_t)(draw(&state) >> 43))
                    listed[i] = entity;
                if (ends && count > 0)
                    listed[count - 1] = UINT32_MAX;
                const carag_predicate predicate = {
                    .entities = listed, .entity_count = count, .entity_rule = (carag_entity_rule)rule};
                carag_test_init(&test, &predicate);
                asks_about(&test, 0);
                asks_about(&test, UINT32_MAX);
                for (size_t i = 0; i < count; i++) {
                    asks_about(&test, listed[i]);
                    asks_about(&test, listed[i] - 1);
                    asks_about(&test, listed[i] + 1);
                }
                for (size_t i = 0; i < count && i < 3; i++)
                    asks_about(&test, twin_of(listed[i]));
            }
}

/* What lies behind the list, though its bit is in the sieve, is not in it. */
static void a_list_ends_where_its_count_says(void)
{
    static carag_test test;
    const uint32_t listed[] = {5, twin_of(5)};
    const carag_predicate predicate = {.entities = listed, .entity_count = 1, .entity_rule = CARAG_ONLY_ENTITIES};
    carag_test_init(&test, &predicate);
    asks_about(&test, listed[0]);
    asks_about(&test, listed[1]);
}

/* Everybody's always; another's where its bit is set within the count, or any is asked for. */
static void an_audience_passes_by_its_bit(void)
{
    static carag_test test;
    const uint64_t listed[] = {UINT64_C(0x8000000000000006), 1, UINT64_MAX};
    const uint32_t set[] = {1, 2, 63, 64};
    for (uint32_t count = 0; count <= 160; count++)
        for (int any = 0; any < 2; any++) {
            carag_predicate predicate = {.pair_count = 0};
            share_with(&predicate, listed, any);
            predicate.audience_count = count;
            carag_test_init(&test, &predicate);
            CHECK(carag_predicate_is_closed(&predicate));
            for (uint32_t audience = 0; audience < 150; audience++) {
                const bool has_bit = is_in(set, 4, audience) || audience >= 128;
                const bool expected = audience == 0 || any || (audience < count && has_bit);
                CHECK(expected == carag_terms_pass(&test, (carag_terms){0, 1, 0, audience}));
            }
            CHECK(any == carag_terms_pass(&test, (carag_terms){0, 1, 0, UINT32_MAX}));
            CHECK(!carag_terms_pass(&test, (carag_terms){1, 1, 0, 1})); /* the window counts, too, */
            predicate.entity_rule = CARAG_ONLY_ENTITIES;
            carag_test_init(&test, &predicate);
            CHECK(!carag_terms_pass(&test, (carag_terms){0, 1, 0, 1})); /* and so does the entity */
        }
}

static void listed_audiences_have_their_bits(void)
{
    const uint64_t listed[] = {2};
    for (int rule = -1; rule <= 3; rule++)
        for (uint32_t count = 0; count < 2; count++)
            for (int has = 0; has < 2; has++) {
                const carag_predicate predicate = {.audiences = has ? listed : NULL, .audience_count = count,
                                                   .audience_rule = (carag_audience_rule)rule};
                CHECK((rule >= 0 && rule <= 1 && (has || count == 0)) == carag_predicate_is_closed(&predicate));
            }
}

/* Its word and its terms: either alone is not enough. */
static void a_row_is_admissible_when_word_and_terms_pass(void)
{
    static carag_test test;
    const carag_predicate predicate = {.pairs = {{CONTROL | 1, WORD(1)}}, .pair_count = 1, .as_of = 10, .alive_at = 10};
    carag_test_init(&test, &predicate);
    for (uint32_t word = 0; word < CORNERS; word++)
        for (uint32_t public_at = 9; public_at <= 11; public_at++) {
            const carag_terms terms = {public_at, CARAG_NEVER_EXPIRES, 0, CARAG_EVERYBODY};
            CHECK((pair_is_met(predicate.pairs[0], corner(word)) && public_at <= 10) ==
                  carag_is_admissible(&test, corner(word), terms));
        }
}

/* ---------------------------------------------------------------- predicates */

/* Sees all that closes a row, and asks for a labelled live one; asks for no bit that it does not see. */
static bool pair_is_closed(carag_pair pair)
{
    for (uint32_t bit = 0; bit < 32; bit++) {
        if (bit >= 27 && !bit_of(pair.mask, bit))
            return false;
        if (bit_of(pair.value, bit) && !bit_of(pair.mask, bit))
            return false;
    }
    return version_of(pair.value) == 1 && !bit_of(pair.value, 30) && !bit_of(pair.value, 31);
}

static void a_predicate_is_closed_when_each_of_its_pairs_is(void)
{
    for (uint32_t mask = 0; mask < CORNERS; mask++)
        for (uint32_t value = 0; value < CORNERS; value++)
            for (uint32_t at = 0; at < CARAG_MAX_PAIRS; at++) {
                carag_predicate predicate = {.pair_count = CARAG_MAX_PAIRS};
                for (uint32_t i = 0; i < CARAG_MAX_PAIRS; i++)
                    predicate.pairs[i] = (carag_pair){CONTROL, WORD(0)};
                predicate.pairs[at] = (carag_pair){corner(mask), corner(value)};
                CHECK(pair_is_closed(predicate.pairs[at]) == carag_predicate_is_closed(&predicate));
                predicate.pair_count = at; /* what it does not count does not matter */
                CHECK(carag_predicate_is_closed(&predicate));
            }
}

/* So what is unlabelled, of another version, quarantined or deleted passes no predicate that may enter. */
static void no_closed_predicate_passes_a_closed_word(void)
{
    for (uint32_t mask = 0; mask < CORNERS; mask++)
        for (uint32_t value = 0; value < CORNERS; value++) {
            const carag_predicate predicate = {.pairs = {{corner(mask), corner(value)}}, .pair_count = 1};
            if (!carag_predicate_is_closed(&predicate))
                continue;
            for (uint32_t n = 0; n < CORNERS; n++) {
                const uint32_t word = corner(n);
                CHECK(!carag_word_passes(&predicate, word) ||
                      (version_of(word) == 1 && (word & (QUARANTINE | TOMBSTONE)) == 0));
            }
        }
}

static void a_predicate_stays_within_its_bounds(void)
{
    const uint32_t counts[] = {CARAG_MAX_PAIRS + 1, CARAG_MAX_PAIRS + 2, 0x80000000, UINT32_MAX};
    carag_predicate predicate = {.pair_count = CARAG_MAX_PAIRS};
    for (uint32_t i = 0; i < CARAG_MAX_PAIRS; i++)
        predicate.pairs[i] = (carag_pair){CONTROL, WORD(0)};
    CHECK(carag_predicate_is_closed(&predicate));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        predicate.pair_count = counts[i];
        CHECK(!carag_predicate_is_closed(&predicate));
    }
    predicate.pair_count = 0;
    ask_at(&predicate, CARAG_NEVER_PUBLIC - 1);
    CHECK(carag_predicate_is_closed(&predicate));
    ask_at(&predicate, CARAG_NEVER_PUBLIC);
    CHECK(!carag_predicate_is_closed(&predicate));
    ask_at(&predicate, 0);
    for (int rule = -1; rule <= 5; rule++) {
        predicate.entity_rule = (carag_entity_rule)rule;
        CHECK((rule >= 0 && rule <= 2) == carag_predicate_is_closed(&predicate));
    }
}

/* A list that is read ascends, none twice; one that no rule reads may hold anything. */
static void listed_entities_ascend(void)
{
    enum { N = 6 };
    for (int rule = CARAG_ANY_ENTITY; rule <= CARAG_NOT_ENTITIES; rule++)
        for (size_t count = 0; count <= N; count++)
            for (size_t at = 0; at < N; at++)
                for (uint32_t less = 0; less < 3; less++) {
                    uint32_t listed[N] = {10, 11, 12, 13, 14, 15};
                    listed[at] -= less; /* as it was, like the one before, or smaller than that */
                    const bool ascends = less == 0 || at == 0 || at >= count;
                    const carag_predicate predicate = {
                        .entities = listed, .entity_count = count, .entity_rule = (carag_entity_rule)rule};
                    CHECK((ascends || rule == CARAG_ANY_ENTITY) == carag_predicate_is_closed(&predicate));
                }
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    a_word_passes_the_pair_it_meets();
    any_pair_within_the_count_is_enough();
    a_deleted_word_has_the_highest_bit();
    a_storable_word_is_live_and_of_a_known_version();
    terms_pass_if_public_at_the_one_instant_and_alive_at_the_other();
    the_rule_about_entities_is_the_list();
    a_list_ends_where_its_count_says();
    a_row_is_admissible_when_word_and_terms_pass();
    a_predicate_is_closed_when_each_of_its_pairs_is();
    no_closed_predicate_passes_a_closed_word();
    a_predicate_stays_within_its_bounds();
    listed_entities_ascend();
    an_audience_passes_by_its_bit();
    listed_audiences_have_their_bits();
    return 0;
}
