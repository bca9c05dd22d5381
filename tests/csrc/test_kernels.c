/* test_kernels.c - every kernel gives the bits of the reference, the reference the true value, and none reads
 * or writes further than its contract says: every array here ends where its page ends, and what follows is
 * closed.
 */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "kernel/kernel.h"
#include "policy.h"

#define COUNT 70 /* the most rows a kernel is asked for at once */
#define ROWS 97  /* the rows there are */
#define WIDE 1088
#define CODES ((WIDE + 64) * ROWS)

/* An array of `size` bytes that ends at the end of one of the rooms below: one byte further and the process
 * dies. */
enum room { A, B, C, D, E, F, ROOMS };
static unsigned char *ends[ROOMS];

static void open_rooms(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t size = (CODES + page - 1) / page * page;
    for (int room = 0; room < ROOMS; room++) {
        unsigned char *map =
            mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(map != MAP_FAILED);
        CHECK(mprotect(map + size, page, PROT_NONE) == 0);
        ends[room] = map + size;
    }
}

static void *at_end(enum room room, size_t size)
{
    CHECK(size <= CODES);
    return ends[room] - size;
}

static uint32_t below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)((draw(state) >> 32) % bound);
}

/* Row numbers below ROWS: a run, a run backwards, a run with one row out of place, or any; the last row among
 * them. */
static void draw_rows(uint64_t *state, uint32_t rows[COUNT])
{
    const uint32_t shape = below(state, 4);
    const uint32_t first = below(state, ROWS - COUNT + 1);
    for (uint32_t i = 0; i < COUNT; i++)
        rows[i] = shape == 0 ? below(state, ROWS) : shape == 1 ? first + COUNT - 1 - i : first + i;
    if (shape == 2)
        rows[below(state, COUNT)] = first;
    rows[below(state, COUNT)] = ROWS - 1;
}

static bool same(const void *a, const void *b, size_t size)
{
    return size == 0 || memcmp(a, b, size) == 0; /* rather than memcmp of nothing: its pointers may be ends */
}

static void copy(void *to, const void *from, size_t size)
{
    if (size)
        memcpy(to, from, size);
}

/* --- float --- */

static void dot_is_the_reference_and_near_the_truth(const carag_kernel *kernel)
{
    static const size_t more[] = {191, 192, 193, 383, 384, 1000, 1024, 1025};
    uint64_t state = 1;
    for (size_t e = 0; e <= 130 + sizeof more / sizeof *more; e++) {
        const size_t n = e <= 130 ? e : more[e - 131];
        float *a = at_end(A, n * sizeof *a); /* aligned to a float, and to more only by chance */
        float *b = at_end(B, n * sizeof *b);
        double truth = 0.0;
        double size = 0.0;
        for (size_t i = 0; i < n; i++) {
            a[i] = draw_float(&state);
            b[i] = draw_float(&state);
            truth += (double)a[i] * (double)b[i];
            size += fabs((double)a[i] * (double)b[i]);
        }
        const float reference = carag_kernel_serial.dot(a, b, n);
        const float dot = kernel->dot(a, b, n);
        CHECK(same(&reference, &dot, sizeof dot));
        CHECK(fabs((double)dot - truth) <= 1e-6 * size);
    }
}

static void dot_half_is_dot_of_the_widened(const carag_kernel *kernel)
{
    uint64_t state = 2;
    for (size_t n = 0; n <= 1090; n += n < 130 ? 1 : 64) {
        uint16_t *half = at_end(A, n * sizeof *half);
        float *a = at_end(B, n * sizeof *a);
        float *b = at_end(C, n * sizeof *b);
        const uint32_t coarse = below(&state, 2); /* subnormals and zeros alone, or anything finite */
        for (size_t i = 0; i < n; i++) {
            half[i] = (uint16_t)(below(&state, 2) << 15 | below(&state, coarse ? 0x7C00 : 0x0400));
            a[i] = carag_widen(half[i]);
            b[i] = draw_float(&state);
        }
        const float reference = carag_kernel_serial.dot(a, b, n);
        const float dot = kernel->dot_half(half, b, n);
        CHECK(same(&reference, &dot, sizeof dot));
    }
}

