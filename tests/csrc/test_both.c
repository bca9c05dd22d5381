/* test_both.c - one call, two predicates: the first answer is what it is without the second, and the second what a search
 * of its own finds; each row says what its word is, and whether the first predicate refuses it.
 */
#include "oracle.h"

enum { N = 3000, DIM = 24, MOST = 40 };

static const carag_predicate *any_of(size_t at)
{
    static const uint64_t audiences[] = {2};
    static carag_predicate wider[4];
    for (size_t i = 0; i < 4; i++)
        wider[i] = one_mask(0, 0);
    ask_at(&wider[0], CARAG_NEVER_PUBLIC - 1); /* all that never expires: neither within the first, nor around it */
    ask_at(&wider[1], 10);
    wider[2] = one_mask(2, 0);
    ask_at(&wider[2], 20);
    wider[0].audience_rule = CARAG_ANY_AUDIENCE;
    share_with(&wider[2], audiences, 0);
    wider[3].pair_count = 0; /* nothing */
    return &wider[at];
}

/* Cells and a graph, some rows moved from class to class since, deleted, and in the tail; equal vectors among them. */
static carag_index *index_of(uint32_t rows, carag_dtype dtype)
{
    carag_index *index = new_index_of(dtype, DIM, 8, 1);
    uint64_t state = 4;
    float *vectors = random_vectors(2, rows, DIM);
    uint32_t *words = random_words(3, rows, 2);
    uint32_t *public_at = room_for(rows, sizeof *public_at);
    uint32_t *expires_at = room_for(rows, sizeof *expires_at);
    uint32_t *audiences = room_for(rows, sizeof *audiences);
    for (uint32_t i = 0; i < rows; i++) {
        public_at[i] = below(&state, 5) ? 0 : 20;
        audiences[i] = below(&state, 5) ? CARAG_EVERYBODY : 1 + below(&state, 2);
        expires_at[i] = below(&state, 4) ? CARAG_NEVER_EXPIRES : 30;
        if (i > 30 && below(&state, 8) == 0)
            memcpy(vectors + i * DIM, vectors + below(&state, 20) * DIM, DIM * sizeof *vectors);
    }
    for (uint32_t begin = 0, end = rows - rows / 30; begin < rows; begin = end, end = rows) {
        carag_rows batch = rows_of(vectors + begin * DIM, words + begin, end - begin);
        batch.public_at = public_at + begin;
        batch.expires_at = expires_at + begin;
        batch.audiences = audiences + begin;
        CHECK_OK(carag_index_add(index, &batch, NULL, NULL));
        for (int64_t key = begin; key < end; key += 17) {
            const uint32_t word = WORD(below(&state, 4));
            CHECK_OK(carag_index_relabel(index, &key, &word, 1, 0, NULL));
        }
        for (int64_t key = begin + 5; key < end; key += 23)
            CHECK_OK(carag_index_delete(index, &key, 1, NULL));
    }
    free(vectors);
    free(words);
    free(public_at);
    free(expires_at);
    free(audiences);
    return index;
}

static int is_same(const answer *a, const answer *b, size_t k)
{
    return a->count == b->count && memcmp(a->keys, b->keys, k * sizeof *a->keys) == 0 &&
           memcmp(a->similarities, b->similarities, k * sizeof *a->similarities) == 0 &&
           a->admissible == b->admissible && a->classes == b->classes && a->rows == b->rows;
}

static int costs_the_same(const answer *a, const answer *b)
{
    return a->estimates == b->estimates && a->distance_computations == b->distance_computations &&
           a->hops == b->hops && a->ef == b->ef && a->plan == b->plan && a->why == b->why;
}

/* Beyond the rows found there is nothing; each of them is in the world as it is told. */
static void tells_what_is_there(const answers *got, const world *all, const carag_predicate *first, size_t more)
{
    for (size_t i = (size_t)got->second.count; i < more; i++)
        CHECK(got->words[i] == 0 && got->refused[i] == 0);
    for (int64_t i = 0; i < got->second.count; i++) {
        size_t at = 0;
        while (all->keys[at] != got->second.keys[i])
            at++;
        CHECK(got->words[i] == all->words[at]);
        CHECK(got->refused[i] == !admits(first, all->words[at], all->public_at[at], all->expires_at[at], 0,
                                         all->audiences[at]));
    }
}

