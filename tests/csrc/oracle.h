/* oracle.h - what an index must answer, worked out the plain way from what its caller can get back out of
 * it.
 *
 * Nothing here knows classes, codes, bounds or plans: every live row is asked for, tested on its own, scored
 * by carag_dot over the vector that is kept, and sorted. Scores are compared with a sum in double as well.
 */
#ifndef CARAG_TEST_ORACLE_H
#define CARAG_TEST_ORACLE_H

#include <math.h>
#include <string.h>

#include "check.h"

#define MOST_DIM 1024

/* Every live row, by ascending key. */
typedef struct world {
    size_t count, dim;
    int64_t *keys;
    float *vectors;
    uint32_t *words, *public_at, *expires_at, *entities, *audiences;
} world;

typedef struct scored {
    float similarity;
    int64_t key;
} scored;

static inline void *room_for(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    CHECK(memory);
    return memory;
}

static inline uint32_t below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)((draw(state) >> 32) % bound);
}

static inline world world_of(carag_index *index)
{
    carag_info info;
    carag_index_info(index, &info);
    const size_t n = info.live;
    world all = {.count = n, .dim = info.params.dim};
    all.keys = room_for(n, sizeof *all.keys);
    all.vectors = room_for(n * all.dim, sizeof *all.vectors);
    all.words = room_for(n, sizeof *all.words);
    all.public_at = room_for(n, sizeof *all.public_at);
    all.expires_at = room_for(n, sizeof *all.expires_at);
    all.entities = room_for(n, sizeof *all.entities);
    all.audiences = room_for(n, sizeof *all.audiences);
    const carag_columns columns = {all.vectors,    all.words,    all.public_at,
                                   all.expires_at, all.entities, all.audiences};
    CHECK(carag_index_keys(index, all.keys, n + 1) == n);
    CHECK_OK(carag_index_get(index, all.keys, n, &columns, NULL));
    return all;
}

static inline void free_world(world *all)
{
    free(all->keys);
    free(all->vectors);
    free(all->words);
    free(all->public_at);
    free(all->expires_at);
    free(all->entities);
    free(all->audiences);
}

static inline int same_bytes(const void *a, const void *b, size_t size)
{
    return size == 0 || memcmp(a, b, size) == 0;
}

static inline int same_worlds(const world *a, const world *b)
{
    const size_t n = a->count;
    return n == b->count && same_bytes(a->keys, b->keys, n * sizeof *a->keys) &&
           same_bytes(a->vectors, b->vectors, n * a->dim * sizeof *a->vectors) &&
           same_bytes(a->words, b->words, n * sizeof *a->words) &&
           same_bytes(a->public_at, b->public_at, n * sizeof *a->public_at) &&
           same_bytes(a->expires_at, b->expires_at, n * sizeof *a->expires_at) &&
           same_bytes(a->entities, b->entities, n * sizeof *a->entities) &&
           same_bytes(a->audiences, b->audiences, n * sizeof *a->audiences);
}

/* ---------------------------------------------------------------- admissible */

static inline int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The definition in carag.h, word for word. */
static inline int admits(const carag_predicate *predicate, uint32_t word, uint32_t public_at, uint32_t expires_at,
                         uint32_t entity, uint32_t audience)
{
    int any = 0;
    for (uint32_t i = 0; i < predicate->pair_count; i++)
        any |= (word & predicate->pairs[i].mask) == predicate->pairs[i].value;
    const int in_time = public_at <= predicate->as_of && predicate->alive_at < expires_at;
    const uint8_t *bytes = (const uint8_t *)predicate->audiences;
    const int shared = audience == CARAG_EVERYBODY || predicate->audience_rule == CARAG_ANY_AUDIENCE ||
                       (audience < predicate->audience_count && bytes[audience / 8] >> audience % 8 & 1);
    if (!any || !in_time || !shared || predicate->entity_rule == CARAG_ANY_ENTITY)
        return any && in_time && shared;
    const int listed = predicate->entity_count > 0 && bsearch(&entity, predicate->entities, predicate->entity_count,
                                                              sizeof entity, by_number) != NULL;
    return listed == (predicate->entity_rule == CARAG_ONLY_ENTITIES);
}

/* Sort numbers and drop the second of equals; returns how many are left. */
static inline size_t ascending(uint32_t *numbers, size_t count)
{
    size_t kept = 0;
    qsort(numbers, count, sizeof *numbers, by_number);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || numbers[kept - 1] != numbers[i])
            numbers[kept++] = numbers[i];
    return kept;
}

/* ---------------------------------------------------------------- nearest */

