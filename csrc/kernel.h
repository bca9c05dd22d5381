/* kernel.h - the dot product, once per instruction set, with one fixed order of operations.
 *
 * Sixty-four virtual lanes: lane l starts at +0 and takes fma(a[i], b[i], lane) for i = l, l + 64, ...; the
 * last block is padded with zeros; then lanes fold in halves: l += l + 32, l + 16, ... l + 1. Fused
 * multiply-add rounds once and addition is IEEE, so every kernel returns the same bits, and with them the
 * same graph, the same answers and the same file. 64 lanes are 4 AVX-512, 8 AVX2 or 16 NEON registers: wide
 * enough to hide the latency of fma everywhere.
 */
#ifndef CARAG_KERNEL_H
#define CARAG_KERNEL_H

#include <stddef.h>

#define CARAG_LANES 64

typedef float (*carag_dot_fn)(const float *a, const float *b, size_t n);

typedef struct carag_kernel {
    const char *name;
    carag_dot_fn dot; /* NULL: not compiled for this architecture */
} carag_kernel;

extern const carag_kernel carag_kernel_serial;
extern const carag_kernel carag_kernel_avx2;
extern const carag_kernel carag_kernel_avx512;
extern const carag_kernel carag_kernel_neon;

#endif