static void obeys_both(carag_index *index, const world *all, const float *query, const carag_predicate *first,
                       const carag_predicate *wider, size_t k, size_t more, uint32_t ef)
{
    float unit[DIM];
    scored *expected;
    unit_of(query, DIM, unit);
    const size_t admissible = oracle(all, unit, wider, &expected);
    for (size_t p = 0; p < PLANS; p++)
        for (uint64_t exact_limit = 0; exact_limit <= N; exact_limit += N) {
            const carag_search_params params = {.k = k, .ef_search = ef, .plan = plans[p], .threads = 1,
                                                .exact_limit = exact_limit};
            carag_search_params own = params;
            answer alone, second;
            answers got;
            own.k = more;
            CHECK_OK(search_with(index, query, first, &params, &alone));
            CHECK_OK(search_with(index, query, wider, &own, &second));
            CHECK_OK(search_both(index, query, first, &params, wider, more, &got));
            CHECK(is_same(&alone, &got.first, k) && costs_the_same(&alone, &got.first));
            CHECK(got.second.admissible == second.admissible && got.second.plan == second.plan);
            CHECK(second.plan == CARAG_PLAN_GRAPH || is_same(&second, &got.second, more));
            obeys(&got.second, more, expected, admissible);
            tells_what_is_there(&got, all, first, more);
            free_answer(&alone);
            free_answer(&second);
            free_answers(&got);
        }
    free(expected);
}

static void every_pair_of_predicates_obeys(uint32_t rows, carag_dtype dtype)
{
    carag_index *index = index_of(rows, dtype);
    world all = world_of(index);
    float *queries = random_vectors(6, 4, DIM);
    const uint64_t audiences[] = {4};
    const size_t ks[][2] = {{1, 1}, {10, 10}, {10, 4}, {4, 10}, {MOST, MOST}, {rows, 7}, {7, rows}, {rows, rows}};
    for (size_t w = 0; w < 4; w++)
        for (uint32_t required = 0; required < 5; required++) {
            carag_predicate first = one_mask(required % 4, ~required & 1);
            ask_at(&first, required % 2 ? 10 : 20);
            share_with(&first, audiences, 0);
            if (required == 4)
                first.pair_count = 0;
            for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
                obeys_both(index, &all, queries + (i + required) % 4 * DIM, &first, any_of(w), ks[i][0], ks[i][1],
                           w % 2 ? 0 : 25);
        }
    free(queries);
    free_world(&all);
    carag_index_free(index);
}

/* Rows of the wider predicate that the first one admits are not read again. */
static void both_exact_searches_read_a_row_once(void)
{
    enum { K = 10 };
    carag_index *index = index_of(N, CARAG_FLOAT32);
    float *query = random_vectors(6, 1, DIM);
    const carag_predicate first = one_mask(1, 0);
    const carag_predicate wider = one_mask(0, 0);
    for (carag_plan plan = CARAG_PLAN_EXACT; plan <= CARAG_PLAN_CERTIFIED; plan += CARAG_PLAN_CERTIFIED - CARAG_PLAN_EXACT) {
        const carag_search_params params = {.k = K, .plan = plan, .threads = 1};
        answer alone;
        answers got;
        CHECK_OK(search_one(index, query, &wider, K, 0, plan, &alone));
        CHECK_OK(search_both(index, query, &first, &params, &wider, K, &got));
        CHECK(got.first.admissible > got.second.admissible / 3);
        CHECK(got.first.distance_computations + got.second.distance_computations <
              alone.distance_computations + 10 * K);
        free_answer(&alone);
        free_answers(&got);
    }
    free(query);
    carag_index_free(index);
}

/* What a walk for few rows met holds the rows that one for all would have found: no fewer of the nearest. */
static void a_walk_finds_no_less_for_both(void)
{
    enum { K = 10, QUERIES = 60 };
    carag_index *index = index_of(N, CARAG_FLOAT32);
    world all = world_of(index);
    float *queries = random_vectors(8, QUERIES, DIM);
    carag_predicate first = one_mask(1, 0);
    carag_predicate wider = one_mask(0, 0);
    first.audience_rule = wider.audience_rule = CARAG_ANY_AUDIENCE;
    size_t alone_hits = 0;
    size_t both_hits = 0;
    int64_t walked = 0;
    for (size_t q = 0; q < QUERIES; q++) {
        const carag_search_params params = {.k = K, .ef_search = 12, .plan = CARAG_PLAN_GRAPH, .threads = 1};
        float unit[DIM];
        scored *expected;
        answer alone;
        answers got;
        unit_of(queries + q * DIM, DIM, unit);
        const size_t admissible = oracle(&all, unit, &wider, &expected);
        CHECK_OK(search_with(index, queries + q * DIM, &wider, &params, &alone));
        CHECK_OK(search_both(index, queries + q * DIM, &first, &params, &wider, K, &got));
        CHECK(got.second.plan == CARAG_PLAN_GRAPH && got.second.why == CARAG_WHY_ASKED);
        walked += got.second.hops;
        alone_hits += obeys(&alone, K, expected, admissible);
        both_hits += obeys(&got.second, K, expected, admissible);
        free_answer(&alone);
        free_answers(&got);
        free(expected);
    }
    CHECK(walked == 0);
    CHECK(both_hits >= alone_hits && both_hits * 100 >= QUERIES * K * 85);
    free(queries);
    free_world(&all);
    carag_index_free(index);
}

