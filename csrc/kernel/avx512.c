/* kernel/avx512.c - four registers of sixteen lanes, masked tails. Entered only after CPUID has shown the sets.
 *
 * Byte codes go through VPDPBUSD, four unsigned-by-signed products added into each 32-bit lane without
 * saturation. Several rows share one fold of lanes into sums: a fold by itself costs as much as 256
 * dimensions.
 */
#include "kernel/kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define SETS "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,popcnt"
#define AVX512 __attribute__((target(SETS)))
#define UNROLLED __attribute__((always_inline)) inline /* called with constants, and copied for each */

#define DOT8_ROWS 4 /* rows multiplied side by side */
#define DOT8_AHEAD 8 /* rows whose codes are fetched in advance */
#define CHUNK 256 /* bytes of a one-bit code whose entries, at most 254 a byte, are summed in 16 bits */
#define TILE_ROWS 4 /* gram8: 4 rows by 4 registers of columns */
#define TILE_VECTORS 4 /* registers of columns in a tile of gram8 */
#define PANEL (16 * TILE_VECTORS) /* columns that gram8 multiplies at a time */

/* The lowest `left` bits, at most sixteen. */
AVX512 static inline __mmask16 low_mask(size_t left)
{
    return (__mmask16)(left >= 16 ? 0xFFFFU : (1U << left) - 1U);
}

AVX512 static inline float fold(const __m512 lanes[4])
{
    const __m512 sum = _mm512_add_ps(_mm512_add_ps(lanes[0], lanes[2]), _mm512_add_ps(lanes[1], lanes[3]));
    const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sum), 1));
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(sum), high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

AVX512 static float dot_avx512(const float *a, const float *b, size_t n)
{
    __m512 lanes[4];
    for (int r = 0; r < 4; r++)
        lanes[r] = _mm512_setzero_ps();
    size_t i = 0;
    for (; i + CARAG_LANES <= n; i += CARAG_LANES)
        for (int r = 0; r < 4; r++) {
            const __m512 x = _mm512_loadu_ps(a + i + 16 * r);
            lanes[r] = _mm512_fmadd_ps(x, _mm512_loadu_ps(b + i + 16 * r), lanes[r]);
        }
    if (i < n)
        for (size_t r = 0; r < 4; r++) {
            const __mmask16 mask = low_mask(n - i > 16 * r ? n - i - 16 * r : 0);
            const __m512 x = _mm512_maskz_loadu_ps(mask, a + i + 16 * r);
            const __m512 y = _mm512_maskz_loadu_ps(mask, b + i + 16 * r);
            lanes[r] = _mm512_fmadd_ps(x, y, lanes[r]);
        }
    return fold(lanes);
}

AVX512 static float dot_half_avx512(const uint16_t *half, const float *b, size_t n)
{
    __m512 lanes[4];
    for (int r = 0; r < 4; r++)
        lanes[r] = _mm512_setzero_ps();
    size_t i = 0;
    for (; i + CARAG_LANES <= n; i += CARAG_LANES)
        for (int r = 0; r < 4; r++) {
            const __m512 x = _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(half + i + 16 * r)));
            lanes[r] = _mm512_fmadd_ps(x, _mm512_loadu_ps(b + i + 16 * r), lanes[r]);
        }
    if (i < n)
        for (size_t r = 0; r < 4; r++) {
            const __mmask16 mask = low_mask(n - i > 16 * r ? n - i - 16 * r : 0);
            const __m512 x = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, half + i + 16 * r));
            lanes[r] = _mm512_fmadd_ps(x, _mm512_maskz_loadu_ps(mask, b + i + 16 * r), lanes[r]);
        }
    return fold(lanes);
}

/* Start fetching `size` bytes of each of the first rows, for which no earlier row did. */
static inline void fetch_first(const void *codes, size_t stride, const uint32_t *rows, size_t count,
                               size_t size)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < size; j += 64)
            __builtin_prefetch((const char *)codes + rows[i] * stride + j);
}

