/* test_index.c - the laws of the index as a caller sees them: rows, keys, words and terms come back as they
 * were given, relabels are seen by the next query, and every answer is the oracle's.
 */
#include "oracle.h"

/* ---------------------------------------------------------------- searches */

static void every_plan_is_complete_and_admissible(void)
{
    const uint32_t dims[] = {1, 2, 7, 16, 33, 130};
    for (size_t d = 0; d < 6; d++)
        for (uint32_t M = 2; M <= 32; M *= 4) {
            enum { N = 300 };
            const uint32_t dim = dims[d];
            carag_index *index = new_index(dim, M, d);
            float *vectors = random_vectors(d + 10, N, dim);
            uint32_t *words = random_words(d + 20, N, 3);
            uint32_t public_at[N];
            for (size_t i = 0; i < N; i++)
                public_at[i] = i % 5 == 4 ? CARAG_NEVER_PUBLIC : (uint32_t)(i % 5) * 10;
            carag_rows rows = rows_of(vectors, words, N);
            rows.public_at = public_at;
            CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
            CHECK(carag_index_check(index, NULL) == 0);
            world all = world_of(index);
            float *queries = random_vectors(d + 30, 8, dim);
            for (uint32_t q = 0; q < 8; q++) {
                carag_predicate predicate = one_mask(q & 3, ~q & 4);
                ask_at(&predicate, q % 2 ? 15 : CARAG_NEVER_PUBLIC - 1);
                search_obeys(index, &all, queries + q * dim, &predicate, 1 + 60 * q, 16);
                predicate.pairs[predicate.pair_count++] = (carag_pair){CONTROL | 7, WORD(5)};
                search_obeys(index, &all, queries + q * dim, &predicate, 10, 200);
            }
            carag_index_free(index);
            free_world(&all);
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
    const uint32_t word = WORD(0);
    const carag_rows rows = rows_of(query, &word, 1);
    const carag_rows no_rows = rows_of(NULL, NULL, 0);
    for (int added = 0; added < 2; added++) {
        world all = world_of(index);
        search_obeys(index, &all, query, &open, 5, 10);
        search_obeys(index, &all, query, &none, 5, 10);
        CHECK_OK(carag_index_add(index, &no_rows, NULL, NULL));
        CHECK_OK(carag_index_relabel(index, NULL, NULL, 0, 0, NULL));
        CHECK_OK(carag_index_delete(index, NULL, 0, NULL));
        CHECK(carag_index_keys(index, NULL, 0) == 0);
        if (!added)
            CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
        free_world(&all);
    }
    carag_index_free(index);
}

/* A thousand queries at once answer as one by one, on any number of threads. */
static void a_batch_answers_as_its_queries_do(void)
{
    enum { N = 500, DIM = 24, QUERIES = 60, K = 7 };
    carag_index *index = new_index(DIM, 8, 2);
    float *vectors = random_vectors(40, N, DIM);
    float *queries = random_vectors(41, QUERIES, DIM);
    uint32_t *words = random_words(42, N, 2);
    const carag_rows rows = rows_of(vectors, words, N);
    const carag_predicate predicate = one_mask(1, 0);
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    for (size_t p = 1; p < PLANS; p++)
        for (uint32_t threads = 1; threads <= 4; threads++) {
            int64_t keys[QUERIES * K], numbers[5][QUERIES];
            float similarities[QUERIES * K];
            uint8_t ran[QUERIES], whys[QUERIES];
            carag_results results = {.keys = keys, .similarities = similarities, .counts = numbers[0],
                                     .estimates = numbers[1], .distance_computations = numbers[2],
                                     .hops = numbers[3], .ef = numbers[4], .plans = ran, .whys = whys};
            const carag_search_params params = {.k = K, .ef_search = 20, .plan = plans[p], .threads = threads};
            CHECK_OK(carag_index_search(index, queries, QUERIES, &predicate, &params, &results, NULL));
            for (size_t q = 0; q < QUERIES; q++) {
                answer one;
                CHECK_OK(search_one(index, queries + q * DIM, &predicate, K, 20, plans[p], &one));
                CHECK(one.count == numbers[0][q] && same_bytes(one.keys, keys + q * K, sizeof *keys * K));
                CHECK(same_bytes(one.similarities, similarities + q * K, sizeof *similarities * K));
                CHECK(one.estimates == numbers[1][q] && one.distance_computations == numbers[2][q]);
                CHECK(one.hops == numbers[3][q] && one.ef == numbers[4][q]);
                CHECK(one.plan == ran[q] && one.why == whys[q]);
                free_answer(&one);
            }
        }
    carag_index_free(index);
    free(vectors);
    free(queries);
    free(words);
}

/* ---------------------------------------------------------------- policies */

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
    world all = world_of(index);
    CHECK(all.count == 4 && count_of(index, &predicate) == 1);
    search_obeys(index, &all, vectors, &predicate, 5, 10);
    carag_index_free(index);
    free_world(&all);
    free(vectors);
}

