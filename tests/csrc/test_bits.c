/* test_bits.c - one-bit codes from inside: the rotation keeps lengths and angles and spreads what is
 * concentrated; packs are the same bytes on every kernel, and however rows came; and the estimate made of them is
 * unbiased, with the deviation that each row states, about the mean and about the centres of cells.
 */
#define CARAG_ALLOW_LIBC
#include "search/search.h"
#include "search/span.h"

#include "oracle.h"

enum { MOST_WORDS = 18, ROWS = 250 /* too few for cells and what they cost */, MANY = 1200 /* not so */ };

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
static carag_scratch *sketched(carag_index *index, const float *query)
{
    const carag_view *view = atomic_load(&index->view);
    const carag_room room = {.found = 1, .classes = 1, .cells = view->cells ? view->cells->count : 0};
    carag_scratch *scratch = carag_scratch_take(index, view, &room);
    CHECK(scratch);
    CHECK_OK(carag_normalise(query, index->params.dim, scratch->query.unit, 0, NULL));
    carag_query_renew(&scratch->query);
    carag_query_encode(index, &view->codes, &scratch->query);
    carag_query_sketch(&view->bits, index->params.dim, &scratch->query);
    if (view->cells)
        carag_rank_cells(view->cells, scratch);
    return scratch;
}

static void same_bits(const carag_view *a, const carag_view *b, uint32_t rows)
{
    CHECK(a->bits.words == b->bits.words && a->bits.centred == b->bits.centred);
    CHECK(memcmp(a->bits.packs, b->bits.packs, carag_packs(rows) * carag_pack_bytes(8 * a->bits.words)) == 0);
    CHECK(memcmp(a->bits.centre, b->bits.centre, 64 * a->bits.words * sizeof *a->bits.centre) == 0);
    CHECK(memcmp(a->codes.bytes, b->codes.bytes, rows * a->codes.stride) == 0);
    CHECK(memcmp(a->codes.scales, b->codes.scales, rows * sizeof *a->codes.scales) == 0);
    CHECK(memcmp(a->codes.errors, b->codes.errors, rows * sizeof *a->codes.errors) == 0);
}

