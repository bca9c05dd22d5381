/* test_plans.c - what each plan promises, against the oracle: exact and certified to the last bit, whatever
 * the data, what is kept of it, and the kernel; scan and graph complete, admissible and truly scored, and
 * near enough to exact.
 *
 * The data are made to hurt: rows that are all equal, that share no coordinate, whose coordinates differ by
 * thirty orders of magnitude, that come many times under different policies, and that lie closer together
 * than any code tells.
 */
#include "oracle.h"

/* ---------------------------------------------------------------- data */

typedef enum shape { UNIFORM, ALL_EQUAL, ONE_HOT, HUGE_RANGE, COPIES, NEAR_TIES, OFF_CENTRE, SHAPES } shape;

static float *make(shape kind, uint64_t seed, size_t count, size_t dim)
{
    float *vectors = random_vectors(seed, count, dim);
    uint64_t state = seed + 1;
    for (size_t i = 0; i < count; i++) {
        float *row = vectors + i * dim;
        const size_t one = below(&state, (uint32_t)dim);
        const float sign = below(&state, 2) ? 1.0F : -1.0F;
        const size_t copied = below(&state, (uint32_t)(count < 12 ? count : 12));
        for (size_t j = 0; j < dim; j++)
            switch (kind) {
            case ALL_EQUAL: row[j] = vectors[j]; break;
            case ONE_HOT: row[j] = j == one ? sign : 0.0F; break;
            case HUGE_RANGE: row[j] *= powf(10.0F, (float)below(&state, 31) - 15.0F); break;
            case COPIES: row[j] = vectors[copied * dim + j]; break;
            case NEAR_TIES: row[j] = vectors[j] + row[j] * 1e-6F; break;
            case OFF_CENTRE: row[j] = 5.0F + row[j] * 0.1F; break;
            case UNIFORM: case SHAPES: break;
            }
    }
    return vectors;
}

/* Keys in no order: a prime apart, so no two equal below ten thousand. */
static int64_t key_of(size_t i)
{
    return (int64_t)(i * 7919 % 10007);
}

/* Rows with three policy bits and some terms. */
static carag_index *index_of(carag_dtype dtype, const float *vectors, size_t count, size_t dim, uint64_t seed)
{
    carag_index *index = new_index_of(dtype, (uint32_t)dim, 4, seed);
    uint64_t state = seed + 2;
    uint32_t *words = random_words(seed, count, 3);
    uint32_t *public_at = room_for(count, sizeof *public_at);
    uint32_t *entities = room_for(count, sizeof *entities);
    uint32_t *audiences = room_for(count, sizeof *audiences);
    int64_t *keys = room_for(count, sizeof *keys);
    for (size_t i = 0; i < count; i++) {
        public_at[i] = below(&state, 4) ? CARAG_ALWAYS_PUBLIC : 10;
        entities[i] = below(&state, 5);
        audiences[i] = below(&state, 6);
        keys[i] = key_of(i);
    }
    carag_rows rows = rows_of(vectors, words, count);
    rows.public_at = public_at;
    rows.entities = entities;
    rows.audiences = audiences;
    rows.keys = keys;
    CHECK(count < 10007);
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    free(words);
    free(public_at);
    free(entities);
    free(audiences);
    free(keys);
    return index;
}

/* ---------------------------------------------------------------- the same on every kernel */

static int same_answers(const answer *a, const answer *b, size_t k)
{
    return a->count == b->count && memcmp(a->keys, b->keys, k * sizeof *a->keys) == 0 &&
           memcmp(a->similarities, b->similarities, k * sizeof *a->similarities) == 0 &&
           a->estimates == b->estimates && a->distance_computations == b->distance_computations &&
           a->hops == b->hops && a->ef == b->ef && a->plan == b->plan && a->why == b->why;
}

