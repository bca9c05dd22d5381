/* kernel_neon.c - sixteen registers of four lanes. Every AArch64 has them, so there is nothing to probe. */
#include "kernel.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <string.h>

static inline void add_block(float32x4_t lanes[16], const float *a, const float *b)
{
    for (int r = 0; r < 16; r++)
        lanes[r] = vfmaq_f32(lanes[r], vld1q_f32(a + 4 * r), vld1q_f32(b + 4 * r));
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
    for (int half = 8; half > 0; half /= 2)
        for (int r = 0; r < half; r++)
            lanes[r] = vaddq_f32(lanes[r], lanes[r + half]);
    const float32x2_t two = vadd_f32(vget_low_f32(lanes[0]), vget_high_f32(lanes[0]));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

const carag_kernel carag_kernel_neon = {"neon", dot_neon};

#else

const carag_kernel carag_kernel_neon = {"neon", NULL};

#endif