static void signed_zeros_and_denormals_agree(const carag_kernel *kernel)
{
    const float a[3] = {1e-30F, -0.0F, -1e-30F};
    const float b[3] = {-1e-30F, 5.0F, 1e-30F};
    for (size_t n = 1; n <= 3; n++) {
        const float reference = carag_kernel_serial.dot(a, b, n);
        const float dot = kernel->dot(a, b, n);
        CHECK(same(&reference, &dot, sizeof dot));
    }
}

/* Every half is its own nearest; between two neighbours the middle goes to the even, and a nudge decides. */
static void halves_round_to_nearest_even(void)
{
    for (uint32_t half = 0; half < 0x7C00; half++) {
        const float low = carag_widen((uint16_t)half);
        /* what is past the largest half rounds as if 65536 were one */
        const float high = half == 0x7BFF ? 65536.0F : carag_widen((uint16_t)(half + 1));
        const float middle = low + (high - low) / 2.0F;
        const uint16_t even = (uint16_t)(half + (half & 1));
        CHECK(low < high && carag_half(low) == half && carag_half(-low) == (half | 0x8000));
        CHECK(carag_half(middle) == even && carag_half(-middle) == (even | 0x8000));
        CHECK(carag_half(nextafterf(middle, low)) == half);
        CHECK(carag_half(nextafterf(middle, high)) == half + 1);
    }
    CHECK(carag_widen(0x0001) == 0x1p-24F && carag_widen(0x3C00) == 1.0F && carag_widen(0x7BFF) == 65504.0F);
    CHECK(carag_widen(0x7C00) == INFINITY && carag_widen(0xFC00) == -INFINITY);
    CHECK(carag_half(INFINITY) == 0x7C00 && carag_half(-INFINITY) == 0xFC00 && carag_half(1e30F) == 0x7C00);
    CHECK(carag_half(1e-40F) == 0 && carag_half(-0.0F) == 0x8000);
    for (uint32_t half = 0x7C01; half < 0x8000; half++)
        CHECK(isnan(carag_widen((uint16_t)half)) && (carag_half(carag_widen((uint16_t)half)) & 0x3FF));
}

/* --- byte codes --- */

enum extreme { ANY, HIGHEST, LOWEST, OPPOSED, EXTREMES }; /* what saturates where a kernel is careless */

static uint8_t draw_code(uint64_t *state, enum extreme extreme, size_t i)
{
    if (extreme == ANY)
        return (uint8_t)below(state, 256);
    return extreme == HIGHEST || (extreme == OPPOSED && i % 3 == 0) ? 255 : 0;
}

static int8_t draw_value(uint64_t *state, enum extreme extreme, size_t i)
{
    if (extreme == ANY)
        return (int8_t)((int32_t)below(state, 255) - 127);
    return extreme == OPPOSED && i % 3 ? -127 : 127;
}

static void dot8_is_exact(const carag_kernel *kernel)
{
    uint64_t state = 3;
    for (size_t n = 64; n <= WIDE; n += 64)
        for (enum extreme extreme = ANY; extreme < EXTREMES; extreme++) {
            const size_t stride = n + 64 * below(&state, 2);
            uint8_t *codes = at_end(A, ROWS * stride);
            int8_t *query = at_end(B, n);
            uint32_t any[COUNT];
            int32_t truth[COUNT];
            draw_rows(&state, any);
            for (size_t i = 0; i < ROWS * stride; i++)
                codes[i] = draw_code(&state, extreme, i % stride);
            for (size_t j = 0; j < n; j++)
                query[j] = draw_value(&state, extreme, j);
            for (size_t i = 0; i < COUNT; i++) {
                int64_t sum = 0;
                for (size_t j = 0; j < n; j++)
                    sum += ((int64_t)codes[any[i] * stride + j] - 128) * query[j];
                truth[i] = (int32_t)sum;
            }
            for (size_t count = extreme == ANY ? 0 : COUNT - 3; count <= COUNT; count++) {
                uint32_t *rows = at_end(C, count * sizeof *rows);
                int32_t *out = at_end(D, count * sizeof *out);
                copy(rows, any, count * sizeof *rows);
                kernel->dot8(codes, stride, rows, count, query, n, out);
                CHECK(same(out, truth, count * sizeof *out));
            }
        }
}

