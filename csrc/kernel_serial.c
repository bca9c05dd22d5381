/* kernel_serial.c - the reference kernel: plain C, correct everywhere, and what every other one must equal. */
#include "kernel.h"

#include <math.h>

static float dot_serial(const float *a, const float *b, size_t n)
{
    float lanes[CARAG_LANES] = {0};
    const size_t padded = (n + CARAG_LANES - 1) / CARAG_LANES * CARAG_LANES;
    for (size_t i = 0; i < padded; i++) {
        const float x = i < n ? a[i] : 0.0F;
        const float y = i < n ? b[i] : 0.0F;
        lanes[i % CARAG_LANES] = fmaf(x, y, lanes[i % CARAG_LANES]);
    }
    for (size_t width = CARAG_LANES / 2; width > 0; width /= 2)
        for (size_t l = 0; l < width; l++)
            lanes[l] += lanes[l + width];
    return lanes[0];
}

const carag_kernel carag_kernel_serial = {"serial", dot_serial};
