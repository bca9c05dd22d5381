/* kernel_avx512.c - four registers of sixteen lanes, masked tails. Entered only after CPUID has shown AVX-512F. */
#include "kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f")))

/* The mask of a register that holds floats [from, from + 16) of n. */
AVX512 static inline __mmask16 tail_mask(size_t from, size_t n)
{
    const size_t left = n > from ? n - from : 0;
    return (__mmask16)(left >= 16 ? 0xFFFFU : (1U << left) - 1U);
}

AVX512 static float dot_avx512(const float *a, const float *b, size_t n)
{
    __m512 lanes[4];
    for (int r = 0; r < 4; r++)
        lanes[r] = _mm512_setzero_ps();
    size_t i = 0;
    for (; i + CARAG_LANES <= n; i += CARAG_LANES)
        for (int r = 0; r < 4; r++)
            lanes[r] = _mm512_fmadd_ps(_mm512_loadu_ps(a + i + 16 * r), _mm512_loadu_ps(b + i + 16 * r), lanes[r]);
    if (i < n)
        for (int r = 0; r < 4; r++) {
            const __mmask16 mask = tail_mask(i + 16 * (size_t)r, n);
            const __m512 x = _mm512_maskz_loadu_ps(mask, a + i + 16 * r);
            const __m512 y = _mm512_maskz_loadu_ps(mask, b + i + 16 * r);
            lanes[r] = _mm512_fmadd_ps(x, y, lanes[r]);
        }
    const __m512 sum = _mm512_add_ps(_mm512_add_ps(lanes[0], lanes[2]), _mm512_add_ps(lanes[1], lanes[3]));
    const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sum), 1));
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(sum), high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

const carag_kernel carag_kernel_avx512 = {"avx512", dot_avx512};

#else

const carag_kernel carag_kernel_avx512 = {"avx512", NULL};

#endif
