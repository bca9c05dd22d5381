/* kernel/avx2.c - eight registers of eight lanes. Entered only after CPUID has shown AVX2, FMA, F16C and
 * POPCNT.
 *
 * Byte codes are widened to 16 bits before they are multiplied: VPMADDUBSW would add two products of 255 *
 * 127 into a signed 16-bit lane, and saturate.
 */
#include "kernel/kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2,fma,f16c,popcnt")))
#define UNROLLED __attribute__((always_inline)) inline /* called with constants, and copied for each */

#define DOT8_AHEAD 8 /* rows whose codes are fetched in advance */
#define CHUNK 256 /* bytes of a one-bit code whose entries, at most 254 a byte, are summed in 16 bits */
#define TILE_ROWS 4 /* gram8: 4 rows by 2 registers of columns */
#define PANEL 16 /* columns that gram8 multiplies at a time */

AVX2 static inline __m128i load128(const void *from)
{
    return _mm_loadu_si128(from);
}

AVX2 static inline __m256i load256(const void *from)
{
    return _mm256_loadu_si256(from);
}

AVX2 static inline void add_block(__m256 lanes[8], const float *a, const float *b)
{
    for (int r = 0; r < 8; r++)
        lanes[r] = _mm256_fmadd_ps(_mm256_loadu_ps(a + 8 * r), _mm256_loadu_ps(b + 8 * r), lanes[r]);
}

AVX2 static inline void add_half_block(__m256 lanes[8], const uint16_t *half, const float *b)
{
    for (int r = 0; r < 8; r++) {
        const __m256 x = _mm256_cvtph_ps(load128(half + 8 * r));
        lanes[r] = _mm256_fmadd_ps(x, _mm256_loadu_ps(b + 8 * r), lanes[r]);
    }
}

AVX2 static inline float fold(__m256 lanes[8])
{
    for (int half = 4; half > 0; half /= 2)
        for (int r = 0; r < half; r++)
            lanes[r] = _mm256_add_ps(lanes[r], lanes[r + half]);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes[0]), _mm256_extractf128_ps(lanes[0], 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

AVX2 static float dot_avx2(const float *a, const float *b, size_t n)
{
    __m256 lanes[8];
    for (int r = 0; r < 8; r++)
        lanes[r] = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + CARAG_LANES <= n; i += CARAG_LANES)
        add_block(lanes, a + i, b + i);
    if (i < n) {
        float x[CARAG_LANES] = {0};
        float y[CARAG_LANES] = {0};
        memcpy(x, a + i, (n - i) * sizeof *x);
        memcpy(y, b + i, (n - i) * sizeof *y);
        add_block(lanes, x, y);
    }
    return fold(lanes);
}

AVX2 static float dot_half_avx2(const uint16_t *half, const float *b, size_t n)
{
    __m256 lanes[8];
    for (int r = 0; r < 8; r++)
        lanes[r] = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + CARAG_LANES <= n; i += CARAG_LANES)
        add_half_block(lanes, half + i, b + i);
    if (i < n) {
        uint16_t x[CARAG_LANES] = {0};
        float y[CARAG_LANES] = {0};
        memcpy(x, half + i, (n - i) * sizeof *x);
        memcpy(y, b + i, (n - i) * sizeof *y);
        add_half_block(lanes, x, y);
    }
    return fold(lanes);
}

