/* kernel/neon.c - sixteen registers of four lanes. Every AArch64 has them, so there is nothing to probe: the
 * dot product instructions of later revisions are not used. Nor is there a gather or a compressing move, so
 * rows are admitted by the serial loop.
 */
#include "kernel/kernel.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <string.h>

#define DOT8_AHEAD 8 /* rows whose codes are fetched in advance */
#define BITS_AHEAD 16 /* rows whose one-bit codes are fetched in advance */

static inline void add_block(float32x4_t lanes[16], const float *a, const float *b)
{
    for (int r = 0; r < 16; r++)
        lanes[r] = vfmaq_f32(lanes[r], vld1q_f32(a + 4 * r), vld1q_f32(b + 4 * r));
}

static inline void add_half_block(float32x4_t lanes[16], const uint16_t *half, const float *b)
{
    for (int r = 0; r < 16; r++) {
        const float32x4_t x = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(half + 4 * r)));
        lanes[r] = vfmaq_f32(lanes[r], x, vld1q_f32(b + 4 * r));
    }
}

static inline float fold(float32x4_t lanes[16])
{
    for (int half = 8; half > 0; half /= 2)
        for (int r = 0; r < half; r++)
            lanes[r] = vaddq_f32(lanes[r], lanes[r + half]);
    const float32x2_t two = vadd_f32(vget_low_f32(lanes[0]), vget_high_f32(lanes[0]));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

static float dot_neon(const float *a, const float *b, size_t n)
{
    float32x4_t lanes[16];
    for (int r = 0; r < 16; r++)
        lanes[r] = vdupq_n_f32(0.0F);
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

static float dot_half_neon(const uint16_t *half, const float *b, size_t n)
{
    float32x4_t lanes[16];
    for (int r = 0; r < 16; r++)
        lanes[r] = vdupq_n_f32(0.0F);
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

/* Four rows; meanwhile fetch those of `ahead`. Flipping the top bit of a code takes its bias away. Products
 * go to 32 bits by twos, so that a query of -128, which gram8 brings, cannot overflow on the way. */
static inline int32x4_t dot8_four(const uint8_t *codes, size_t stride, const uint32_t *rows,
                                  const uint32_t *ahead, const int8_t *query, size_t n)
{
    const uint8_t *row[4];
    const uint8_t *next[4];
    int32x4_t sums[4];
    for (int r = 0; r < 4; r++) {
        row[r] = codes + rows[r] * stride;
        next[r] = codes + ahead[r] * stride;
        sums[r] = vdupq_n_s32(0);
    }
    for (size_t j = 0; j < n; j += 16) {
        const int8x16_t q = vld1q_s8(query + j);
        for (int r = 0; r < 4; r++) {
            if (j % 64 == 0)
                __builtin_prefetch(next[r] + j);
            const int8x16_t x = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(row[r] + j), vdupq_n_u8(128)));
            sums[r] = vpadalq_s16(sums[r], vmull_s8(vget_low_s8(x), vget_low_s8(q)));
            sums[r] = vpadalq_s16(sums[r], vmull_high_s8(x, q));
        }
    }
    return vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3]));
}

static void dot8_neon(const uint8_t *codes, size_t stride, const uint32_t *rows, size_t count,
                      const int8_t *query, size_t n, int32_t *out)
{
    for (size_t i = 0; i < count && i < DOT8_AHEAD; i++)
        for (size_t j = 0; j < n; j += 64)
            __builtin_prefetch(codes + rows[i] * stride + j);
    for (size_t i = 0; i < count; i += 4) {
        const size_t left = count - i;
        if (left >= 4) {
            const size_t ahead = left >= DOT8_AHEAD + 4 ? i + DOT8_AHEAD : i;
            vst1q_s32(out + i, dot8_four(codes, stride, rows + i, rows + ahead, query, n));
        } else { /* the last row stands in for those that are not there */
            uint32_t last[4];
            int32_t sums[4];
            for (size_t r = 0; r < 4; r++)
                last[r] = rows[i + (r < left ? r : left - 1)];
            vst1q_s32(sums, dot8_four(codes, stride, last, last, query, n));
            memcpy(out + i, sums, left * sizeof *out);
        }
    }
}

/* Two words against the four planes: eight counts a byte, weighted, are at most 8 * (1 + 2 + 4 + 8) = 120. */
static inline uint8x16_t count_planes(uint8x16_t code, const uint64_t *planes, size_t words)
{
    uint8x16_t counts = vdupq_n_u8(0);
    for (size_t p = CARAG_QUERY_PLANES; p-- > 0;) {
        const uint8x16_t plane = vreinterpretq_u8_u64(vld1q_u64(planes + p * words));
        counts = vaddq_u8(vaddq_u8(counts, counts), vcntq_u8(vandq_u8(code, plane)));
    }
    return counts;
}