/* public_at <= as_of < expires_at, to the minute; the two special dates; and the rule about entities. */
static void terms_open_and_close_a_row(void)
{
    const struct {
        uint32_t public_at, expires_at, entity;
    } rows_in[] = {{0, CARAG_NEVER_EXPIRES, 0}, {10, 20, 7}, {10, CARAG_NEVER_EXPIRES, 8}, {0, 20, 9},
                   {CARAG_NEVER_PUBLIC, CARAG_NEVER_EXPIRES, 7}, {20, 10, 7}, {10, 10, 7}, {0, 0, 8}};
    enum { N = 8 };
    uint32_t public_at[N], expires_at[N], entities[N], words[N];
    for (size_t i = 0; i < N; i++) {
        public_at[i] = rows_in[i].public_at;
        expires_at[i] = rows_in[i].expires_at;
        entities[i] = rows_in[i].entity;
        words[i] = WORD(0);
    }
    float *vectors = random_vectors(50, N, 3);
    carag_index *index = new_index(3, 4, 0);
    carag_rows rows = rows_of(vectors, words, N);
    rows.public_at = public_at;
    rows.expires_at = expires_at;
    rows.entities = entities;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    const struct {
        uint32_t as_of, listed;
        carag_entity_rule rule;
        uint64_t admissible;
    } cases[] = {{0, 0, CARAG_ANY_ENTITY, 2},   {9, 0, CARAG_ANY_ENTITY, 2},  {10, 0, CARAG_ANY_ENTITY, 4},
                 {19, 0, CARAG_ANY_ENTITY, 4},  {20, 0, CARAG_ANY_ENTITY, 2},
                 {CARAG_NEVER_PUBLIC - 1, 0, CARAG_ANY_ENTITY, 2},
                 {10, 7, CARAG_ONLY_ENTITIES, 1}, {10, 7, CARAG_NOT_ENTITIES, 3},
                 {10, 0, CARAG_ONLY_ENTITIES, 1}, {10, 0, CARAG_NOT_ENTITIES, 3},
                 {10, 5, CARAG_ONLY_ENTITIES, 0}, {10, 5, CARAG_NOT_ENTITIES, 4}};
    world all = world_of(index);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        carag_predicate predicate = one_mask(0, 0);
        ask_at(&predicate, cases[i].as_of);
        predicate.entity_rule = cases[i].rule;
        predicate.entities = &cases[i].listed;
        predicate.entity_count = 1;
        CHECK(count_of(index, &predicate) == cases[i].admissible);
        search_obeys(index, &all, vectors, &predicate, N, 10);
    }
    carag_predicate empty = one_mask(0, 0);
    ask_at(&empty, 10);
    empty.entity_rule = CARAG_ONLY_ENTITIES; /* an empty list: no entity's rows, or every entity's */
    CHECK(count_of(index, &empty) == 0);
    empty.entity_rule = CARAG_NOT_ENTITIES;
    CHECK(count_of(index, &empty) == 4);
    carag_index_free(index);
    free_world(&all);
    free(vectors);
}

/* ---------------------------------------------------------------- keys */

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
    const int64_t named_twice[] = {10, 10};
    CHECK_OK(carag_index_delete(index, named_twice, 2, NULL));
    CHECK_OK(carag_index_delete(index, keys + 11, 19, NULL));
    CHECK(carag_index_delete(index, keys + 9, 2, NULL) == CARAG_UNKNOWN_KEY);
    CHECK(carag_index_contains(index, 9) && !carag_index_contains(index, 10));
    CHECK(!carag_index_contains(index, -1));
    carag_rows again = rows_of(vectors + 80, words, 20); /* other vectors than they had */
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
    world all = world_of(index);
    search_obeys(index, &all, vectors, &open, 70, 10);
    carag_index_free(index);
    free_world(&all);
    free(vectors);
    free(words);
}

static void default_keys_pass_over_taken_ones(void)
{
    carag_index *index = new_index(2, 4, 1);
    float *vectors = random_vectors(5, 8, 2);
    uint32_t words[8];
    for (uint32_t i = 0; i < 8; i++)
        words[i] = WORD(i % 3); /* three classes: rows are stored in another order than they came */
    const int64_t taken[] = {3, 5, 0};
    carag_rows rows = rows_of(vectors, words, 3);
    rows.keys = taken;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    int64_t keys[8];
    const carag_rows more = rows_of(vectors, words, 8);
    CHECK_OK(carag_index_add(index, &more, keys, NULL));
    const int64_t expected[] = {4, 6, 7, 8, 9, 10, 11, 12}; /* from the third row on, 5 is taken */
    CHECK(same_bytes(keys, expected, sizeof keys));
    uint32_t back[8];
    const carag_columns columns = {.words = back};
    CHECK_OK(carag_index_get(index, keys, 8, &columns, NULL));
    CHECK(same_bytes(back, words, sizeof words));
    carag_index_free(index);
    free(vectors);
}

