/* test_kept.c - selections kept between calls: asked again and again, beside others and after every kind of change, an
 * index answers what the oracle answers; and what is kept is found by its predicate whole, never by its hash alone.
 */
#define CARAG_ALLOW_LIBC
#include "row/row.h"

#include "oracle.h"

enum { N = 2000, DIM = 8, K = 5, ENTITIES = 6, PREDICATES = 12 };

static const uint32_t some_entities[] = {1, 3};
static const uint64_t some_audiences[] = {2 + 8, 4, 2};
static float *vectors;

static void add(carag_index *index, int64_t first_key, size_t count, uint64_t *state)
{
    carag_rows rows = rows_of(vectors, NULL, count);
    uint32_t *columns = room_for(5 * count, sizeof *columns);
    int64_t *keys = room_for(count, sizeof *keys);
    for (size_t i = 0; i < count; i++) {
        columns[i] = WORD(below(state, 4));
        columns[count + i] = below(state, 3) * 100;
        columns[2 * count + i] = below(state, 2) ? CARAG_NEVER_EXPIRES : 1000;
        columns[3 * count + i] = below(state, ENTITIES);
        columns[4 * count + i] = below(state, 5);
        keys[i] = first_key + (int64_t)i;
    }
    rows.words = columns;
    rows.public_at = columns + count;
    rows.expires_at = columns + 2 * count;
    rows.entities = columns + 3 * count;
    rows.audiences = columns + 4 * count;
    rows.keys = keys;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    free(columns);
    free(keys);
}

static void any_predicate(uint64_t *state, carag_predicate *out)
{
    static const uint32_t instants[] = {50, 150, 250, 999, 1000};
    *out = one_mask(below(state, 2), 2 * below(state, 2));
    ask_at(out, instants[below(state, 5)]);
    out->entity_rule = (carag_entity_rule)below(state, 3);
    out->entities = some_entities;
    out->entity_count = out->entity_rule == CARAG_ANY_ENTITY ? 0 : 1 + below(state, 2);
    share_with(out, &some_audiences[below(state, 3)], 0);
}

static void change(carag_index *index, int round, const carag_predicate *predicate, uint64_t *state)
{
    const int64_t key = below(state, N);
    const uint32_t word = WORD(below(state, 4));
    uint64_t changed;
    switch (round % 5) {
    case 0: CHECK_OK(carag_index_relabel(index, &key, &word, 1, 0, NULL)); return;
    case 1: CHECK_OK(carag_index_relabel_where(index, predicate, 2, 0, &changed, NULL)); return;
    case 2: add(index, N * (round + 1), 30, state); return;
    case 3: CHECK_OK(carag_index_delete(index, &key, 1, NULL)); return;
    default: CHECK_OK(carag_index_consolidate(index, 1, NULL)); return;
    }
}

static void answers_as_the_oracle(carag_index *index, const world *all, const carag_predicate *predicate)
{
    scored *expected;
    answer got;
    float unit[DIM];
    unit_of(vectors, DIM, unit);
    const size_t admissible = oracle(all, unit, predicate, &expected);
    CHECK(count_of(index, predicate) == admissible);
    CHECK_OK(search_one(index, vectors, predicate, K, 0, CARAG_PLAN_EXACT, &got));
    obeys(&got, K, expected, admissible);
    CHECK(got.admissible == admissible);
    free_answer(&got);
    free(expected);
}

static void kept_answers_are_the_oracles(void)
{
    uint64_t state = 3;
    carag_index *index = new_index(DIM, 8, 5);
    add(index, 0, N, &state);
    carag_predicate predicates[PREDICATES];
    for (int round = 0; round < 40; round++) {
        for (size_t i = 0; i < PREDICATES; i++)
            any_predicate(&state, &predicates[i]);
        const uint64_t uses = index->kept.uses;
        const world all = world_of(index);
        for (int turn = 0; turn < 60; turn++)
            answers_as_the_oracle(index, &all, &predicates[below(&state, turn % 2 ? PREDICATES : 3)]);
        CHECK(index->kept.uses > uses + 20); /* or the test says nothing */
        free_world((world *)&all);
        change(index, round, &predicates[0], &state);
    }
    carag_index_free(index);
}

/* A hash that two predicates share. */
static void a_hash_does_not_decide(void)
{
    uint64_t state = 4;
    carag_index *index = new_index(DIM, 8, 5);
    add(index, 0, N, &state);
    const world all = world_of(index);
    carag_predicate predicates[PREDICATES];
    for (size_t i = 0; i < PREDICATES; i++) {
        any_predicate(&state, &predicates[i]);
        for (int turn = 0; turn < 3; turn++)
            answers_as_the_oracle(index, &all, &predicates[i]);
        for (size_t other = 0; other < i; other++) { /* each finds the hash of all */
            for (size_t slot = 0; slot < CARAG_KEPT; slot++)
                index->kept.selections[slot].hash = carag_kept_hash(&predicates[other]);
            answers_as_the_oracle(index, &all, &predicates[other]);
        }
    }
    free_world((world *)&all);
    carag_index_free(index);
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    vectors = random_vectors(7, N, DIM);
    kept_answers_are_the_oracles();
    a_hash_does_not_decide();
    free(vectors);
    return 0;
}