static void check_gram(const carag_kernel *kernel, uint64_t *state, enum extreme extreme, size_t dim,
                       size_t m, size_t n)
{
    const size_t stride = dim + 64 * below(state, 2);
    const size_t room = (kernel->gram8_workspace(m, n, dim) + 63) / 64 * 64;
    uint8_t *codes = at_end(A, ROWS * stride);
    uint32_t *a = at_end(B, m * sizeof *a);
    uint32_t *b = at_end(C, n * sizeof *b);
    int32_t *out = at_end(D, m * n * sizeof *out);
    uint32_t any[COUNT];
    for (size_t i = 0; i < ROWS * stride; i++)
        codes[i] = draw_code(state, extreme, i % stride);
    draw_rows(state, any);
    copy(a, any, m * sizeof *a);
    draw_rows(state, any);
    copy(b, any, n * sizeof *b);
    memset(out, 0x55, m * n * sizeof *out);
    kernel->gram8(codes, stride, a, m, b, n, dim, room ? at_end(E, room) : NULL, out);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            int64_t sum = 0;
            for (size_t k = 0; k < dim; k++)
                sum += ((int64_t)codes[a[i] * stride + k] - 128) * ((int64_t)codes[b[j] * stride + k] - 128);
            CHECK(out[i * n + j] == sum);
        }
}

static void gram8_is_exact(const carag_kernel *kernel)
{
    uint64_t state = 4;
    for (size_t m = 0; m <= 14; m++)
        for (size_t n = 0; n <= COUNT; n += n < 20 ? 1 : 5)
            check_gram(kernel, &state, ANY, 64, m, n);
    for (size_t dim = 64; dim <= WIDE; dim += 64)
        for (enum extreme extreme = ANY; extreme < EXTREMES; extreme++)
            check_gram(kernel, &state, extreme, dim, 7, 1 + below(&state, COUNT));
}

/* --- one-bit codes --- */

enum pack_kind { DRAWN, FULL_ENTRIES, FULL_CODES, PACK_KINDS };

/* A pack and a table, both at their ends. Entries and codes are drawn, or all as large as they may be. */
static void draw_pack(uint64_t *state, enum pack_kind kind, size_t size, uint8_t *pack, uint8_t *table)
{
    for (size_t i = 0; i < CARAG_PACK * size; i++)
        pack[i] = (uint8_t)(kind == FULL_CODES ? 255 : below(state, 256));
    for (size_t i = 0; i < 3 * CARAG_PACK; i++) { /* anything finite, subnormals and both zeros among them */
        const uint16_t half = (uint16_t)(below(state, 2) << 15 | below(state, below(state, 2) ? 0x7C00 : 0x0400));
        memcpy(pack + CARAG_PACK * size + 2 * i, &half, sizeof half);
    }
    for (size_t i = 0; i < 32 * size; i++)
        table[i] = (uint8_t)(kind == DRAWN ? below(state, 128) : 127);
}

/* What a lane must give, from the meaning of the layout. */
static float upper_of(const uint8_t *pack, size_t size, const carag_pack_query *lookup, size_t lane, float near, float away)
{
    int64_t sum = 0;
    for (size_t i = 0; i < 2 * size; i++)
        sum += lookup->table[16 * i + (pack[i / 2 * CARAG_PACK + lane] >> i % 2 * 4 & 15)];
    uint16_t halves[3];
    for (size_t part = 0; part < 3; part++)
        memcpy(&halves[part], pack + CARAG_PACK * size + 2 * (part * CARAG_PACK + lane), sizeof *halves);
    const volatile float scaled = lookup->step * (float)sum; /* volatile: rounded here and now */
    const volatile float t = scaled + lookup->shift;
    const volatile float moved = carag_widen(halves[0]) + near;
    const volatile float right = carag_widen(halves[1]) * t;
    const volatile float estimate = moved + right;
    const volatile float slack = carag_widen(halves[2]) * away;
    return estimate + slack;
}

