/* test_index.c - the laws of the index as a caller sees them, against an oracle that knows only dot products. */
#include <math.h>
#include <string.h>

#include "check.h"

typedef struct scored {
    float similarity;
    int64_t key;
} scored;

static int by_nearness(const void *a, const void *b)
{
    const scored *x = a;
    const scored *y = b;
    if (x->similarity > y->similarity || x->similarity < y->similarity)
        return x->similarity > y->similarity ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

static int oracle_admits(const carag_predicate *predicate, uint32_t word, uint32_t public_at)
{
    int any = 0;
    for (uint32_t i = 0; i < predicate->pair_count; i++)
        any |= (word & predicate->pairs[i].mask) == predicate->pairs[i].value;
    return any && public_at <= predicate->as_of;
}

/* All admissible rows, nearest first; `unit_query` and stored vectors are unit vectors of the core's own making. */
static size_t oracle(carag_index *index, const float *unit_query, size_t dim, const carag_predicate *predicate,
                     scored **out)
{
    carag_info info;
    carag_index_info(index, &info);
    const size_t live = info.live;
    int64_t *keys = malloc((live + 1) * sizeof *keys);
    uint32_t *words = malloc((live + 1) * sizeof *words);
    uint32_t *public_at = malloc((live + 1) * sizeof *public_at);
    float *vectors = malloc((live * dim + 1) * sizeof *vectors);
    const carag_columns columns = {vectors, words, public_at};
    size_t count = 0;
    *out = malloc((live + 1) * sizeof **out);
    CHECK(keys && words && public_at && vectors && *out);
    CHECK(carag_index_keys(index, keys, live) == live);
    CHECK_OK(carag_index_get(index, keys, live, &columns, NULL));
    for (size_t i = 0; i < live; i++)
        if (oracle_admits(predicate, words[i], public_at[i])) {
            (*out)[count].key = keys[i];
            CHECK_OK(carag_dot(unit_query, vectors + i * dim, dim, &(*out)[count++].similarity, NULL));
        }
    qsort(*out, count, sizeof **out, by_nearness);
    free(keys);
    free(words);
    free(public_at);
    free(vectors);
    return count;
}

/* The unit vector the core makes of a query: what it stores for the same vector. */
static void unit_of(const float *vector, uint32_t dim, float *out)
{
    carag_index *index = new_index(dim, 2, 0);
    const uint32_t word = WORD(0);
    const int64_t key = 0;
    const carag_rows rows = rows_of(vector, &word, 1);
    const carag_columns columns = {.vectors = out};
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    CHECK_OK(carag_index_get(index, &key, 1, &columns, NULL));
    carag_index_free(index);
}

/* One query under one predicate: every plan is complete and admissible, exact is the oracle to the last bit. */
static void search_obeys(carag_index *index, const float *query, uint32_t dim, const carag_predicate *predicate,
                         size_t k, uint32_t ef)
{
    float unit[256];
    scored *expected;
    unit_of(query, dim, unit);
    const size_t admissible = oracle(index, unit, dim, predicate, &expected);
    const size_t wanted = k < admissible ? k : admissible;
    for (int plan = CARAG_PLAN_AUTO; plan <= CARAG_PLAN_GRAPH; plan++) {
        answer got;
        CHECK_OK(search_one(index, query, predicate, k, ef, (carag_plan)plan, &got));
        CHECK(got.admissible == admissible);
        CHECK((size_t)got.count == wanted);
        for (size_t i = 0; i < k; i++)
            if (i >= wanted)
                CHECK(got.keys[i] == -1 && isinf(got.similarities[i]) && got.similarities[i] < 0.0F);
            else if (got.plan == CARAG_PLAN_EXACT)
                CHECK(got.keys[i] == expected[i].key &&
                      memcmp(&got.similarities[i], &expected[i].similarity, sizeof(float)) == 0);
            else {
                size_t at = 0;
                while (at < admissible && expected[at].key != got.keys[i])
                    at++;
                CHECK(at < admissible);
                CHECK(i == 0 || by_nearness(&(scored){got.similarities[i - 1], got.keys[i - 1]},
                                            &(scored){got.similarities[i], got.keys[i]}) < 0);
            }
        CHECK(plan != CARAG_PLAN_GRAPH || got.plan == CARAG_PLAN_GRAPH || got.fallback || wanted == 0);
        free_answer(&got);
    }
    free(expected);
}

static void every_plan_is_complete_and_admissible(void)
{
    const uint32_t dims[] = {1, 2, 7, 16, 33, 130};
    for (size_t d = 0; d < 6; d++)
        for (uint32_t M = 2; M <= 32; M *= 4) {
            const size_t n = 300;
            const uint32_t dim = dims[d];
            carag_index *index = new_index(dim, M, d);
            float *vectors = random_vectors(d + 10, n, dim);
            uint32_t *words = random_words(d + 20, n, 3);
            uint32_t public_at[300];
            for (size_t i = 0; i < n; i++)
                public_at[i] = i % 5 == 4 ? CARAG_NEVER_PUBLIC : (uint32_t)(i % 5) * 10;
            carag_rows rows = rows_of(vectors, words, n);
            rows.public_at = public_at;
            CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
            CHECK(carag_index_check(index, NULL) == 0);
            float *queries = random_vectors(d + 30, 8, dim);
            for (uint32_t q = 0; q < 8; q++) {
                carag_predicate predicate = one_mask(q & 3, ~q & 4);
                predicate.as_of = q % 2 ? 15 : CARAG_NEVER_PUBLIC - 1;
                search_obeys(index, queries + q * dim, dim, &predicate, 1 + 60 * q, 16);
                predicate.pairs[predicate.pair_count++] = (carag_pair){CONTROL | 7, WORD(5)};
                search_obeys(index, queries + q * dim, dim, &predicate, 10, 200);
            }
            carag_index_free(index);
            free(vectors);
            free(words);
            free(queries);
        }
}

static void an_empty_index_and_an_empty_policy_answer_nothing(void)
{
    carag_index *index = new_index(3, 4, 0);
    const float query[3] = {1, 2, 3};
    const carag_predicate open = one_mask(0, 0);
    const carag_predicate none = {.pair_count = 0};
    search_obeys(index, query, 3, &open, 5, 10);
    const uint32_t word = WORD(0);
    const carag_rows rows = rows_of(query, &word, 1);
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    search_obeys(index, query, 3, &open, 5, 10);
    search_obeys(index, query, 3, &none, 5, 10);
    carag_index_free(index);
}

static void words_that_are_closed_stay_closed(void)
{
    const uint32_t words[] = {WORD(1), 1, WORD(1) | QUARANTINE, QUARANTINE | 1, WORD(1)};
    const int64_t deleted = 4;
    float *vectors = random_vectors(1, 5, 4);
    carag_index *index = new_index(4, 4, 0);
    carag_rows rows = rows_of(vectors, words, 5);
    CHECK(carag_index_add(index, &rows, NULL, NULL) == CARAG_BAD_WORD);
    rows.allow_quarantine = 1;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    CHECK_OK(carag_index_delete(index, &deleted, 1, NULL));
    const carag_predicate predicate = one_mask(1, 0);
    uint64_t admissible;
    CHECK_OK(carag_index_count(index, &predicate, &admissible, NULL));
    CHECK(admissible == 1);
    search_obeys(index, vectors, 4, &predicate, 5, 10);
    carag_index_free(index);
    free(vectors);
}

static void a_predicate_must_test_every_control_bit(void)
{
    carag_index *index = new_index(2, 4, 0);
    const float query[2] = {1, 0};
    answer got;
    carag_predicate bad[] = {one_mask(0, 0), one_mask(0, 0), one_mask(0, 0), one_mask(0, 0), one_mask(0, 0)};
    bad[0].pairs[0].mask &= ~((uint32_t)1 << 31);         /* would admit deleted rows */
    bad[1].pairs[0].value |= QUARANTINE;                  /* would ask for quarantined ones */
    bad[2].pairs[0].value = 0;                            /* would ask for unlabelled ones */
    bad[3].pair_count = CARAG_MAX_PAIRS + 1;              /* reads past the pairs */
    bad[4].as_of = CARAG_NEVER_PUBLIC;                    /* would admit what is never public */
    for (int i = 0; i < 5; i++) {
        CHECK(search_one(index, query, &bad[i], 1, 10, CARAG_PLAN_AUTO, &got) == CARAG_BAD_PREDICATE);
        free_answer(&got);
    }
    carag_index_free(index);
}

/* After a refused call the index is as before: same size, same keys, and it still checks. */
static void refused(carag_index *index, carag_rows rows, carag_status wanted, uint64_t row)
{
    carag_fault fault = {0};
    carag_info before;
    carag_info after;
    carag_index_info(index, &before);
    CHECK(carag_index_add(index, &rows, NULL, &fault) == wanted);
    CHECK(fault.row == row);
    carag_index_info(index, &after);
    CHECK(before.rows == after.rows && before.live == after.live);
    CHECK(carag_index_check(index, NULL) == 0);
    CHECK(!carag_index_contains(index, 1000));
}

static void a_bad_row_changes_nothing(void)
{
    carag_index *index = new_index(3, 4, 0);
    float *vectors = random_vectors(3, 4, 3);
    uint32_t *words = random_words(3, 4, 2);
    const int64_t good[] = {7, 8, 9, 10};
    carag_rows rows = rows_of(vectors, words, 4);
    rows.keys = good;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));

    const int64_t taken[] = {1000, 1001, 9, 1002};
    const int64_t twice[] = {1000, 1001, 1002, 1001};
    const int64_t negative[] = {1000, -1, 1001, 1002};
    rows.keys = taken;
    refused(index, rows, CARAG_DUPLICATE_KEY, 2);
    rows.keys = twice;
    refused(index, rows, CARAG_DUPLICATE_KEY, 3);
    rows.keys = negative;
    refused(index, rows, CARAG_BAD_KEY, 1);
    const int64_t fresh[] = {1000, 1001, 1002, 1003};
    rows.keys = fresh;
    vectors[4] = NAN;
    refused(index, rows, CARAG_NOT_FINITE, 1);
    vectors[4] = -INFINITY;
    refused(index, rows, CARAG_NOT_FINITE, 1);
    vectors[3] = vectors[4] = vectors[5] = 0.0F;
    refused(index, rows, CARAG_ZERO_VECTOR, 1);
    vectors[4] = 1e-38F; /* its square is no float, but a double */
    words[2] |= (uint32_t)1 << 28;
    refused(index, rows, CARAG_BAD_WORD, 2);
    words[2] = WORD(0) | (uint32_t)1 << 31;
    refused(index, rows, CARAG_BAD_WORD, 2);
    words[2] = WORD(0);
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    CHECK(carag_index_check(index, NULL) == 0);
    carag_index_free(index);
    free(vectors);
    free(words);
}