/* Lane r of the result: the sum of the eight lanes of sums[r]. */
AVX2 static inline __m128i fold_four(const __m256i sums[4])
{
    const __m256i ab = _mm256_hadd_epi32(sums[0], sums[1]);
    const __m256i cd = _mm256_hadd_epi32(sums[2], sums[3]);
    const __m256i four = _mm256_hadd_epi32(ab, cd);
    return _mm_add_epi32(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
}

/* Four rows from `start`, the lanes that take the bias away; meanwhile fetch the rows of `ahead`. */
AVX2 static inline __m128i dot8_four(const uint8_t *codes, size_t stride, const uint32_t *rows,
                                     const uint32_t *ahead, const int8_t *query, size_t n, __m256i start)
{
    const uint8_t *row[4];
    const uint8_t *next[4];
    __m256i sums[4];
    for (int r = 0; r < 4; r++) {
        row[r] = codes + rows[r] * stride;
        next[r] = codes + ahead[r] * stride;
        sums[r] = start;
    }
    for (size_t j = 0; j < n; j += 64) {
        for (int r = 0; r < 4; r++)
            __builtin_prefetch(next[r] + j);
        for (size_t half = j; half < j + 64; half += 32) {
            const __m256i q = load256(query + half);
            const __m256i odd = _mm256_srai_epi16(q, 8);
            const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(q, 8), 8);
            for (int r = 0; r < 4; r++) {
                const __m256i code = load256(row[r] + half);
                const __m256i x = _mm256_madd_epi16(_mm256_srli_epi16(code, 8), odd);
                const __m256i y = _mm256_madd_epi16(_mm256_and_si256(code, _mm256_set1_epi16(255)), even);
                sums[r] = _mm256_add_epi32(sums[r], _mm256_add_epi32(x, y));
            }
        }
    }
    return fold_four(sums);
}

AVX2 static void dot8_avx2(const uint8_t *codes, size_t stride, const uint32_t *rows, size_t count,
                           const int8_t *query, size_t n, int32_t *out)
{
    for (size_t i = 0; i < count && i < DOT8_AHEAD; i++)
        for (size_t j = 0; j < n; j += 64)
            __builtin_prefetch(codes + rows[i] * stride + j);
    __m256i start = _mm256_setzero_si256();
    for (size_t j = 0; j < n; j += 16)
        start = _mm256_add_epi32(start, _mm256_madd_epi16(_mm256_set1_epi16(-128),
                                                          _mm256_cvtepi8_epi16(load128(query + j))));
    for (size_t i = 0; i < count; i += 4) {
        const size_t left = count - i;
        if (left >= 4) {
            const size_t ahead = left >= DOT8_AHEAD + 4 ? i + DOT8_AHEAD : i;
            const __m128i sums = dot8_four(codes, stride, rows + i, rows + ahead, query, n, start);
            _mm_storeu_si128((void *)(out + i), sums);
        } else { /* the last row stands in for those that are not there */
            uint32_t last[4];
            int32_t sums[4];
            for (size_t r = 0; r < 4; r++)
                last[r] = rows[i + (r < left ? r : left - 1)];
            _mm_storeu_si128((void *)sums, dot8_four(codes, stride, last, last, query, n, start));
            memcpy(out + i, sums, left * sizeof *out);
        }
    }
}

/* The shuffle that moves the lanes of a mask of four to the front, lane by lane four bytes; what follows them
 * is scratch. */
#define LANE(i) 4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3
#define PACK(a, b, c, d) {LANE(a), LANE(b), LANE(c), LANE(d)}
static const uint8_t pack_left[16][16] = {
    PACK(0, 1, 2, 3), PACK(0, 1, 2, 3), PACK(1, 0, 2, 3), PACK(0, 1, 2, 3),
    PACK(2, 0, 1, 3), PACK(0, 2, 1, 3), PACK(1, 2, 0, 3), PACK(0, 1, 2, 3),
    PACK(3, 0, 1, 2), PACK(0, 3, 1, 2), PACK(1, 3, 0, 2), PACK(0, 1, 3, 2),
    PACK(2, 3, 0, 1), PACK(0, 2, 3, 1), PACK(1, 2, 3, 0), PACK(0, 1, 2, 3),
};

/* Write the kept of four lanes, and scratch up to the fourth. */
AVX2 static inline void store_packed(void *out, __m128i lanes, unsigned keep)
{
    _mm_storeu_si128(out, _mm_shuffle_epi8(lanes, load128(pack_left[keep])));
}