/* One step of a fold: in every 128 bits, the neighbouring lanes of a added, then those of b. */
AVX512 static inline __m512i add_pairs32(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

AVX512 static inline __m512i add_pairs64(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/* Lane r of the result: the sum of the sixteen lanes of sums[r]. */
AVX512 static inline __m128i fold_four(const __m512i sums[4])
{
    const __m512i four = add_pairs64(add_pairs32(sums[0], sums[1]), add_pairs32(sums[2], sums[3]));
    const __m256i two = _mm256_add_epi32(_mm512_castsi512_si256(four), _mm512_extracti64x4_epi64(four, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
}

/* DOT8_ROWS rows from `start`, the lanes that take the bias away; meanwhile fetch the rows of `ahead`. */
AVX512 static inline __m128i dot8_four(const uint8_t *codes, size_t stride, const uint32_t *rows,
                                       const uint32_t *ahead, const int8_t *query, size_t n, __m512i start)
{
    const uint8_t *row[DOT8_ROWS];
    const uint8_t *next[DOT8_ROWS];
    __m512i sums[DOT8_ROWS];
    for (int r = 0; r < DOT8_ROWS; r++) {
        row[r] = codes + rows[r] * stride;
        next[r] = codes + ahead[r] * stride;
        sums[r] = start;
    }
    for (size_t j = 0; j < n; j += 64) {
        const __m512i q = _mm512_loadu_si512(query + j);
        for (int r = 0; r < DOT8_ROWS; r++) {
            __builtin_prefetch(next[r] + j);
            sums[r] = _mm512_dpbusd_epi32(sums[r], _mm512_loadu_si512(row[r] + j), q);
        }
    }
    return fold_four(sums);
}

AVX512 static void dot8_avx512(const uint8_t *codes, size_t stride, const uint32_t *rows, size_t count,
                               const int8_t *query, size_t n, int32_t *out)
{
    fetch_first(codes, stride, rows, count < DOT8_AHEAD ? count : DOT8_AHEAD, n);
    __m512i bias = _mm512_setzero_si512();
    for (size_t j = 0; j < n; j += 64)
        bias = _mm512_dpbusd_epi32(bias, _mm512_set1_epi8((char)128), _mm512_loadu_si512(query + j));
    const __m512i start = _mm512_sub_epi32(_mm512_setzero_si512(), bias);
    size_t i = 0;
    for (; i + DOT8_ROWS <= count; i += DOT8_ROWS) {
        const size_t ahead = i + DOT8_AHEAD + DOT8_ROWS <= count ? i + DOT8_AHEAD : i;
        const __m128i sums = dot8_four(codes, stride, rows + i, rows + ahead, query, n, start);
        _mm_storeu_si128((__m128i *)(void *)(out + i), sums);
    }
    if (i < count) {
        uint32_t last[DOT8_ROWS];
        for (size_t r = 0; r < DOT8_ROWS; r++)
            last[r] = rows[i + r < count ? i + r : count - 1];
        const __m128i sums = dot8_four(codes, stride, last, last, query, n, start);
        _mm_mask_storeu_epi32(out + i, (__mmask8)low_mask(count - i), sums);
    }
}

/* The words of sixteen rows: one load where the rows are a run, as they are in most scans. */
AVX512 static inline __m512i load_words(const _Atomic(uint32_t) *words, __m512i rows, __mmask16 mask)
{
    const __m512i iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const uint32_t first = (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(rows));
    const __m512i run = _mm512_add_epi32(_mm512_set1_epi32((int32_t)first), iota);
    if (_mm512_mask_cmpneq_epi32_mask(mask, rows, run) == 0)
        return _mm512_maskz_loadu_epi32(mask, (const void *)(words + first));
    /* A gather takes its indices as signed; rows do not. */
    const __m512i index = _mm512_xor_si512(rows, _mm512_set1_epi32(INT32_MIN));
    const void *middle = (const void *)((uintptr_t)words + ((uintptr_t)1 << 31) * sizeof *words);
    return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), mask, index, middle, 4);
}

/* Of the lanes of a mask, those whose word satisfies any pair. */
AVX512 static inline __mmask16 passing(__m512i word, __mmask16 mask, const carag_pair *pairs, size_t pair_count)
{
    __mmask16 keep = 0;
    for (size_t p = 0; p < pair_count; p++)
        keep |= _mm512_mask_cmpeq_epi32_mask(
            mask, _mm512_and_si512(word, _mm512_set1_epi32((int32_t)pairs[p].mask)),
            _mm512_set1_epi32((int32_t)pairs[p].value));
    return keep;
}

AVX512 static uint32_t open_avx512(const _Atomic(uint32_t) *words, const uint32_t *rows, size_t count,
                                   const carag_pair *pairs, size_t pair_count)
{
    uint32_t open = 0;
    for (size_t i = 0; i < count; i += 16) {
        const __mmask16 mask = low_mask(count - i);
        const __m512i row = _mm512_maskz_loadu_epi32(mask, rows + i);
        open |= (uint32_t)passing(load_words(words, row, mask), mask, pairs, pair_count) << i;
    }
    return open;
}

AVX512 static size_t admit_avx512(const _Atomic(uint32_t) *words, const uint32_t *rows, size_t count,
                                  const carag_pair *pairs, size_t pair_count, uint32_t *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i += 16) {
        const __mmask16 mask = low_mask(count - i);
        const __m512i row = _mm512_maskz_loadu_epi32(mask, rows + i);
        const __mmask16 keep = passing(load_words(words, row, mask), mask, pairs, pair_count);
        /* Compressed in a register: the compressing store is microcode on Zen 4. kept <= i, so what is
         * written past the rows kept has been read already. */
        _mm512_mask_storeu_epi32(out + kept, mask, _mm512_maskz_compress_epi32(keep, row));
        kept += (size_t)__builtin_popcount(keep);
    }
    return kept;
}

/* Add the sums of some bytes of each lane, an even number, to sums[r], those of lanes 16 r to 16 r + 15. Two bytes of
 * each lane at a time, in the halves of a register. Two entries fit a byte; bytes of odd lanes are summed by themselves,
 * and taken from the sum of both to leave those of even lanes. */
AVX512 static inline void sum_entries(const uint8_t *pack, size_t size, const uint8_t *table, __m512i sums[2])
{
    const __m512i nibble = _mm512_set1_epi8(15);
    __m512i both = _mm512_setzero_si512();
    __m512i odd = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (size_t g = 0; g < size; g += 2) {
        const __m512i code = _mm512_loadu_si512(pack + CARAG_PACK * g);
        const __m512i tables = _mm512_loadu_si512(table + 32 * g);
        const __m512i low = _mm512_and_si512(code, nibble);
        const __m512i high = _mm512_and_si512(_mm512_srli_epi16(code, 4), nibble);
        const __m512i of_low = _mm512_shuffle_i64x2(tables, tables, 0xA0); /* quarters 0, 0, 2, 2 */
        const __m512i of_high = _mm512_shuffle_i64x2(tables, tables, 0xF5); /* quarters 1, 1, 3, 3 */
        const __m512i entries =
            _mm512_add_epi8(_mm512_shuffle_epi8(of_low, low), _mm512_shuffle_epi8(of_high, high));
        both = _mm512_add_epi16(both, entries);
        odd = _mm512_add_epi16(odd, _mm512_srli_epi16(entries, 8));
    }
    const __m256i all = _mm256_add_epi16(_mm512_castsi512_si256(both), _mm512_extracti64x4_epi64(both, 1));
    const __m256i odds = _mm256_add_epi16(_mm512_castsi512_si256(odd), _mm512_extracti64x4_epi64(odd, 1));
    const __m256i evens = _mm256_sub_epi16(all, _mm256_slli_epi16(odds, 8));
    const __m256i low = _mm256_unpacklo_epi16(evens, odds); /* lanes 0 to 7, and 16 to 23 */
    const __m256i high = _mm256_unpackhi_epi16(evens, odds);
    sums[0] = _mm512_add_epi32(sums[0], _mm512_cvtepu16_epi32(_mm256_permute2x128_si256(low, high, 0x20)));
    sums[1] = _mm512_add_epi32(sums[1], _mm512_cvtepu16_epi32(_mm256_permute2x128_si256(low, high, 0x31)));
}

/* No fused operation here, and none made by the compiler: -ffp-contract=off. */
AVX512 static uint32_t estimate_avx512(const uint8_t *pack, size_t size, const carag_pack_query *lookup, uint32_t lanes,
                                       const carag_pack_sight *sight, float floor, float *out_upper)
{
    const uint8_t *halves = pack + CARAG_PACK * size;
    __m512i sums[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    uint32_t kept = 0;
    for (size_t g = 0; g < size; g += CHUNK)
        sum_entries(pack + CARAG_PACK * g, size - g < CHUNK ? size - g : CHUNK, lookup->table + 32 * g, sums);
    for (int r = 0; r < 2; r++) {
        const uint8_t *at = halves + 32 * r;
        const __m512 base = _mm512_cvtph_ps(_mm256_loadu_si256((const void *)at));
        const __m512 slope = _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(at + 2 * CARAG_PACK)));
        const __m512 error = _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(at + 4 * CARAG_PACK)));
        const __m512 scaled = _mm512_mul_ps(_mm512_set1_ps(lookup->step), _mm512_cvtepi32_ps(sums[r]));
        const __m512 t = _mm512_add_ps(scaled, _mm512_set1_ps(lookup->shift));
        const __m512 moved = _mm512_add_ps(base, _mm512_loadu_ps(sight->near + 16 * r));
        const __m512 estimate = _mm512_add_ps(moved, _mm512_mul_ps(slope, t));
        const __m512 upper = _mm512_add_ps(estimate, _mm512_mul_ps(error, _mm512_loadu_ps(sight->away + 16 * r)));
        _mm512_storeu_ps(out_upper + 16 * r, upper);
        kept |= (uint32_t)_mm512_cmp_ps_mask(upper, _mm512_set1_ps(floor), _CMP_GE_OQ) << (16 * r);
    }
    return kept & lanes;
}