/* In every lane; a floor that one of them reaches, and one a hair above it; and of the lanes asked for alone. */
static void estimate_is_the_reference_in_the_written_order(const carag_kernel *kernel)
{
    static const size_t sizes[] = {8, 16, 24, 48, 64, 128, 248, 256, 264, 512, 520, 1000, 1024};
    uint64_t state = 5;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (enum pack_kind kind = DRAWN; kind < PACK_KINDS; kind++)
            for (uint32_t round = 0; round < 8; round++) {
                uint8_t *pack = at_end(A, carag_pack_bytes(sizes[s]));
                uint8_t *table = at_end(B, 32 * sizes[s]);
                float *out = at_end(C, CARAG_PACK * sizeof *out);
                draw_pack(&state, kind, sizes[s], pack, table);
                const carag_pack_query lookup = {table, draw_float(&state) / 1000.0F, draw_float(&state)};
                carag_pack_sight *sight = at_end(D, sizeof *sight);
                float uppers[CARAG_PACK];
                for (size_t lane = 0; lane < CARAG_PACK; lane++) { /* each row about a centre of its own */
                    sight->near[lane] = draw_float(&state);
                    sight->away[lane] = draw_float(&state);
                }
                for (size_t lane = 0; lane < CARAG_PACK; lane++)
                    uppers[lane] = upper_of(pack, sizes[s], &lookup, lane, sight->near[lane], sight->away[lane]);
                const float some = uppers[below(&state, CARAG_PACK)];
                const float floors[] = {some, nextafterf(some, INFINITY), -INFINITY, INFINITY};
                const uint32_t wanted[] = {UINT32_MAX, (uint32_t)(draw(&state) >> 32), 1, 1U << 31};
                for (size_t f = 0; f < 4; f++) {
                    uint32_t expected = 0;
                    for (uint32_t lane = 0; lane < CARAG_PACK; lane++)
                        expected |= (uint32_t)(uppers[lane] >= floors[f]) << lane;
                    expected &= wanted[round % 4];
                    const uint32_t kept = kernel->estimate(pack, sizes[s], &lookup, wanted[round % 4], sight,
                                                           floors[f], out);
                    CHECK(kept == expected);
                    for (size_t lane = 0; lane < CARAG_PACK; lane++)
                        CHECK((wanted[round % 4] >> lane & 1) == 0 || same(&out[lane], &uppers[lane], sizeof *out));
                }
            }
}

/* --- words --- */

static void admit_is_the_policy(const carag_kernel *kernel)
{
    uint64_t state = 7;
    _Atomic(uint32_t) *words = at_end(A, ROWS * sizeof *words);
    for (size_t i = 0; i < ROWS; i++)
        words[i] = WORD(below(&state, 16)) | (below(&state, 8) == 0 ? CARAG_TOMBSTONE : 0);
    for (uint32_t pair_count = 0; pair_count <= CARAG_MAX_PAIRS; pair_count++)
        for (size_t count = 0; count <= COUNT; count++)
            for (int in_place = 0; in_place < 2; in_place++) {
                uint32_t any[COUNT];
                carag_predicate predicate = {.pair_count = pair_count};
                carag_pair *pairs = at_end(B, pair_count * sizeof *pairs);
                for (uint32_t p = 0; p < pair_count; p++) {
                    const uint32_t mask = below(&state, 16);
                    predicate.pairs[p] = (carag_pair){mask | CONTROL, WORD(below(&state, 16) & mask)};
                    if (below(&state, 16) == 0)
                        predicate.pairs[p] = (carag_pair){0, 0}; /* of which kernels know no wrong: any word meets it */
                }
                copy(pairs, predicate.pairs, pair_count * sizeof *pairs);
                draw_rows(&state, any);
                uint32_t *rows = at_end(C, count * sizeof *rows);
                uint32_t *out = in_place ? rows : at_end(D, count * sizeof *out);
                copy(rows, any, count * sizeof *rows);
                const uint32_t open =
                    count <= CARAG_PACK ? kernel->open(words, rows, count, pairs, pair_count) : 0;
                for (size_t i = 0; i < CARAG_PACK && count <= CARAG_PACK; i++)
                    CHECK((open >> i & 1) == (i < count && carag_word_passes(&predicate, words[any[i]])));
                const size_t kept = kernel->admit(words, rows, count, pairs, pair_count, out);
                size_t expected = 0;
                for (size_t i = 0; i < count; i++)
                    if (carag_word_passes(&predicate, words[any[i]])) {
                        CHECK(expected < kept && out[expected] == any[i]);
                        expected++;
                    }
                CHECK(kept == expected);
            }
}