/* The words of eight rows: one load where the rows are a run, as they are in most scans. */
AVX2 static inline __m256i load_words(const _Atomic(uint32_t) *words, __m256i rows)
{
    const uint32_t first = (uint32_t)_mm256_cvtsi256_si32(rows);
    const __m256i iota = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i run = _mm256_add_epi32(_mm256_set1_epi32((int32_t)first), iota);
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(rows, run)) == -1)
        return load256((const void *)(words + first));
    /* A gather takes its indices as signed; rows do not. */
    const __m256i index = _mm256_xor_si256(rows, _mm256_set1_epi32(INT32_MIN));
    const void *middle = (const void *)((uintptr_t)words + ((uintptr_t)1 << 31) * sizeof *words);
    return _mm256_i32gather_epi32(middle, index, 4);
}

/* The lanes whose word satisfies any pair. */
AVX2 static inline unsigned passing(__m256i word, const carag_pair *pairs, size_t pair_count)
{
    __m256i pass = _mm256_setzero_si256();
    for (size_t p = 0; p < pair_count; p++) {
        const __m256i mask = _mm256_set1_epi32((int32_t)pairs[p].mask);
        const __m256i value = _mm256_set1_epi32((int32_t)pairs[p].value);
        pass = _mm256_or_si256(pass, _mm256_cmpeq_epi32(_mm256_and_si256(word, mask), value));
    }
    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(pass));
}

AVX2 static uint32_t open_avx2(const _Atomic(uint32_t) *words, const uint32_t *rows, size_t count,
                               const carag_pair *pairs, size_t pair_count)
{
    uint32_t open = 0;
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        open |= passing(load_words(words, load256(rows + i)), pairs, pair_count) << i;
    if (i < count)
        open |= carag_open_serial(words, rows + i, count - i, pairs, pair_count) << i;
    return open;
}

AVX2 static size_t admit_avx2(const _Atomic(uint32_t) *words, const uint32_t *rows, size_t count,
                              const carag_pair *pairs, size_t pair_count, uint32_t *out)
{
    size_t kept = 0;
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256i row = load256(rows + i);
        /* kept <= i, so the scratch written past the rows kept has been read already */
        const unsigned keep = passing(load_words(words, row), pairs, pair_count);
        store_packed(out + kept, _mm256_castsi256_si128(row), keep & 15);
        kept += (size_t)__builtin_popcount(keep & 15);
        store_packed(out + kept, _mm256_extracti128_si256(row, 1), keep >> 4);
        kept += (size_t)__builtin_popcount(keep >> 4);
    }
    return kept + carag_admit_serial(words, rows + i, count - i, pairs, pair_count, out + kept);
}

/* Sixteen entries in both halves of a register. */
AVX2 static inline __m256i load_table(const uint8_t *from)
{
    return _mm256_broadcastsi128_si256(load128(from));
}

/* Add the sums of some bytes of each lane to sums[r], those of lanes 8 r to 8 r + 7. Two entries fit a byte; bytes of odd
 * lanes are summed by themselves, and taken from the sum of both to leave those of even lanes. */
