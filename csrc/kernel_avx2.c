/* kernel_avx2.c - eight registers of eight lanes. Entered only after CPUID has shown AVX2 and FMA. */
#include "kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2,fma")))

AVX2 static inline void add_block(__m256 lanes[8], const float *a, const float *b)
{
    for (int r = 0; r < 8; r++)
        lanes[r] = _mm256_fmadd_ps(_mm256_loadu_ps(a + 8 * r), _mm256_loadu_ps(b + 8 * r), lanes[r]);
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
    for (int half = 4; half > 0; half /= 2)
        for (int r = 0; r < half; r++)
            lanes[r] = _mm256_add_ps(lanes[r], lanes[r + half]);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes[0]), _mm256_extractf128_ps(lanes[0], 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

const carag_kernel carag_kernel_avx2 = {"avx2", dot_avx2};

#else

const carag_kernel carag_kernel_avx2 = {"avx2", NULL};

#endif