static void is_the_same_on_every_kernel(carag_index *index, const float *query, const carag_predicate *predicate,
                                        size_t k)
{
    const char *before;
    CHECK_OK(carag_kernel_active(&before, NULL));
    for (size_t p = 1; p < PLANS; p++) { /* which plan is the cheapest may differ */
        answer first;
        CHECK_OK(search_one(index, query, predicate, k, 20, plans[p], &first));
        for (size_t i = 0; i < carag_kernel_count(); i++)
            if (carag_kernel_is_available(i)) {
                answer other;
                CHECK_OK(carag_set_kernel(carag_kernel_name(i), NULL));
                CHECK_OK(search_one(index, query, predicate, k, 20, plans[p], &other));
                CHECK(same_answers(&first, &other, k));
                free_answer(&other);
            }
        CHECK_OK(carag_set_kernel(before, NULL));
        free_answer(&first);
    }
}

/* ---------------------------------------------------------------- against the oracle */

/* Whatever is kept of a vector points where it pointed. */
static void keeps_what_was_given(carag_index *index, const float *vectors, size_t count, size_t dim)
{
    float unit[MOST_DIM], kept[MOST_DIM];
    const carag_columns columns = {.vectors = kept};
    for (size_t i = 0; i < count; i += 10) {
        const int64_t key = key_of(i);
        unit_of(vectors + i * dim, dim, unit);
        CHECK_OK(carag_index_get(index, &key, 1, &columns, NULL));
        CHECK(fabs((double)score(unit, kept, dim) - 1.0) <= 0.01);
    }
}

static carag_predicate draw_predicate(uint64_t *state)
{
    static const uint32_t listed[] = {1, 3};
    static const uint64_t audiences[] = {0, 2 + 16, 2 + 4 + 8 + 16 + 32};
    const uint32_t bits = below(state, 8);
    const uint32_t required = bits & below(state, 8) & below(state, 8);
    carag_predicate predicate = one_mask(required, bits & ~required & below(state, 8));
    if (below(state, 3) == 0)
        predicate.pairs[predicate.pair_count++] = (carag_pair){CONTROL | 7, WORD(below(state, 8))};
    ask_aged(&predicate, below(state, 2) * 10, below(state, 2) * 10);
    predicate.entity_rule = (carag_entity_rule)(below(state, 6) % 4 % 3);
    predicate.entities = listed;
    predicate.entity_count = 2;
    share_with(&predicate, &audiences[below(state, 3)], below(state, 4) == 0);
    return predicate;
}

static void obeys_on(carag_dtype dtype, shape kind, size_t count, size_t dim, uint64_t seed)
{
    float *vectors = make(kind, seed, count, dim);
    float *queries = make(kind, seed + 100, 2, dim);
    carag_index *index = index_of(dtype, vectors, count, dim, seed);
    world all = world_of(index);
    uint64_t state = seed + 3;
    keeps_what_was_given(index, vectors, count, dim);
    const size_t ks[] = {1, 10, 33, count - 1, count, count + 5};
    for (size_t q = 0; q < 6; q++) { /* queries like the rows, and rows themselves */
        const float *query = q % 2 ? vectors + below(&state, (uint32_t)count) * dim : queries + q / 2 % 2 * dim;
        const carag_predicate predicate = draw_predicate(&state);
        search_obeys(index, &all, query, &predicate, ks[q], 20);
        if (q < 3)
            is_the_same_on_every_kernel(index, query, &predicate, ks[q]);
    }
    carag_index_free(index);
    free_world(&all);
    free(vectors);
    free(queries);
}

static void every_dimension_obeys(void)
{
    for (size_t dim = 1; dim <= 130; dim++)
        for (int dtype = CARAG_FLOAT32; dtype <= CARAG_INT8; dtype++)
            obeys_on((carag_dtype)dtype, (shape)((dim + (size_t)dtype) % SHAPES), 120, dim, dim);
}

static void every_shape_obeys(void)
{
    const size_t dims[] = {7, 64, 130, 1024};
    for (int kind = UNIFORM; kind < SHAPES; kind++)
        for (int dtype = CARAG_FLOAT32; dtype <= CARAG_INT8; dtype++)
            for (size_t d = 0; d < 4; d++)
                obeys_on((carag_dtype)dtype, (shape)kind, dims[d] == 1024 ? 250 : 400, dims[d], 300 + d);
}

/* As many rows admissible as none, one, nearly k, k, one more: where answers are cut off, and plans
 * change. */