static void a_deleted_key_is_free_again(void)
{
    carag_index *index = new_index(4, 4, 1);
    float *vectors = random_vectors(5, 40, 4);
    uint32_t *words = random_words(5, 40, 1);
    const carag_rows rows = rows_of(vectors, words, 40);
    int64_t keys[40];
    CHECK_OK(carag_index_add(index, &rows, keys, NULL));
    for (int64_t i = 0; i < 40; i++)
        CHECK(keys[i] == i);
    CHECK_OK(carag_index_delete(index, keys + 10, 20, NULL));
    CHECK(carag_index_delete(index, keys + 9, 2, NULL) == CARAG_UNKNOWN_KEY);
    CHECK(carag_index_contains(index, 9) && !carag_index_contains(index, 10));
    carag_rows again = rows_of(vectors, words, 20);
    again.keys = keys + 10;
    CHECK_OK(carag_index_add(index, &again, NULL, NULL));
    carag_info info;
    carag_index_info(index, &info);
    CHECK(info.live == 40 && info.rows == 60);
    int64_t next;
    const carag_rows one = rows_of(vectors, words, 1);
    CHECK_OK(carag_index_add(index, &one, &next, NULL));
    CHECK(next == 60); /* the next row number that is free */
    CHECK(carag_index_check(index, NULL) == 0);
    const carag_predicate open = one_mask(0, 0);
    search_obeys(index, vectors, 4, &open, 70, 10);
    carag_index_free(index);
    free(vectors);
    free(words);
}