/* What an exact search answers with, for any rows in any order; also of rows that no predicate admits. */
static void similarities_are_those_of_a_search(carag_dtype dtype)
{
    enum { N = 90, DIM = 37 };
    carag_index *index = new_index_of(dtype, DIM, 4, 1);
    float *vectors = random_vectors(11, N + 1, DIM);
    const float *query = vectors + N * DIM;
    uint32_t words[N];
    for (size_t i = 0; i < N; i++)
        words[i] = i % 9 ? WORD(i % 3) : 0;
    const carag_rows rows = rows_of(vectors, words, N);
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    const int64_t gone = 7;
    CHECK_OK(carag_index_delete(index, &gone, 1, NULL));
    const carag_predicate open = one_mask(0, 0);
    const carag_search_params params = {.k = N, .plan = CARAG_PLAN_EXACT, .threads = 1};
    answer got;
    CHECK_OK(search_with(index, query, &open, &params, &got));
    float found[N];
    CHECK_OK(carag_index_similarities(index, query, got.keys, (size_t)got.count, found, NULL));
    CHECK(got.count > 70 && same_bytes(found, got.similarities, (size_t)got.count * sizeof *found));
    int64_t backwards[N];
    for (int64_t i = 0; i < got.count; i++)
        backwards[i] = got.keys[got.count - 1 - i];
    CHECK_OK(carag_index_similarities(index, query, backwards, (size_t)got.count, found, NULL));
    for (int64_t i = 0; i < got.count; i++)
        CHECK(same_bytes(&found[i], &got.similarities[got.count - 1 - i], sizeof *found));
    const int64_t hidden[] = {9, 0, 9}; /* unlabelled; naming one twice is the caller's affair */
    CHECK_OK(carag_index_similarities(index, query, hidden, 3, found, NULL));
    CHECK(same_bytes(&found[0], &found[2], sizeof *found) && found[0] <= 1.001F);
    CHECK_OK(carag_index_similarities(index, query, NULL, 0, found, NULL));
    carag_fault fault;
    found[0] = 9.0F;
    const int64_t unknown[] = {8, 7};
    CHECK(carag_index_similarities(index, query, unknown, 2, found, &fault) == CARAG_UNKNOWN_KEY && fault.row == 1);
    const float zero[DIM] = {0};
    CHECK(carag_index_similarities(index, zero, hidden, 1, found, &fault) == CARAG_ZERO_VECTOR);
    CHECK(found[0] > 8.0F);
    free_answer(&got);
    carag_index_free(index);
    free(vectors);
}

static void get_gives_what_is_asked_or_nothing(void)
{
    enum { N = 6, DIM = 5 };
    carag_index *index = new_index(DIM, 4, 1);
    float *vectors = random_vectors(7, N, DIM);
    uint32_t *words = random_words(7, N, 3);
    const int64_t keys[N] = {INT64_MAX, 2, 1, 0, 77, (int64_t)1 << 40};
    carag_rows rows = rows_of(vectors, words, N);
    rows.keys = keys;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    const int64_t asked[] = {77, INT64_MAX, 77};
    uint32_t got[3] = {1, 1, 1}, public_at[3], expires_at[3], entities[3], audiences[3] = {9, 9, 9};
    float units[3 * DIM], unit[DIM];
    const carag_columns columns = {units, got, public_at, expires_at, entities, audiences};
    const carag_columns none = {NULL, NULL, NULL, NULL, NULL, NULL};
    CHECK_OK(carag_index_get(index, asked, 3, &columns, NULL));
    CHECK(got[0] == words[4] && got[1] == words[0] && got[2] == words[4]);
    CHECK(public_at[1] == CARAG_ALWAYS_PUBLIC && expires_at[1] == CARAG_NEVER_EXPIRES);
    CHECK(entities[1] == CARAG_NO_ENTITY && audiences[1] == CARAG_EVERYBODY);
    unit_of(vectors, DIM, unit);
    CHECK(same_bytes(units + DIM, unit, sizeof unit));
    CHECK_OK(carag_index_get(index, asked, 3, &none, NULL));
    CHECK_OK(carag_index_get(index, NULL, 0, &none, NULL));
    const int64_t unknown[] = {77, 78};
    const carag_columns word_only = {.words = got};
    carag_fault fault = {0};
    got[0] = 5;
    CHECK(carag_index_get(index, unknown, 2, &word_only, &fault) == CARAG_UNKNOWN_KEY);
    CHECK(fault.row == 1 && got[0] == 5);
    int64_t listed[N];
    CHECK(carag_index_keys(index, listed, N) == N);
    for (int i = 1; i < N; i++)
        CHECK(listed[i - 1] < listed[i]);
    CHECK(listed[N - 1] == INT64_MAX);
    CHECK(carag_index_keys(index, listed, 2) == 2);
    carag_index_free(index);
    free(vectors);
    free(words);
}

