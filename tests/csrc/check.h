/* check.h - the whole test framework: a claim that fails says where and ends the program.
 *
 * With it, what every test needs: seeded random rows, an open predicate, and temporary file names.
 */
#ifndef CARAG_TEST_CHECK_H
#define CARAG_TEST_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "carag.h"

#define CHECK(claim)                                                                          \
    do {                                                                                      \
        if (!(claim)) {                                                                       \
            fprintf(stderr, "%s:%d: %s: not true: %s\n", __FILE__, __LINE__, __func__, #claim); \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

#define CHECK_OK(call) CHECK((call) == CARAG_OK)

#define WORD(bits) ((uint32_t)(bits) | (uint32_t)1 << 27)
#define CONTROL ((uint32_t)31 << 27)
#define QUARANTINE ((uint32_t)1 << 30)

/* xorshift64*: repeatable everywhere, good enough to make rows. */
static inline uint64_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static inline float draw_float(uint64_t *state)
{
    return (float)((double)(draw(state) >> 11) / (double)(UINT64_C(1) << 52) - 1.0);
}

static inline float *random_vectors(uint64_t seed, size_t count, size_t dim)
{
    float *vectors = malloc(count * dim * sizeof *vectors);
    uint64_t state = seed * 2 + 1;
    CHECK(vectors);
    for (size_t i = 0; i < count * dim; i++)
        vectors[i] = draw_float(&state);
    return vectors;
}

/* Words that carry `bits` of a draw below 2^bits. */
static inline uint32_t *random_words(uint64_t seed, size_t count, int bits)
{
    uint32_t *words = malloc(count * sizeof *words);
    uint64_t state = seed * 2 + 1;
    CHECK(words);
    for (size_t i = 0; i < count; i++)
        words[i] = WORD(draw(&state) >> 32 & ((1U << bits) - 1U));
    return words;
}

static inline carag_predicate one_mask(uint32_t required, uint32_t forbidden)
{
    return (carag_predicate){.pairs = {{required | forbidden | CONTROL, WORD(required)}}, .pair_count = 1};
}

/* What is public at an instant, and has not expired then. */
static inline void ask_at(carag_predicate *predicate, uint32_t instant)
{
    predicate->as_of = predicate->alive_at = instant;
}

/* What was public at an instant, and has not expired the given number of minutes later. */
static inline void ask_aged(carag_predicate *predicate, uint32_t instant, uint32_t minutes)
{
    predicate->as_of = instant;
    predicate->alive_at = instant + minutes;
}

/* Admit the audiences whose bits are set in a word, which stays the caller's; or any audience at all. */
static inline void share_with(carag_predicate *predicate, const uint64_t *listed, int any)
{
    predicate->audiences = listed;
    predicate->audience_count = 64;
    predicate->audience_rule = any ? CARAG_ANY_AUDIENCE : CARAG_LISTED_AUDIENCES;
}

static inline carag_index *new_index_of(carag_dtype dtype, uint32_t dim, uint32_t M, uint64_t seed)
{
    const carag_params params = {.dim = dim, .M = M, .ef_construction = 40, .seed = seed, .dtype = dtype};
    carag_index *index;
    CHECK_OK(carag_index_new(&params, &index, NULL));
    return index;
}

static inline carag_index *new_index(uint32_t dim, uint32_t M, uint64_t seed)
{
    return new_index_of(CARAG_FLOAT32, dim, M, seed);
}

static inline carag_rows rows_of(const float *vectors, const uint32_t *words, size_t count)
{
    return (carag_rows){.vectors = vectors, .words = words, .count = count, .threads = 1};
}

static inline uint64_t count_of(carag_index *index, const carag_predicate *predicate)
{
    uint64_t admissible;
    CHECK_OK(carag_index_count(index, predicate, &admissible, NULL));
    return admissible;
}

/* One query's answer, with room for k rows. */
typedef struct answer {
    int64_t *keys;
    float *similarities;
    int64_t count, estimates, distance_computations, hops, ef;
    uint8_t plan, why;
    uint64_t admissible, rows;
    uint32_t classes;
} answer;

static inline carag_results room_of(answer *out, size_t k)
{
    out->keys = malloc(k * sizeof *out->keys);
    out->similarities = malloc(k * sizeof *out->similarities);
    CHECK(out->keys && out->similarities);
    return (carag_results){.keys = out->keys,
                           .similarities = out->similarities,
                           .counts = &out->count,
                           .estimates = &out->estimates,
                           .distance_computations = &out->distance_computations,
                           .hops = &out->hops,
                           .ef = &out->ef,
                           .plans = &out->plan,
                           .whys = &out->why};
}

static inline void read_results(const carag_results *results, answer *out)
{
    out->admissible = results->admissible;
    out->rows = results->rows;
    out->classes = results->classes;
}

static inline carag_status search_with(carag_index *index, const float *query, const carag_predicate *predicate,
                                       const carag_search_params *params, answer *out)
{
    carag_results results = room_of(out, params->k);
    const carag_status status = carag_index_search(index, query, 1, predicate, params, &results, NULL);
    read_results(&results, out);
    return status;
}

static inline carag_status search_one(carag_index *index, const float *query, const carag_predicate *predicate,
                                      size_t k, uint32_t ef, carag_plan plan, answer *out)
{
    const carag_search_params params = {.k = k, .ef_search = ef, .plan = plan, .threads = 1};
    return search_with(index, query, predicate, &params, out);
}

static inline void free_answer(answer *old)
{
    free(old->keys);
    free(old->similarities);
}

/* What one call finds for one query under two predicates. */
typedef struct answers {
    answer first, second;
    uint32_t *words;  /* [second] */
    uint8_t *refused; /* [second] */
} answers;

static inline carag_status search_both(carag_index *index, const float *query, const carag_predicate *predicate,
                                       const carag_search_params *params, const carag_predicate *wider, size_t more,
                                       answers *out)
{
    carag_results first = room_of(&out->first, params->k);
    carag_results second = room_of(&out->second, more);
    out->words = malloc(more * sizeof *out->words);
    out->refused = malloc(more * sizeof *out->refused);
    CHECK(out->words && out->refused);
    const carag_wider beside = {wider, more, &second, out->words, out->refused};
    const carag_status status = carag_index_search_both(index, query, 1, predicate, params, &first, &beside, NULL);
    read_results(&first, &out->first);
    read_results(&second, &out->second);
    return status;
}

static inline void free_answers(answers *old)
{
    free_answer(&old->first);
    free_answer(&old->second);
    free(old->words);
    free(old->refused);
}

/* Where a test may write: the directory in argv[1], else /tmp. */
static inline const char *temporary(int argc, char **argv, char room[512], const char *name)
{
    CHECK(snprintf(room, 512, "%s/%s", argc > 1 ? argv[1] : "/tmp", name) < 512);
    return room;
}

#endif