static void every_count_obeys(void)
{
    enum { N = 300, DIM = 20, OPENED = 256 };
    float *vectors = make(OFF_CENTRE, 5, N, DIM);
    carag_index *index = index_of(CARAG_FLOAT32, vectors, N, DIM, 5);
    const carag_predicate everything = one_mask(0, 0);
    carag_predicate opened = one_mask(OPENED, 0);
    ask_at(&opened, 10);
    share_with(&opened, (const uint64_t[]){0}, 1);
    uint64_t state = 6;
    const size_t ks[] = {1, 2, 10, 40};
    for (size_t i = 0; i < 4; i++) {
        const size_t counts[] = {0, 1, ks[i] - 1, ks[i], ks[i] + 1, 3 * ks[i] + 40};
        for (size_t c = 0; c < 6; c++) {
            uint64_t closed;
            CHECK_OK(carag_index_relabel_where(index, &opened, 0, OPENED, &closed, NULL));
            int64_t keys[N];
            CHECK(carag_index_keys(index, keys, N) == N);
            for (size_t j = 0; j < counts[c]; j++) { /* Fisher and Yates: j rows, none twice */
                const size_t other = j + below(&state, (uint32_t)(N - j));
                const int64_t key = keys[other];
                const uint32_t word = WORD(OPENED | below(&state, 4));
                keys[other] = keys[j];
                keys[j] = key;
                CHECK_OK(carag_index_relabel(index, &key, &word, 1, 0, NULL));
            }
            world all = world_of(index);
            CHECK(count_of(index, &opened) == counts[c]);
            for (int q = 0; q < 3; q++)
                search_obeys(index, &all, vectors + below(&state, N) * DIM, &opened, ks[i], 20);
            free_world(&all);
        }
    }
    CHECK(count_of(index, &everything) > 0);
    carag_index_free(index);
    free(vectors);
}

/* What an inadmissible row is changes nothing of a certified answer: other vectors there, or no rows at
 * all. */
static void certified_depends_on_admissible_rows_alone(void)
{
    enum { N = 400, DIM = 33, K = 12 };
    for (int dtype = CARAG_FLOAT32; dtype <= CARAG_INT8; dtype++) {
        float *vectors = make(COPIES, 7, N, DIM);
        float *others = make(HUGE_RANGE, 8, N, DIM);
        uint32_t words[N];
        int64_t keys[N];
        uint64_t state = 9;
        size_t open = 0;
        carag_index *worlds[3];
        float *packed = room_for(N * DIM, sizeof *packed);
        for (int64_t i = 0; i < N; i++) {
            words[i] = WORD(below(&state, 2));
            keys[i] = 3 * i;
            if ((words[i] & 1) == 0)
                continue;
            memcpy(others + i * DIM, vectors + i * DIM, DIM * sizeof *others);
            memcpy(packed + open++ * DIM, vectors + i * DIM, DIM * sizeof *packed);
        }
        const float *given[] = {vectors, others, packed};
        for (int w = 0; w < 3; w++) {
            if (w == 2) {
                size_t at = 0;
                for (int64_t i = 0; i < N; i++)
                    if (words[i] & 1)
                        keys[at++] = 3 * i;
                for (size_t i = 0; i < open; i++)
                    words[i] = WORD(1);
            }
            carag_rows rows = rows_of(given[w], words, w == 2 ? open : N);
            rows.keys = keys;
            worlds[w] = new_index_of((carag_dtype)dtype, DIM, 4, (uint64_t)w);
            CHECK_OK(carag_index_add(worlds[w], &rows, NULL, NULL));
        }
        const carag_predicate predicate = one_mask(1, 0);
        for (int q = 0; q < 20; q++) {
            answer got[3];
            for (int w = 0; w < 3; w++) {
                CHECK_OK(search_one(worlds[w], vectors + q * DIM, &predicate, K, 10, CARAG_PLAN_CERTIFIED, &got[w]));
                CHECK(got[w].count == K && same_answers(&got[0], &got[w], K));
            }
            for (int w = 0; w < 3; w++)
                free_answer(&got[w]);
        }
        for (int w = 0; w < 3; w++)
            carag_index_free(worlds[w]);
        free(vectors);
        free(others);
        free(packed);
    }
}

/* ---------------------------------------------------------------- recall */