AVX512 static inline __m128i load128(const void *from)
{
    return _mm_loadu_si128(from);
}

/* Sixteen columns of a panel: for every four k, one register with four signed bytes of each column, `step`
 * bytes apart; and the sums to start from, which take away the bias of the other side: -128 times the
 * column's sum. */
AVX512 static void pack_columns(const uint8_t *const column[16], size_t dim, size_t step, int8_t *out,
                                __m512i *out_start)
{
    const __m512i bias = _mm512_set1_epi8((char)128);
    __m512i start = _mm512_setzero_si512();
    for (size_t k = 0; k < dim; k += 16) {
        __m512i q[4];
        for (int i = 0; i < 4; i++) {
            q[i] = _mm512_castsi128_si512(load128(column[i] + k));
            q[i] = _mm512_inserti32x4(q[i], load128(column[4 + i] + k), 1);
            q[i] = _mm512_inserti32x4(q[i], load128(column[8 + i] + k), 2);
            q[i] = _mm512_inserti32x4(q[i], load128(column[12 + i] + k), 3);
        }
        const __m512i low01 = _mm512_unpacklo_epi32(q[0], q[1]);
        const __m512i low23 = _mm512_unpacklo_epi32(q[2], q[3]);
        const __m512i high01 = _mm512_unpackhi_epi32(q[0], q[1]);
        const __m512i high23 = _mm512_unpackhi_epi32(q[2], q[3]);
        const __m512i four[4] = {
            _mm512_unpacklo_epi64(low01, low23),
            _mm512_unpackhi_epi64(low01, low23),
            _mm512_unpacklo_epi64(high01, high23),
            _mm512_unpackhi_epi64(high01, high23),
        };
        for (size_t g = 0; g < 4; g++) {
            const __m512i bytes = _mm512_xor_si512(four[g], bias);
            start = _mm512_dpbusd_epi32(start, bias, bytes);
            _mm512_store_si512(out + (k / 4 + g) * step, bytes);
        }
    }
    _mm512_store_si512(out_start, _mm512_sub_epi32(_mm512_setzero_si512(), start));
}