static inline int by_nearness(const void *a, const void *b)
{
    const scored *x = a;
    const scored *y = b;
    if (x->similarity > y->similarity || x->similarity < y->similarity)
        return x->similarity > y->similarity ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

static inline float score(const float *unit, const float *vector, size_t dim)
{
    float dot;
    double sum = 0.0;
    double size = 0.0;
    CHECK_OK(carag_dot(vector, unit, dim, &dot, NULL));
    for (size_t i = 0; i < dim; i++) {
        sum += (double)unit[i] * (double)vector[i];
        size += fabs((double)unit[i] * (double)vector[i]);
    }
    CHECK(fabs((double)dot - sum) <= 2e-6 * size + 1e-30);
    return dot;
}

/* All admissible rows, nearest first; returns how many. */
static inline size_t oracle(const world *all, const float *unit, const carag_predicate *predicate, scored **out)
{
    size_t count = 0;
    *out = room_for(all->count, sizeof **out);
    for (size_t i = 0; i < all->count; i++)
        if (admits(predicate, all->words[i], all->public_at[i], all->expires_at[i], all->entities[i],
                   all->audiences[i]))
            (*out)[count++] = (scored){score(unit, all->vectors + i * all->dim, all->dim), all->keys[i]};
    qsort(*out, count, sizeof **out, by_nearness);
    return count;
}

/* The unit vector the core makes of a query: what a float32 index keeps of the same vector. */
static inline void unit_of(const float *vector, size_t dim, float *out)
{
    carag_index *index = new_index((uint32_t)dim, 2, 0);
    const uint32_t word = WORD(0);
    const int64_t key = 0;
    const carag_rows rows = rows_of(vector, &word, 1);
    const carag_columns columns = {.vectors = out};
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    CHECK_OK(carag_index_get(index, &key, 1, &columns, NULL));
    carag_index_free(index);
}

/* ---------------------------------------------------------------- answers against it */

static inline int is_exact(uint8_t plan)
{
    return plan == CARAG_PLAN_EXACT || plan == CARAG_PLAN_CERTIFIED;
}

/* What every plan owes: min(k, admissible) rows, admissible, none twice, true similarities, nearest first;
 * and the expected rows to the last bit where an exact plan answered. Returns how many of the expected rows
 * are there. */
static inline size_t obeys(const answer *got, size_t k, const scored *expected, size_t admissible)
{
    const size_t wanted = k < admissible ? k : admissible;
    size_t hits = 0;
    CHECK(got->admissible == admissible);
    CHECK((size_t)got->count == wanted);
    for (size_t i = wanted; i < k; i++)
        CHECK(got->keys[i] == -1 && isinf(got->similarities[i]) && got->similarities[i] < 0.0F);
    for (size_t i = 0; i < wanted; i++) {
        const scored here = {got->similarities[i], got->keys[i]};
        size_t at = i;
        if (is_exact(got->plan))
            CHECK(here.key == expected[i].key);
        else
            for (at = 0; at < admissible && expected[at].key != here.key;)
                at++;
        CHECK(at < admissible && memcmp(&here.similarity, &expected[at].similarity, sizeof(float)) == 0);
        CHECK(i == 0 || by_nearness(&(scored){got->similarities[i - 1], got->keys[i - 1]}, &here) < 0);
        hits += here.similarity >= expected[wanted - 1].similarity;
    }
    return hits;
}

static const carag_plan plans[] = {CARAG_PLAN_AUTO, CARAG_PLAN_EXACT, CARAG_PLAN_GRAPH, CARAG_PLAN_SCAN,
                                   CARAG_PLAN_CERTIFIED};
#define PLANS (sizeof plans / sizeof *plans)

/* One query under one predicate by every plan; `all` is the world of the index. */
static inline void search_obeys(carag_index *index, const world *all, const float *query,
                                const carag_predicate *predicate, size_t k, uint32_t ef)
{
    float unit[MOST_DIM];
    scored *expected;
    unit_of(query, all->dim, unit);
    const size_t admissible = oracle(all, unit, predicate, &expected);
    CHECK(count_of(index, predicate) == admissible);
    for (size_t p = 0; p < PLANS; p++) {
        answer got;
        CHECK_OK(search_one(index, query, predicate, k, ef, plans[p], &got));
        obeys(&got, k, expected, admissible);
        CHECK(got.rows == all->count);
        CHECK(plans[p] != CARAG_PLAN_EXACT || got.plan == CARAG_PLAN_EXACT);
        CHECK(plans[p] != CARAG_PLAN_CERTIFIED || got.plan == CARAG_PLAN_CERTIFIED);
        CHECK(plans[p] == CARAG_PLAN_AUTO || got.plan == plans[p] || got.why != CARAG_WHY_ASKED);
        CHECK(plans[p] == CARAG_PLAN_AUTO || plans[p] == CARAG_PLAN_GRAPH || (got.hops == 0 && got.ef == 0));
        free_answer(&got);
    }
    free(expected);
}

#endif