static void relabel_takes_effect_and_is_all_or_nothing(void)
{
    carag_index *index = new_index(4, 4, 1);
    float *vectors = random_vectors(6, 10, 4);
    uint32_t words[10];
    for (int i = 0; i < 10; i++)
        words[i] = WORD(1);
    const carag_rows rows = rows_of(vectors, words, 10);
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    const carag_predicate predicate = one_mask(1, 2);
    const int64_t keys[] = {3, 99};
    const uint32_t closed[] = {WORD(3), WORD(3)};
    uint64_t admissible;
    CHECK(carag_index_relabel(index, keys, closed, 2, 0, NULL) == CARAG_UNKNOWN_KEY);
    CHECK_OK(carag_index_count(index, &predicate, &admissible, NULL));
    CHECK(admissible == 10);
    CHECK_OK(carag_index_relabel(index, keys, closed, 1, 0, NULL));
    CHECK_OK(carag_index_count(index, &predicate, &admissible, NULL));
    CHECK(admissible == 9);
    const uint32_t quarantined = WORD(1) | QUARANTINE;
    CHECK(carag_index_relabel(index, keys, &quarantined, 1, 0, NULL) == CARAG_BAD_WORD);
    CHECK_OK(carag_index_relabel(index, keys, &quarantined, 1, 1, NULL));
    search_obeys(index, vectors, 4, &predicate, 10, 10);
    carag_index_free(index);
    free(vectors);
}

static void parameters_out_of_range_are_refused(void)
{
    const carag_params bad[] = {{0, 32, 200, 0}, {CARAG_MAX_DIM + 1, 32, 200, 0}, {8, 1, 200, 0},
                                {8, CARAG_MAX_M + 1, 200, 0}, {8, 32, 0, 0}, {8, 32, CARAG_MAX_EF + 1, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        carag_index *index = NULL;
        CHECK(carag_index_new(&bad[i], &index, NULL) == CARAG_BAD_ARGUMENT && index == NULL);
    }
}

int main(void)
{
    every_plan_is_complete_and_admissible();
    an_empty_index_and_an_empty_policy_answer_nothing();
    words_that_are_closed_stay_closed();
    a_predicate_must_test_every_control_bit();
    a_bad_row_changes_nothing();
    a_deleted_key_is_free_again();
    relabel_takes_effect_and_is_all_or_nothing();
    parameters_out_of_range_are_refused();
    return 0;
}