static inline int32_t load_four(const uint8_t *from)
{
    int32_t four;
    memcpy(&four, from, sizeof four);
    return four;
}

/* One tile. Rows and columns are one loop of at most sixteen steps each time: gcc then unrolls it early
 * enough to keep the sums in registers, where two nested loops leave a store behind every multiplication. */
AVX512 static UNROLLED void gram_tile(const uint8_t *codes, size_t stride, const uint32_t *a, size_t height,
                                      const int8_t *panel, const __m512i *start, size_t vectors, size_t dim,
                                      __mmask16 last, int32_t *out, size_t n)
{
    const uint8_t *row[TILE_ROWS];
    __m512i sums[TILE_ROWS * TILE_VECTORS];
    for (size_t r = 0; r < height; r++)
        row[r] = codes + a[r] * stride;
    for (size_t t = 0; t < height * vectors; t++)
        sums[t] = start[t % vectors];
    for (size_t k = 0; k < dim; k += 4) {
        __m512i columns[TILE_VECTORS];
        __m512i fours[TILE_ROWS];
        for (size_t v = 0; v < vectors; v++)
            columns[v] = _mm512_load_si512(panel + 16 * (k * vectors + 4 * v));
        for (size_t r = 0; r < height; r++)
            fours[r] = _mm512_set1_epi32(load_four(row[r] + k));
        for (size_t t = 0; t < height * vectors; t++)
            sums[t] = _mm512_dpbusd_epi32(sums[t], fours[t / vectors], columns[t % vectors]);
    }
    for (size_t t = 0; t < height * vectors; t++)
        _mm512_mask_storeu_epi32(out + t / vectors * n + 16 * (t % vectors),
                                 t % vectors + 1 < vectors ? 0xFFFF : last, sums[t]);
}