/* ---------------------------------------------------------------- relabelling */

static void relabel_is_seen_by_the_next_query(void)
{
    enum { N = 10 };
    carag_index *index = new_index(4, 4, 1);
    float *vectors = random_vectors(6, N, 4);
    uint32_t words[N];
    for (int i = 0; i < N; i++)
        words[i] = WORD(1);
    const carag_rows rows = rows_of(vectors, words, N);
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    const carag_predicate predicate = one_mask(1, 2);
    const int64_t keys[] = {3, 4, 3};
    const uint32_t closed = WORD(3);
    CHECK_OK(carag_index_relabel(index, keys, &closed, 1, 0, NULL));
    CHECK(count_of(index, &predicate) == 9);
    const uint32_t quarantined = WORD(1) | QUARANTINE;
    CHECK_OK(carag_index_relabel(index, keys + 1, &quarantined, 1, 1, NULL));
    CHECK(count_of(index, &predicate) == 8);
    const uint32_t later_wins[] = {WORD(1), WORD(3), WORD(2)}; /* key 3 is named twice */
    CHECK_OK(carag_index_relabel(index, keys, later_wins, 3, 0, NULL));
    world all = world_of(index);
    CHECK(all.words[3] == WORD(2) && all.words[4] == WORD(3));
    search_obeys(index, &all, vectors, &predicate, N, 10);
    carag_index_free(index);
    free_world(&all);
    free(vectors);
}

/* By class: every row the predicate admits, and no other, whatever terms it carries. */
static void relabel_where_changes_the_admissible_rows(void)
{
    enum { N = 400, DIM = 6 };
    carag_index *index = new_index(DIM, 4, 1);
    float *vectors = random_vectors(70, N, DIM);
    uint32_t *words = random_words(71, N, 4);
    uint32_t public_at[N], entities[N];
    uint64_t state = 72;
    for (size_t i = 0; i < N; i++) {
        public_at[i] = (uint32_t)(draw(&state) >> 40) % 30;
        entities[i] = (uint32_t)(draw(&state) >> 40) % 20;
    }
    carag_rows rows = rows_of(vectors, words, N);
    rows.public_at = public_at;
    rows.entities = entities;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    for (int round = 0; round < 30; round++) {
        const uint32_t listed[] = {3, 7, 11, 18};
        const uint32_t bits = (uint32_t)(draw(&state) >> 40) & 15;
        const uint32_t required = bits & (uint32_t)(draw(&state) >> 40);
        const uint32_t set = (uint32_t)(draw(&state) >> 40) & 31;
        const uint32_t clear = (uint32_t)(draw(&state) >> 40) & 31 & ~set;
        carag_predicate predicate = one_mask(required, bits & ~required);
        ask_at(&predicate, (uint32_t)round);
        predicate.entities = listed;
        predicate.entity_count = 4;
        predicate.entity_rule = (carag_entity_rule)(round % 3);
        world before = world_of(index);
        uint64_t changed;
        uint64_t expected = 0;
        CHECK_OK(carag_index_relabel_where(index, &predicate, set, clear, &changed, NULL));
        world after = world_of(index);
        for (size_t i = 0; i < N; i++) {
            const int hit = admits(&predicate, before.words[i], before.public_at[i], before.expires_at[i],
                                   before.entities[i], before.audiences[i]);
            CHECK(after.words[i] == (hit ? (before.words[i] & ~clear) | set : before.words[i]));
            expected += (uint64_t)hit;
        }
        CHECK(changed == expected);
        search_obeys(index, &after, vectors + round * DIM, &predicate, 15, 10);
        free_world(&before);
        free_world(&after);
    }
    carag_index_free(index);
    free(vectors);
    free(words);
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    every_plan_is_complete_and_admissible();
    an_empty_index_and_an_empty_policy_answer_nothing();
    a_batch_answers_as_its_queries_do();
    words_that_are_closed_stay_closed();
    terms_open_and_close_a_row();
    a_deleted_key_is_free_again();
    default_keys_pass_over_taken_ones();
    for (int dtype = CARAG_FLOAT32; dtype <= CARAG_INT8; dtype++)
        similarities_are_those_of_a_search((carag_dtype)dtype);
    get_gives_what_is_asked_or_nothing();
    relabel_is_seen_by_the_next_query();
    relabel_where_changes_the_admissible_rows();
    return 0;
}