static void same_query(const carag_query *a, const carag_query *b, size_t words)
{
    CHECK(memcmp(a->table, b->table, 256 * words) == 0);
    const float of_a[] = {a->lookup.step, a->lookup.shift, a->of_mean.near, a->of_mean.away};
    const float of_b[] = {b->lookup.step, b->lookup.shift, b->of_mean.near, b->of_mean.away};
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
            carag_scratch *a = sketched(first, vectors);
            carag_scratch *b = sketched(index, vectors);
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

/* Entry n of four coordinates is what their signs give when the bits of n are those; and the levels are used to the
 * ends. */
static void the_table_says_what_signs_give(void)
{
    for (uint32_t dim = 3; dim <= 64 * MOST_WORDS; dim += 100) {
        float *vectors = random_vectors(dim, 5, dim);
        carag_index *index = build(vectors, 5, dim);
        const size_t words = carag_bits_words(dim);
        for (size_t q = 0; q < 5; q++) {
            carag_scratch *scratch = sketched(index, vectors + q * dim);
            const carag_query *query = &scratch->query;
            int highest = 0;
            for (size_t i = 0; i < 64 * words; i += 4)
                for (size_t n = 0; n < 16; n++) {
                    double truth = 0.0;
                    for (size_t j = 0; j < 4; j++)
                        truth += (double)query->rotated[i + j] * (n >> j & 1 ? 1.0 : -1.0);
                    const int entry = query->table[4 * i + n];
                    const double shift = (double)query->lookup.shift / (double)(16 * words);
                    CHECK(entry <= 124 && fabs((double)query->lookup.step * entry + shift - truth) <=
                                              2.001 * (double)query->lookup.step);
                    CHECK(entry + query->table[4 * i + (15 - n)] == 124);
                    for (size_t j = 0; j < 4; j++) {
                        const int value = (entry - query->table[4 * i + (n ^ (size_t)1 << j)] + 31) / 2;
                        highest = value > highest ? value : highest;
                    }
                }
            CHECK(highest == 31);
            carag_scratch_give(index, scratch);
        }
        carag_index_free(index);
        free(vectors);
    }
}

/* Added at once, in pieces, and consolidated: where the cells are the same, so are the packs. A pack's lanes that are no
 * row's are empty. */
static void packs_do_not_depend_on_how_rows_came(void)
{
    enum { D = 20 };
    float *vectors = random_vectors(3, MANY, D);
    uint32_t *given = random_words(1, MANY, 0);
    for (size_t begun = 1000; begun <= MANY; begun += 37) {
        carag_index *index = new_index(D, 2, 1);
        const carag_rows first = rows_of(vectors, given, 999);
        CHECK_OK(carag_index_add(index, &first, NULL, NULL));
        for (size_t at = 999; at < begun; at++) {
            const carag_rows one = rows_of(vectors + at * D, given + at, 1);
            CHECK_OK(carag_index_add(index, &one, NULL, NULL));
        }
        carag_view *view = atomic_load(&index->view);
        const size_t bytes = carag_packs((uint32_t)begun) * carag_pack_bytes(8 * view->bits.words);
        uint8_t *before = room_for(bytes, 1);
        CHECK(view->cells && carag_index_check(index, NULL) == 0);
        memcpy(before, view->bits.packs, bytes);
        const carag_bits grown = view->bits;
        carag_view again = *view; /* all of them made again, about the same cells and mean */
        CHECK_OK(carag_view_new_bits(index, &again));
        memcpy(again.bits.centre, grown.centre, 64 * grown.words * sizeof(float));
        CHECK_OK(carag_bits_encode(index, &again, 1, (uint32_t)begun, 2));
        CHECK_OK(carag_bits_encode(index, &again, 1, (uint32_t)begun, 1)); /* and twice is once */
        const size_t size = 8 * grown.words; /* position 0 was left out */
        for (size_t i = 0; i < bytes; i++) {
            const size_t at = i % carag_pack_bytes(size);
            const bool is_first = i < carag_pack_bytes(size) &&
                                  (at < CARAG_PACK * size ? at % CARAG_PACK == 0 : at / 2 % CARAG_PACK == 0);
            CHECK(is_first || again.bits.packs[i] == before[i]);
        }
        carag_release_aligned(again.bits.packs);
        carag_release_aligned(again.bits.centre);
        carag_release_aligned(again.bits.signs);
        carag_index_free(index);
        free(before);
    }
    free(vectors);
    free(given);
}

/* ---------------------------------------------------------------- estimates */

/* The upper estimates of all rows, the given number of deviations up. */
static void estimate(carag_index *index, const float *query, float confidence, uint32_t rows, float *out_upper)
{
    const carag_view *view = atomic_load(&index->view);
    const carag_cells *cells = view->cells;
    carag_scratch *scratch = sketched(index, query);
    uint32_t cell = 0;
    for (uint32_t at = 0; at < rows;) {
        while (cells && cell < cells->count && cells->cells[cell].end <= at)
            cell++;
        const bool is_listed = cells && cell < cells->count;
        const carag_sight centre = is_listed ? carag_sight_of(cells, scratch, cell) : scratch->query.of_mean;
        uint32_t room[CARAG_PACK];
        float uppers[CARAG_PACK];
        const carag_span span = carag_span_at(view, at, is_listed ? cells->cells[cell].end : rows, room);
        const carag_pack_sight sight = carag_sight_of_pack(centre, confidence);
        const uint32_t kept = carag_span_estimate(&span, carag_span_lanes(&span), &view->bits, &scratch->query, &sight,
                                                  -INFINITY, uppers);
        CHECK((uint32_t)__builtin_popcount(kept) == span.count && (uint32_t)__builtin_ctz(kept) == span.first);
        for (uint32_t i = 0; i < span.count; i++)
            out_upper[span.rows[i]] = uppers[span.first + i];
        at += span.count;
    }
    carag_scratch_give(index, scratch);
}

/* Over all rows and many queries (one errs the same way for many rows), the error in stated deviations has a
 * mean near 0 and a spread near 1; and an upper estimate of two deviations is too low about as seldom as a
 * normal error's. */
static void the_estimate_is_unbiased(uint32_t dim, float common, uint32_t rows)
{
    enum { QUERIES = 250 };
    const uint32_t N = rows;
    float *vectors = random_vectors(dim, N, dim);
    float *queries = random_vectors(dim + 1, QUERIES, dim);
    for (size_t i = 0; i < (size_t)N * dim; i++) /* a part that all share, as text embeddings do */
        vectors[i] += common * (i % dim % 3 == 0 ? 1.0F : -0.5F);
    for (size_t i = 0; i < QUERIES * (size_t)dim; i++)
        queries[i] += common * (i % dim % 3 == 0 ? 1.0F : -0.5F);
    carag_index *index = build(vectors, N, dim);
    const carag_view *view = atomic_load(&index->view);
    CHECK((rows == MANY) == (view->cells != NULL));
    double sum = 0.0, squares = 0.0, missed = 0.0;
    for (size_t q = 0; q < QUERIES; q++) {
        float mean[MANY], upper[MANY], unit[MOST_DIM], kept[MOST_DIM];
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

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    the_rotation_is_orthonormal();
    the_rotation_spreads();
    every_kernel_makes_the_same_codes();
    the_table_says_what_signs_give();
    packs_do_not_depend_on_how_rows_came();
    const uint32_t dims[] = {48, 64, 100, 128, 384, 1000, 1024};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        the_estimate_is_unbiased(dims[i], 0.0F, ROWS);
        the_estimate_is_unbiased(dims[i], 1.0F, ROWS);
    }
    the_estimate_is_unbiased(64, 1.0F, MANY);
    the_estimate_is_unbiased(128, 1.0F, MANY);
    return 0;
}
