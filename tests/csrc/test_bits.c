/* test_bits.c - one-bit codes from inside: the rotation keeps lengths and angles and spreads what is
 * concentrated; codes and factors are the same bits on every kernel; and the estimate made of them is
 * unbiased, with the deviation that each row states.
 */
#define CARAG_ALLOW_LIBC
#include "search/search.h"

#include "oracle.h"

enum { MOST_WORDS = 18, ROWS = 250 /* too few for cells and what they cost */ };

/* ---------------------------------------------------------------- rotation */

static double dot_of(const float *a, const float *b, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static void the_rotation_is_orthonormal(void)
{
    for (size_t words = 1; words <= MOST_WORDS; words++) {
        const size_t count = 64 * words;
        float *signs = room_for(carag_rotation_floats(words), sizeof *signs);
        carag_rotation_init(signs, words);
        for (uint64_t seed = 0; seed < 20; seed++) {
            float *a = random_vectors(2 * seed, count, 1);
            float *b = random_vectors(2 * seed + 1, count, 1);
            const double lengths = sqrt(dot_of(a, a, count) * dot_of(b, b, count));
            const double before[] = {dot_of(a, a, count), dot_of(a, b, count), dot_of(b, b, count)};
            carag_rotate(a, signs, words);
            carag_rotate(b, signs, words);
            const double after[] = {dot_of(a, a, count), dot_of(a, b, count), dot_of(b, b, count)};
            for (int i = 0; i < 3; i++)
                CHECK(fabs(before[i] - after[i]) <= 1e-5 * lengths);
            free(a);
            free(b);
        }
        free(signs);
    }
}

/* A single coordinate ends up all over: none holds more than six deviations of its fair share. */
static void the_rotation_spreads(void)
{
    for (size_t words = 1; words <= MOST_WORDS; words++) {
        const size_t count = 64 * words;
        float *signs = room_for(carag_rotation_floats(words), sizeof *signs);
        float *one = room_for(count, sizeof *one);
        carag_rotation_init(signs, words);
        for (size_t at = 0; at < count; at++) {
            memset(one, 0, count * sizeof *one);
            one[at] = 1.0F;
            carag_rotate(one, signs, words);
            for (size_t i = 0; i < count; i++)
                CHECK((double)one[i] * (double)one[i] * (double)count <= 36.0);
        }
        free(signs);
        free(one);
    }
}

/* ---------------------------------------------------------------- codes */

static carag_index *build(const float *vectors, size_t count, uint32_t dim)
{
    carag_index *index = new_index(dim, 2, 1);
    uint32_t *words = random_words(1, count, 0);
    for (size_t at = 0; at < count; at += 100) { /* centres change meanwhile */
        const carag_rows rows = rows_of(vectors + at * dim, words + at, count - at < 100 ? count - at : 100);
        CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    }
    free(words);
    return index;
}

/* Working memory with the query in it, sketched. */
static carag_scratch *sketched(carag_index *index, const float *query, float confidence)
{
    const carag_view *view = atomic_load(&index->view);
    const carag_room room = {.found = 1, .classes = 1};
    carag_scratch *scratch = carag_scratch_take(index, view, &room);
    CHECK(scratch);
    CHECK_OK(carag_normalise(query, index->params.dim, scratch->query.unit, 0, NULL));
    carag_query_encode(index, &view->codes, &scratch->query);
    carag_query_sketch(&view->bits, index->params.dim, &scratch->query, confidence);
    return scratch;
}

static void same_bits(const carag_view *a, const carag_view *b, uint32_t rows)
{
    CHECK(a->bits.words == b->bits.words && a->bits.centred == b->bits.centred);
    CHECK(memcmp(a->bits.codes, b->bits.codes, rows * a->bits.words * sizeof *a->bits.codes) == 0);
    CHECK(memcmp(a->bits.factors, b->bits.factors, rows * sizeof *a->bits.factors) == 0);
    CHECK(memcmp(a->bits.centre, b->bits.centre, 64 * a->bits.words * sizeof *a->bits.centre) == 0);
    CHECK(memcmp(a->codes.bytes, b->codes.bytes, rows * a->codes.stride) == 0);
    CHECK(memcmp(a->codes.scales, b->codes.scales, rows * sizeof *a->codes.scales) == 0);
    CHECK(memcmp(a->codes.errors, b->codes.errors, rows * sizeof *a->codes.errors) == 0);
}

static void same_query(const carag_query *a, const carag_query *b, size_t words)
{
    CHECK(memcmp(a->values, b->values, 64 * words) == 0);
    CHECK(memcmp(a->planes, b->planes, CARAG_QUERY_PLANES * words * sizeof *a->planes) == 0);
    const float of_a[] = {a->base, a->slope, a->intercept, a->tilt, a->spread};
    const float of_b[] = {b->base, b->slope, b->intercept, b->tilt, b->spread};
    CHECK(memcmp(of_a, of_b, sizeof of_a) == 0);
}

static void every_kernel_makes_the_same_codes(void)
{
    enum { N = ROWS };
    const char *before;
    CHECK_OK(carag_kernel_active(&before, NULL));
    for (uint32_t dim = 1; dim <= 64 * MOST_WORDS; dim += dim < 64 ? 21 : 129) {
        float *vectors = random_vectors(dim, N, dim);
        carag_index *first = NULL;
        for (size_t i = 0; i < carag_kernel_count(); i++) {
            if (!carag_kernel_is_available(i))
                continue;
            CHECK_OK(carag_set_kernel(carag_kernel_name(i), NULL));
            carag_index *index = build(vectors, N, dim);
            first = first ? first : index;
            const carag_view *view = atomic_load(&index->view);
            same_bits(atomic_load(&first->view), view, N);
            carag_scratch *a = sketched(first, vectors, 1.0F);
            carag_scratch *b = sketched(index, vectors, 1.0F);
            same_query(&a->query, &b->query, view->bits.words);
            carag_scratch_give(first, a);
            carag_scratch_give(index, b);
            if (index != first)
                carag_index_free(index);
        }
        carag_index_free(first);
        free(vectors);
    }
    CHECK_OK(carag_set_kernel(before, NULL));
}

/* Planes and values are one number twice, and the smallest and the largest level are used. */
static void planes_say_what_values_say(void)
{
    for (uint32_t dim = 3; dim <= 64 * MOST_WORDS; dim += 100) {
        float *vectors = random_vectors(dim, 5, dim);
        carag_index *index = build(vectors, 5, dim);
        const size_t words = carag_bits_words(dim);
        for (size_t q = 0; q < 5; q++) {
            carag_scratch *scratch = sketched(index, vectors + q * dim, 1.0F);
            uint8_t lowest = 15, highest = 0;
            for (size_t i = 0; i < 64 * words; i++) {
                uint8_t value = 0;
                for (size_t plane = 0; plane < CARAG_QUERY_PLANES; plane++)
                    value |= (uint8_t)((scratch->query.planes[plane * words + i / 64] >> (i % 64) & 1) << plane);
                CHECK(value == scratch->query.values[i] && value <= 15);
                lowest = value < lowest ? value : lowest;
                highest = value > highest ? value : highest;
            }
            CHECK(lowest == 0 && highest == 15);
            carag_scratch_give(index, scratch);
        }
        carag_index_free(index);
        free(vectors);
    }
}

/* ---------------------------------------------------------------- estimates */

/* The upper estimates of all rows, at so many deviations. */
static void estimate(carag_index *index, const float *query, float confidence, uint32_t rows, float *out_upper)
{
    const carag_view *view = atomic_load(&index->view);
    const carag_kernel *kernel = carag_kernel_get();
    carag_scratch *scratch = sketched(index, query, confidence);
    const carag_query *made = &scratch->query;
    for (uint32_t first = 0; first < rows; first += CARAG_BLOCK) {
        const size_t count = rows - first < CARAG_BLOCK ? rows - first : CARAG_BLOCK;
        for (size_t i = 0; i < count; i++)
            scratch->numbers[i] = first + (uint32_t)i;
        kernel->bits(view->bits.codes, view->bits.words, scratch->numbers, count, &made->bits, scratch->dots);
        CHECK(kernel->screen(view->bits.factors, scratch->numbers, scratch->dots, count, made->base, made->slope,
                             made->intercept, made->tilt, made->spread, -INFINITY, scratch->numbers,
                             scratch->scores) == count);
        memcpy(out_upper + first, scratch->scores, count * sizeof *out_upper);
    }
    carag_scratch_give(index, scratch);
}

/* Over all rows and many queries (one errs the same way for many rows), the error in stated deviations has a
 * mean near 0 and a spread near 1; and an upper estimate of two deviations is too low about as seldom as a
 * normal error's. */
static void the_estimate_is_unbiased(uint32_t dim, float common)
{
    enum { N = ROWS, QUERIES = 250 };
    float *vectors = random_vectors(dim, N, dim);
    float *queries = random_vectors(dim + 1, QUERIES, dim);
    for (size_t i = 0; i < N * (size_t)dim; i++) /* a part that all share, as text embeddings do */
        vectors[i] += common * (i % dim % 3 == 0 ? 1.0F : -0.5F);
    for (size_t i = 0; i < QUERIES * (size_t)dim; i++)
        queries[i] += common * (i % dim % 3 == 0 ? 1.0F : -0.5F);
    carag_index *index = build(vectors, N, dim);
    const carag_view *view = atomic_load(&index->view);
    double sum = 0.0, squares = 0.0, missed = 0.0;
    for (size_t q = 0; q < QUERIES; q++) {
        float mean[N], upper[N], unit[MOST_DIM], kept[MOST_DIM];
        estimate(index, queries + q * dim, 0.0F, N, mean);
        estimate(index, queries + q * dim, 1.0F, N, upper);
        CHECK_OK(carag_normalise(queries + q * dim, dim, unit, 0, NULL));
        for (uint32_t row = 0; row < N; row++) {
            carag_widen_vector(index, view, row, kept);
            const double deviation = (double)upper[row] - (double)mean[row];
            const double off = (dot_of(unit, kept, dim) - (double)mean[row]) / deviation;
            CHECK(deviation > 0.0);
            sum += off;
            squares += off * off;
            missed += off > 2.0;
        }
    }
    const double cases = (double)N * QUERIES;
    CHECK(fabs(sum / cases) <= 0.05);
    CHECK(sqrt(squares / cases) >= 0.8 && sqrt(squares / cases) <= 1.1);
    CHECK(missed / cases <= 0.035);
    carag_index_free(index);
    free(vectors);
    free(queries);
}

int main(void)
{
    the_rotation_is_orthonormal();
    the_rotation_spreads();
    every_kernel_makes_the_same_codes();
    planes_say_what_values_say();
    const uint32_t dims[] = {48, 64, 100, 128, 384, 1000, 1024};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        the_estimate_is_unbiased(dims[i], 0.0F);
        the_estimate_is_unbiased(dims[i], 1.0F);
    }
    return 0;
}