static void bits_neon(const uint64_t *codes, size_t words, const uint32_t *rows, size_t count,
                      const carag_bits_query *query, int32_t *out)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t *row = codes + rows[i] * words;
        const uint64_t *next = codes + rows[i + BITS_AHEAD < count ? i + BITS_AHEAD : i] * words;
        uint32x4_t sums = vdupq_n_u32(0);
        size_t w = 0;
        for (; w + 2 <= words; w += 2) {
            if (w % 8 == 0)
                __builtin_prefetch(next + w);
            const uint8x16_t code = vreinterpretq_u8_u64(vld1q_u64(row + w));
            sums = vpadalq_u16(sums, vpaddlq_u8(count_planes(code, query->planes + w, words)));
        }
        uint32_t sum = vaddvq_u32(sums);
        if (w < words)
            for (size_t p = 0; p < CARAG_QUERY_PLANES; p++)
                sum += (uint32_t)vaddv_u8(vcnt_u8(vcreate_u8(row[w] & query->planes[p * words + w]))) << p;
        out[i] = (int32_t)sum;
    }
}

/* The estimates of four rows at once. No fused operation here, and none made by the compiler:
 * -ffp-contract=off. */
static size_t screen_neon(const carag_bits_factor *factors, const uint32_t *rows, const int32_t *sums,
                          size_t count, float base, float a, float b, float c, float e, float floor,
                          uint32_t *out_rows, float *out_upper)
{
    size_t kept = 0;
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const float32x4_t f0 = vld1q_f32(&factors[rows[i]].offset);
        const float32x4_t f1 = vld1q_f32(&factors[rows[i + 1]].offset);
        const float32x4_t f2 = vld1q_f32(&factors[rows[i + 2]].offset);
        const float32x4_t f3 = vld1q_f32(&factors[rows[i + 3]].offset);
        const float32x4x2_t even = vzipq_f32(f0, f2); /* offsets and slopes; errors */
        const float32x4x2_t odd = vzipq_f32(f1, f3);
        const float32x4_t offset = vzip1q_f32(even.val[0], odd.val[0]);
        const float32x4_t slope = vzip2q_f32(even.val[0], odd.val[0]);
        const float32x4_t error = vzip1q_f32(even.val[1], odd.val[1]);
        const float32x4_t tilt = vzip2q_f32(even.val[1], odd.val[1]);
        const float32x4_t t = vaddq_f32(vmulq_n_f32(vcvtq_f32_s32(vld1q_s32(sums + i)), a), vdupq_n_f32(b));
        const float32x4_t estimate = vaddq_f32(vaddq_f32(offset, vdupq_n_f32(base)), vmulq_f32(slope, t));
        float upper[4];
        vst1q_f32(upper, vaddq_f32(vaddq_f32(estimate, vmulq_n_f32(tilt, c)), vmulq_n_f32(error, e)));
        for (size_t r = 0; r < 4; r++) {
            out_rows[kept] = rows[i + r];
            out_upper[kept] = upper[r];
            kept += upper[r] >= floor;
        }
    }
    return kept + carag_kernel_serial.screen(factors, rows + i, sums + i, count - i, base, a, b, c, e, floor,
                                             out_rows + kept, out_upper + kept);
}

/* Row by row: a row less its bias is a query. */
static void gram8_neon(const uint8_t *codes, size_t stride, const uint32_t *a, size_t m, const uint32_t *b,
                       size_t n, size_t dim, void *workspace, int32_t *out)
{
    uint8_t *query = workspace;
    for (size_t i = 0; i < m; i++) {
        for (size_t k = 0; k < dim; k += 16)
            vst1q_u8(query + k, veorq_u8(vld1q_u8(codes + a[i] * stride + k), vdupq_n_u8(128)));
        dot8_neon(codes, stride, b, n, (const int8_t *)query, dim, out + i * n);
    }
}

static size_t gram8_workspace_neon(size_t m, size_t n, size_t dim)
{
    (void)m;
    (void)n;
    return dim;
}

const carag_kernel carag_kernel_neon = {
    .name = "neon",
    .dot = dot_neon,
    .dot_half = dot_half_neon,
    .dot8 = dot8_neon,
    .bits = bits_neon,
    .admit = carag_admit_serial,
    .screen = screen_neon,
    .gram8 = gram8_neon,
    .gram8_workspace = gram8_workspace_neon,
};

#else

const carag_kernel carag_kernel_neon = {.name = "neon"};

#endif