AVX2 static inline void sum_entries(const uint8_t *pack, size_t size, const uint8_t *table, __m256i sums[4])
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i both = _mm256_setzero_si256();
    __m256i odd = _mm256_setzero_si256();
    for (size_t g = 0; g < size; g++) {
        const __m256i code = load256(pack + CARAG_PACK * g);
        const __m256i low = _mm256_and_si256(code, nibble);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(code, 4), nibble);
        const __m256i entries = _mm256_add_epi8(_mm256_shuffle_epi8(load_table(table + 32 * g), low),
                                                _mm256_shuffle_epi8(load_table(table + 32 * g + 16), high));
        both = _mm256_add_epi16(both, entries);
        odd = _mm256_add_epi16(odd, _mm256_srli_epi16(entries, 8));
    }
    const __m256i even = _mm256_sub_epi16(both, _mm256_slli_epi16(odd, 8));
    const __m256i low = _mm256_unpacklo_epi16(even, odd); /* lanes 0 to 7, and 16 to 23 */
    const __m256i high = _mm256_unpackhi_epi16(even, odd);
    sums[0] = _mm256_add_epi32(sums[0], _mm256_cvtepu16_epi32(_mm256_castsi256_si128(low)));
    sums[1] = _mm256_add_epi32(sums[1], _mm256_cvtepu16_epi32(_mm256_castsi256_si128(high)));
    sums[2] = _mm256_add_epi32(sums[2], _mm256_cvtepu16_epi32(_mm256_extracti128_si256(low, 1)));
    sums[3] = _mm256_add_epi32(sums[3], _mm256_cvtepu16_epi32(_mm256_extracti128_si256(high, 1)));
}

/* No fused operation here, and none made by the compiler: -ffp-contract=off. */
AVX2 static uint32_t estimate_avx2(const uint8_t *pack, size_t size, const carag_pack_query *lookup, uint32_t lanes,
                                   const carag_pack_sight *sight, float floor, float *out_upper)
{
    const uint8_t *halves = pack + CARAG_PACK * size;
    __m256i sums[4];
    uint32_t kept = 0;
    for (int r = 0; r < 4; r++)
        sums[r] = _mm256_setzero_si256();
    for (size_t g = 0; g < size; g += CHUNK)
        sum_entries(pack + CARAG_PACK * g, size - g < CHUNK ? size - g : CHUNK, lookup->table + 32 * g, sums);
    for (int r = 0; r < 4; r++) {
        const __m256 base = _mm256_cvtph_ps(load128(halves + 16 * r));
        const __m256 slope = _mm256_cvtph_ps(load128(halves + 16 * r + 2 * CARAG_PACK));
        const __m256 error = _mm256_cvtph_ps(load128(halves + 16 * r + 4 * CARAG_PACK));
        const __m256 scaled = _mm256_mul_ps(_mm256_set1_ps(lookup->step), _mm256_cvtepi32_ps(sums[r]));
        const __m256 t = _mm256_add_ps(scaled, _mm256_set1_ps(lookup->shift));
        const __m256 moved = _mm256_add_ps(base, _mm256_loadu_ps(sight->near + 8 * r));
        const __m256 estimate = _mm256_add_ps(moved, _mm256_mul_ps(slope, t));
        const __m256 upper = _mm256_add_ps(estimate, _mm256_mul_ps(error, _mm256_loadu_ps(sight->away + 8 * r)));
        const __m256 pass = _mm256_cmp_ps(upper, _mm256_set1_ps(floor), _CMP_GE_OQ);
        _mm256_storeu_ps(out_upper + 8 * r, upper);
        kept |= (uint32_t)_mm256_movemask_ps(pass) << (8 * r);
    }
    return kept & lanes;
}

static inline int32_t load_pair(const int16_t *from)
{
    int32_t pair;
    memcpy(&pair, from, sizeof pair);
    return pair;
}

/* A row less its bias, in 16 bits: pairs of products then add up without a correction. */
AVX2 static void widen_row(const uint8_t *row, size_t dim, int16_t *out)
{
    for (size_t k = 0; k < dim; k += 16) {
        const __m256i wide = _mm256_sub_epi16(_mm256_cvtepu8_epi16(load128(row + k)), _mm256_set1_epi16(128));
        _mm256_storeu_si256((void *)(out + k), wide);
    }
}

/* A panel: for every two k, two of each column, sixteen columns side by side. The last column stands in
 * for those past `width`, whose sums are not stored. */
