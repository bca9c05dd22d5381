/* kernel/neon.c - sixteen registers of four lanes. Every AArch64 has them, so there is nothing to probe: the
 * dot product instructions of later revisions are not used. Nor is there a gather or a compressing move, so
 * rows are admitted by the serial loop.
 */
#include "kernel/kernel.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <string.h>

#define DOT8_AHEAD 8 /* rows whose codes are fetched in advance */
#define CHUNK 256 /* bytes of a one-bit code whose entries, at most 254 a byte, are summed in 16 bits */

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

/* Add the sums of some bytes of sixteen lanes, from `pack` on, to sums[r], those of lanes 4 r to 4 r + 3. */
static inline void sum_entries(const uint8_t *pack, size_t size, const uint8_t *table, uint32x4_t sums[4])
{
    uint16x8_t low = vdupq_n_u16(0);
    uint16x8_t high = vdupq_n_u16(0);
    for (size_t g = 0; g < size; g++) {
        const uint8x16_t code = vld1q_u8(pack + CARAG_PACK * g);
        const uint8x16_t first = vqtbl1q_u8(vld1q_u8(table + 32 * g), vandq_u8(code, vdupq_n_u8(15)));
        const uint8x16_t second = vqtbl1q_u8(vld1q_u8(table + 32 * g + 16), vshrq_n_u8(code, 4));
        const uint8x16_t entries = vaddq_u8(first, second);
        low = vaddw_u8(low, vget_low_u8(entries));
        high = vaddw_high_u8(high, entries);
    }
    sums[0] = vaddw_u16(sums[0], vget_low_u16(low));
    sums[1] = vaddw_high_u16(sums[1], low);
    sums[2] = vaddw_u16(sums[2], vget_low_u16(high));
    sums[3] = vaddw_high_u16(sums[3], high);
}

static inline float32x4_t load_halves(const uint8_t *from)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(from)));
}

/* No fused operation here, and none made by the compiler: -ffp-contract=off. */
static uint32_t estimate_neon(const uint8_t *pack, size_t size, const carag_pack_query *lookup, uint32_t lanes,
                              const carag_pack_sight *sight, float floor, float *out_upper)
{
    const uint8_t *halves = pack + CARAG_PACK * size;
    uint32x4_t sums[8];
    uint32_t kept = 0;
    for (int r = 0; r < 8; r++)
        sums[r] = vdupq_n_u32(0);
    for (size_t g = 0; g < size; g += CHUNK)
        for (size_t half = 0; half < 2; half++)
            sum_entries(pack + CARAG_PACK * g + 16 * half, size - g < CHUNK ? size - g : CHUNK, lookup->table + 32 * g,
                        sums + 4 * half);
    for (int r = 0; r < 8; r++) {
        const float32x4_t base = load_halves(halves + 8 * r);
        const float32x4_t slope = load_halves(halves + 8 * r + 2 * CARAG_PACK);
        const float32x4_t error = load_halves(halves + 8 * r + 4 * CARAG_PACK);
        const float32x4_t scaled = vmulq_n_f32(vcvtq_f32_u32(sums[r]), lookup->step);
        const float32x4_t t = vaddq_f32(scaled, vdupq_n_f32(lookup->shift));
        const float32x4_t moved = vaddq_f32(base, vld1q_f32(sight->near + 4 * r));
        const float32x4_t estimate = vaddq_f32(moved, vmulq_f32(slope, t));
        vst1q_f32(out_upper + 4 * r, vaddq_f32(estimate, vmulq_f32(error, vld1q_f32(sight->away + 4 * r))));
    }
    for (uint32_t lane = 0; lane < CARAG_PACK; lane++)
        kept |= (uint32_t)(out_upper[lane] >= floor) << lane;
    return kept & lanes;
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
    .admit = carag_admit_serial,
    .open = carag_open_serial,
    .estimate = CARAG_UNLESS_TRACED(estimate_neon, carag_estimate_serial),
    .gram8 = gram8_neon,
    .gram8_workspace = gram8_workspace_neon,
};

#else

const carag_kernel carag_kernel_neon = {.name = "neon"};

#endif