AVX512 static UNROLLED void gram_panel(const uint8_t *codes, size_t stride, const uint32_t *a, size_t m,
                                       const int8_t *panel, const __m512i *start, size_t vectors, size_t dim,
                                       __mmask16 last, int32_t *out, size_t n)
{
    size_t i = 0;
    for (; i + TILE_ROWS <= m; i += TILE_ROWS)
        gram_tile(codes, stride, a + i, TILE_ROWS, panel, start, vectors, dim, last, out + i * n, n);
    for (; i < m; i++)
        gram_tile(codes, stride, a + i, 1, panel, start, vectors, dim, last, out + i * n, n);
}

AVX512 static void gram8_avx512(const uint8_t *codes, size_t stride, const uint32_t *a, size_t m,
                                const uint32_t *b, size_t n, size_t dim, void *workspace, int32_t *out)
{
    __m512i *start = workspace;
    int8_t *panel = (int8_t *)(start + TILE_VECTORS);
    for (size_t j = 0; j < n; j += PANEL) {
        const size_t width = n - j < PANEL ? n - j : PANEL;
        const size_t vectors = (width + 15) / 16;
        const __mmask16 last = low_mask(width - 16 * (vectors - 1));
        for (size_t v = 0; v < vectors; v++) {
            const uint8_t *column[16];
            for (size_t c = 0; c < 16; c++) /* the last column stands in for those that are not there */
                column[c] = codes + b[j + (16 * v + c < width ? 16 * v + c : width - 1)] * stride;
            pack_columns(column, dim, 64 * vectors, panel + 64 * v, start + v);
        }
        if (vectors == 4)
            gram_panel(codes, stride, a, m, panel, start, 4, dim, last, out + j, n);
        else if (vectors == 3)
            gram_panel(codes, stride, a, m, panel, start, 3, dim, last, out + j, n);
        else if (vectors == 2)
            gram_panel(codes, stride, a, m, panel, start, 2, dim, last, out + j, n);
        else
            gram_panel(codes, stride, a, m, panel, start, 1, dim, last, out + j, n);
    }
}

AVX512 static size_t gram8_workspace_avx512(size_t m, size_t n, size_t dim)
{
    (void)m;
    (void)n;
    return TILE_VECTORS * sizeof(__m512i) + PANEL * dim;
}

const carag_kernel carag_kernel_avx512 = {
    .name = "avx512",
    .dot = dot_avx512,
    .dot_half = dot_half_avx512,
    .dot8 = dot8_avx512,
    .admit = CARAG_UNLESS_TRACED(admit_avx512, carag_admit_serial),
    .open = CARAG_UNLESS_TRACED(open_avx512, carag_open_serial),
    .estimate = CARAG_UNLESS_TRACED(estimate_avx512, carag_estimate_serial),
    .gram8 = gram8_avx512,
    .gram8_workspace = gram8_workspace_avx512,
};

#else

const carag_kernel carag_kernel_avx512 = {.name = "avx512"};

#endif