AVX2 static void pack_panel(const uint8_t *codes, size_t stride, const uint32_t *b, size_t width, size_t dim,
                            int16_t *panel)
{
    for (size_t k = 0; k < dim; k += 16)
        for (size_t c = 0; c < PANEL; c++) {
            int16_t wide[16];
            widen_row(codes + b[c < width ? c : width - 1] * stride + k, 16, wide);
            for (size_t pair = 0; pair < 8; pair++)
                memcpy(panel + PANEL * (k + 2 * pair) + 2 * c, wide + 2 * pair, 2 * sizeof *wide);
        }
}

/* Rows and columns are one loop of at most sixteen steps each time: gcc then unrolls it early enough to keep
 * the sums in registers, where two nested loops leave a store behind every multiplication. */
AVX2 static UNROLLED void gram_tile(const int16_t *tile, size_t height, const int16_t *panel, size_t width,
                                    size_t dim, int32_t *out, size_t n)
{
    __m256i sums[2 * TILE_ROWS];
    for (size_t t = 0; t < 2 * height; t++)
        sums[t] = _mm256_setzero_si256();
    for (size_t k = 0; k < dim; k += 2) {
        const __m256i columns[2] = {load256(panel + PANEL * k), load256(panel + PANEL * k + 16)};
        __m256i pairs[TILE_ROWS];
        for (size_t r = 0; r < height; r++)
            pairs[r] = _mm256_set1_epi32(load_pair(tile + r * dim + k));
        for (size_t t = 0; t < 2 * height; t++)
            sums[t] = _mm256_add_epi32(sums[t], _mm256_madd_epi16(pairs[t / 2], columns[t % 2]));
    }
    for (size_t r = 0; r < height; r++) {
        int32_t row[PANEL];
        _mm256_storeu_si256((void *)row, sums[2 * r]);
        _mm256_storeu_si256((void *)(row + 8), sums[2 * r + 1]);
        memcpy(out + r * n, row, width * sizeof *row);
    }
}

AVX2 static void gram8_avx2(const uint8_t *codes, size_t stride, const uint32_t *a, size_t m,
                            const uint32_t *b, size_t n, size_t dim, void *workspace, int32_t *out)
{
    int16_t *tile = workspace;
    int16_t *panel = tile + TILE_ROWS * dim;
    for (size_t j = 0; j < n; j += PANEL) {
        const size_t width = n - j < PANEL ? n - j : PANEL;
        pack_panel(codes, stride, b + j, width, dim, panel);
        for (size_t i = 0; i < m; i += TILE_ROWS) {
            const size_t height = m - i < TILE_ROWS ? m - i : TILE_ROWS;
            for (size_t r = 0; r < height; r++)
                widen_row(codes + a[i + r] * stride, dim, tile + r * dim);
            if (height == TILE_ROWS)
                gram_tile(tile, TILE_ROWS, panel, width, dim, out + i * n + j, n);
            else
                for (size_t r = 0; r < height; r++)
                    gram_tile(tile + r * dim, 1, panel, width, dim, out + (i + r) * n + j, n);
        }
    }
}

AVX2 static size_t gram8_workspace_avx2(size_t m, size_t n, size_t dim)
{
    (void)m;
    (void)n;
    return (TILE_ROWS + PANEL) * dim * sizeof(int16_t);
}

const carag_kernel carag_kernel_avx2 = {
    .name = "avx2",
    .dot = dot_avx2,
    .dot_half = dot_half_avx2,
    .dot8 = dot8_avx2,
    .admit = CARAG_UNLESS_TRACED(admit_avx2, carag_admit_serial),
    .open = CARAG_UNLESS_TRACED(open_avx2, carag_open_serial),
    .estimate = CARAG_UNLESS_TRACED(estimate_avx2, carag_estimate_serial),
    .gram8 = gram8_avx2,
    .gram8_workspace = gram8_workspace_avx2,
};

#else

const carag_kernel carag_kernel_avx2 = {.name = "avx2"};

#endif