/* Row numbers fill 32 bits, and the indices of a gather are signed. Pages of no row asked for are closed. */
static void admit_reaches_the_highest_row(const carag_kernel *kernel)
{
    const uint32_t highest = UINT32_MAX - 65;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t size = ((size_t)1 << 32) * sizeof(uint32_t);
    unsigned char *map = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(map != MAP_FAILED);
    _Atomic(uint32_t) *words = (void *)map;
    uint32_t rows[32];
    uint32_t out[32];
    for (uint32_t i = 0; i < 32; i++) {
        rows[i] = i < 16 ? i * (highest / 15) : highest - 31 + i;
        const size_t at = rows[i] * sizeof *words / page * page;
        CHECK(mprotect(map + at, page, PROT_READ | PROT_WRITE) == 0);
        words[rows[i]] = WORD(i % 2);
    }
    const carag_pair pair = {CONTROL | 1, WORD(1)};
    CHECK(kernel->open(words, rows, 32, &pair, 1) == 0xAAAAAAAA);
    CHECK(kernel->admit(words, rows, 32, &pair, 1, out) == 16);
    for (uint32_t i = 0; i < 16; i++)
        CHECK(out[i] == rows[2 * i + 1]);
    CHECK(munmap(map, size) == 0);
}

/* --- the choice --- */

static void a_name_that_cannot_be_honoured_is_an_error(void)
{
    const char *before;
    const char *after;
    CHECK_OK(carag_kernel_active(&before, NULL));
    CHECK(carag_set_kernel("sse9", NULL) == CARAG_BAD_KERNEL);
    for (size_t i = 0; i < carag_kernel_count(); i++)
        if (!carag_kernel_is_available(i))
            CHECK(carag_set_kernel(carag_kernel_name(i), NULL) == CARAG_BAD_KERNEL);
    CHECK_OK(carag_kernel_active(&after, NULL));
    CHECK(strcmp(before, after) == 0);
}

static const carag_kernel *kernel_named(const char *name)
{
    const carag_kernel *kernel;
    const float one[1] = {3.0F};
    float dot;
    CHECK_OK(carag_set_kernel(name, NULL));
    CHECK_OK(carag_kernel_resolve(&kernel, NULL));
    CHECK(kernel == carag_kernel_get() && strcmp(kernel->name, name) == 0);
    CHECK_OK(carag_dot(one, one, 1, &dot, NULL));
    CHECK(dot == 9.0F);
    return kernel;
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    open_rooms();
    halves_round_to_nearest_even();
    a_name_that_cannot_be_honoured_is_an_error();
    for (size_t i = 0; i < carag_kernel_count(); i++) {
        if (!carag_kernel_is_available(i)) {
            printf("%s: not run here\n", carag_kernel_name(i));
            continue;
        }
        const carag_kernel *kernel = kernel_named(carag_kernel_name(i));
        dot_is_the_reference_and_near_the_truth(kernel);
        dot_half_is_dot_of_the_widened(kernel);
        signed_zeros_and_denormals_agree(kernel);
        dot8_is_exact(kernel);
        gram8_is_exact(kernel);
        estimate_is_the_reference_in_the_written_order(kernel);
        admit_is_the_policy(kernel);
        admit_reaches_the_highest_row(kernel);
        printf("%s: ok\n", kernel->name);
    }
    return 0;
}