/* In a batch, and by several threads, each query has what it has alone. */
static void a_batch_is_its_queries(void)
{
    enum { QUERIES = 9, K = 6, MORE = 5 };
    carag_index *index = index_of(N, CARAG_FLOAT32);
    float *queries = random_vectors(9, QUERIES, DIM);
    const carag_predicate first = one_mask(1, 2);
    int64_t keys[2][QUERIES * K], counts[2][QUERIES], numbers[QUERIES];
    float similarities[2][QUERIES * K];
    uint32_t words[QUERIES * MORE];
    uint8_t refused[QUERIES * MORE], bytes[QUERIES];
    for (carag_plan plan = CARAG_PLAN_EXACT; plan < CARAG_PLANS; plan++)
        for (uint32_t threads = 1; threads <= 3; threads += 2) {
            carag_results results[2];
            for (int i = 0; i < 2; i++)
                results[i] = (carag_results){.keys = keys[i], .similarities = similarities[i], .counts = counts[i],
                                             .estimates = numbers, .distance_computations = numbers, .hops = numbers,
                                             .ef = numbers, .plans = bytes, .whys = bytes};
            const carag_search_params params = {.k = K, .plan = plan, .threads = threads};
            const carag_wider wider = {any_of(1), MORE, &results[1], words, refused};
            CHECK_OK(carag_index_search_both(index, queries, QUERIES, &first, &params, &results[0], &wider, NULL));
            for (size_t q = 0; q < QUERIES; q++) {
                const carag_search_params one = {.k = K, .plan = plan, .threads = 1};
                answers got;
                CHECK_OK(search_both(index, queries + q * DIM, &first, &one, any_of(1), MORE, &got));
                CHECK(memcmp(got.first.keys, keys[0] + q * K, K * sizeof **keys) == 0);
                CHECK(memcmp(got.second.keys, keys[1] + q * MORE, MORE * sizeof **keys) == 0);
                CHECK(memcmp(got.second.similarities, similarities[1] + q * MORE, MORE * sizeof **similarities) == 0);
                CHECK(memcmp(got.words, words + q * MORE, MORE * sizeof *words) == 0);
                CHECK(memcmp(got.refused, refused + q * MORE, MORE) == 0);
                free_answers(&got);
            }
        }
    free(queries);
    carag_index_free(index);
}

static void a_bad_second_predicate_is_refused(void)
{
    carag_index *index = index_of(300, CARAG_FLOAT32);
    const float *query = (float[DIM]){1.0F};
    const carag_search_params params = {.k = 1, .threads = 1};
    const carag_predicate open = one_mask(0, 0);
    const carag_predicate loose = {.pairs = {{0, 0}}, .pair_count = 1};
    answer first, second;
    carag_results results[2] = {room_of(&first, 1), room_of(&second, 1)};
    uint32_t word;
    uint8_t refused;
    const carag_wider none = {&open, 0, &results[1], &word, &refused};
    const carag_wider unclosed = {&loose, 1, &results[1], &word, &refused};
    first.count = second.count = 99;
    CHECK(carag_index_search_both(index, query, 1, &open, &params, results, &none, NULL) == CARAG_BAD_ARGUMENT);
    CHECK(carag_index_search_both(index, query, 1, &open, &params, results, &unclosed, NULL) == CARAG_BAD_PREDICATE);
    CHECK(carag_index_search_both(index, query, 1, &loose, &params, results, &none, NULL) == CARAG_BAD_PREDICATE);
    CHECK(first.count == 99 && second.count == 99);
    free_answer(&first);
    free_answer(&second);
    carag_index_free(index);
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    every_pair_of_predicates_obeys(N, CARAG_FLOAT32);
    every_pair_of_predicates_obeys(60, CARAG_INT8);
    both_exact_searches_read_a_row_once();
    a_walk_finds_no_less_for_both();
    a_batch_is_its_queries();
    a_bad_second_predicate_is_refused();
    return 0;
}