/* Added in pieces too small for a graph to be built: this is about the scan. */
static carag_index *scanned(const float *vectors, const uint32_t *words, size_t count, uint32_t dim)
{
    enum { PIECE = 250 };
    const carag_params params = {.dim = dim, .M = 2, .ef_construction = 1, .seed = 1};
    carag_index *index;
    CHECK_OK(carag_index_new(&params, &index, NULL));
    for (size_t at = 0; at < count; at += PIECE) {
        const carag_rows rows = rows_of(vectors + at * dim, words + at, count - at < PIECE ? count - at : PIECE);
        CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    }
    return index;
}

/* One search with a limit is a count, and then the search that the count calls for. */
static void an_exact_limit_is_a_count_before_the_search(void)
{
    enum { N = 3000, DIM = 32, K = 8 };
    float *vectors = random_vectors(51, N, DIM);
    float *queries = random_vectors(52, 4, DIM);
    carag_index *index = index_of(CARAG_FLOAT32, vectors, N, DIM, 53);
    uint32_t plans_seen = 0;
    for (uint32_t required = 0; required < 16; required = required * 2 + 1)
        for (size_t q = 0; q < 4; q++) {
            carag_predicate predicate = one_mask(required, 0);
            predicate.pair_count = q != 3; /* the last admits nothing */
            const uint64_t admissible = count_of(index, &predicate);
            const uint64_t limits[] = {0, 1, admissible - (admissible > 0), admissible, admissible + 1, UINT64_MAX};
            for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
                const int certified = limits[i] > 0 && admissible <= limits[i];
                const carag_search_params params = {.k = K, .threads = 1, .exact_limit = limits[i]};
                const carag_plan plan = certified ? CARAG_PLAN_CERTIFIED : CARAG_PLAN_AUTO;
                answer once;
                answer twice;
                CHECK_OK(search_with(index, queries + q * DIM, &predicate, &params, &once));
                CHECK_OK(search_one(index, queries + q * DIM, &predicate, K, 0, plan, &twice));
                CHECK(same_answers(&once, &twice, K) && once.admissible == admissible);
                CHECK((once.plan == CARAG_PLAN_CERTIFIED) == certified);
                plans_seen |= 1U << once.plan;
                free_answer(&once);
                free_answer(&twice);
            }
        }
    CHECK((plans_seen & ~(1U << CARAG_PLAN_CERTIFIED)) != 0);
    carag_index_free(index);
    free(vectors);
    free(queries);
}

static void the_scan_finds_nearly_all(void)
{
    enum { N = 3000, QUERIES = 40, K = 10 };
    const uint32_t dims[] = {64, 128, 384, 1024};
    uint64_t state = 20;
    uint32_t words[N];
    for (size_t i = 0; i < N; i++)
        words[i] = WORD(below(&state, 2) | (below(&state, 20) == 0 ? 2U : 0U));
    for (size_t d = 0; d < 4; d++) {
        float *vectors = random_vectors(d + 21, N, dims[d]);
        float *queries = random_vectors(d + 31, QUERIES, dims[d]);
        carag_index *index = scanned(vectors, words, N, dims[d]);
        world all = world_of(index);
        for (uint32_t required = 0; required < 3; required++) { /* all, half, a twentieth */
            const carag_predicate predicate = one_mask(required, 0);
            size_t hits = 0;
            for (size_t q = 0; q < QUERIES; q++) {
                float unit[MOST_DIM];
                scored *expected;
                answer got;
                unit_of(queries + q * dims[d], dims[d], unit);
                const size_t admissible = oracle(&all, unit, &predicate, &expected);
                CHECK_OK(search_one(index, queries + q * dims[d], &predicate, K, 0, CARAG_PLAN_SCAN, &got));
                CHECK(got.plan == CARAG_PLAN_SCAN && got.estimates > 0);
                hits += obeys(&got, K, expected, admissible);
                free_answer(&got);
                free(expected);
            }
            CHECK(hits * 100 >= 99 * (size_t)QUERIES * K);
        }
        carag_index_free(index);
        free_world(&all);
        free(vectors);
        free(queries);
    }
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    every_dimension_obeys();
    every_shape_obeys();
    every_count_obeys();
    certified_depends_on_admissible_rows_alone();
    an_exact_limit_is_a_count_before_the_search();
    the_scan_finds_nearly_all();
    return 0;
}
