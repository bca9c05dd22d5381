/* kernel/kernel.h - the arithmetic of a search, once per instruction set, with one fixed meaning.
 *
 * Whatever a kernel computes, every set computes to the last bit: the same graph, the same answers and the
 * same file everywhere. Integers are exact. Floats have a fixed order of operations:
 *
 *   - dot and dot_half have sixty-four virtual lanes: lane l starts at +0 and takes fma(a[i], b[i], lane) for
 *     i = l, l + 64, ...; the last block is padded with zeros; then lanes fold in halves: l += l + 32,
 *     l + 16, ... l + 1. 64 lanes are 4 AVX-512, 8 AVX2 or 16 NEON registers: wide enough to hide the
 *     latency of fma.
 *   - screen rounds after every multiplication and every addition, in the order its comment gives.
 *
 * Codes come in two kinds. A byte code holds x + 128 for x in [-128, 127], so a row can be the unsigned side
 * of a mixed-sign multiplication; its row is padded with 128, which is zero, to a multiple of
 * CARAG_CODE_BLOCK. A one-bit code is a row of 64-bit words. Rows are named by number, in any order, and may
 * repeat: a kernel that takes rows fetches ahead of itself, because the next row is rarely the next address.
 */
#ifndef CARAG_KERNEL_H
#define CARAG_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "carag.h"

#define CARAG_LANES 64       /* virtual lanes of a dot product of floats */
#define CARAG_CODE_BLOCK 64  /* bytes: codes are padded to a multiple, with 128 in rows and 0 in queries */
#define CARAG_QUERY_PLANES 4 /* bits of a quantised query coordinate */

/* A query for one-bit codes, quantised to 0..15, in the two shapes kernels like; both say the same. */
typedef struct carag_bits_query {
    const uint64_t *planes; /* [4][words]: bit i of word w of plane p is bit p of value 64 w + i */
    const uint8_t *values;  /* [64 words] 0..15 */
} carag_bits_query;

/* What turns the one-bit sum of a row into an upper estimate of its similarity. */
typedef struct carag_bits_factor {
    float offset, slope, error, tilt;
} carag_bits_factor;

_Static_assert(sizeof(carag_bits_factor) == 16, "a factor is one 128-bit load");

typedef float (*carag_dot_fn)(const float *a, const float *b, size_t n);

typedef struct carag_kernel {
    const char *name;

    /* The dot product of n floats, of any alignment. NULL: not compiled for this architecture. */
    carag_dot_fn dot;

    /* The same with a row of IEEE binary16, each widened exactly. */
    float (*dot_half)(const uint16_t *half, const float *b, size_t n);

    /* out[i] = sum over j < n of (codes[rows[i] * stride + j] - 128) * query[j]. Requires n and stride
     * multiples of CARAG_CODE_BLOCK, n <= 65536, codes 64-byte aligned, |query[j]| <= 127. */
    void (*dot8)(const uint8_t *codes, size_t stride, const uint32_t *rows, size_t count, const int8_t *query,
                 size_t n, int32_t *out);

    /* out[i] = sum of values[j] over the set bits j of codes[rows[i] * words ..]. Requires words >= 1. */
    void (*bits)(const uint64_t *codes, size_t words, const uint32_t *rows, size_t count,
                 const carag_bits_query *query, int32_t *out);

    /* Keep, in order, the rows whose word satisfies any pair, as carag_is_admissible does; returns how many.
     * Words are read relaxed. out has room for count, is scratch past what is returned, and may be rows. */
    size_t (*admit)(const _Atomic(uint32_t) *words, const uint32_t *rows, size_t count,
                    const carag_pair *pairs, size_t pair_count, uint32_t *out);

    /* Keep, in order, the rows whose upper estimate is at least floor; returns how many. In exactly this
     * order, every operation rounded by itself:
     *
     *     t     = a * (float)sums[i] + b
     *     upper = (((offset + base) + slope * t) + tilt * c) + error * e
     *
     * Both outputs have room for count and are scratch past what is returned; out_rows may be rows. */
    size_t (*screen)(const carag_bits_factor *factors, const uint32_t *rows, const int32_t *sums,
                     size_t count, float base, float a, float b, float c, float e, float floor, uint32_t *out_rows,
                     float *out_upper);

    /* out[i * n + j] = the dot product of byte codes a[i] and b[j], both less their bias: every pair of two
     * lists of rows. Requires dim and stride multiples of CARAG_CODE_BLOCK, dim <= 65536, and workspace of
     * gram8_workspace(m, n, dim) bytes, 64-byte aligned (NULL when that is 0). */
    void (*gram8)(const uint8_t *codes, size_t stride, const uint32_t *a, size_t m, const uint32_t *b,
                  size_t n, size_t dim, void *workspace, int32_t *out);
    size_t (*gram8_workspace)(size_t m, size_t n, size_t dim);
} carag_kernel;

extern const carag_kernel carag_kernel_serial;
extern const carag_kernel carag_kernel_avx2;
extern const carag_kernel carag_kernel_avx512;
extern const carag_kernel carag_kernel_avx512_popcnt;
extern const carag_kernel carag_kernel_neon;

/* The kernel in use, chosen at the first call; see kernel/kernel.c for the rule. */
carag_status carag_kernel_resolve(const carag_kernel **out_kernel, carag_fault *out_fault);
const carag_kernel *carag_kernel_get(void); /* requires an earlier successful carag_kernel_resolve */

/* kernel/half.c: IEEE binary16 from binary32, to the nearest, ties to even, past the largest to infinity; and back,
 * exactly. */
uint16_t carag_half(float value);
float carag_widen(uint16_t half);

/* kernel/serial.c */
size_t carag_admit_serial(const _Atomic(uint32_t) *words, const uint32_t *rows, size_t count,
                          const carag_pair *pairs, size_t pair_count, uint32_t *out);

/* A vector load reads aligned 32-bit words whole, which is all that relaxed asks of the machine; but C has no
 * way to say so, and ThreadSanitizer takes it for a plain read that races with a relabel. Under it every
 * kernel admits by the serial loop, whose loads are atomic in name too. */
#if defined(__SANITIZE_THREAD__)
#define CARAG_VECTOR_ADMIT(admit) (0 ? (admit) : carag_admit_serial)
#else
#define CARAG_VECTOR_ADMIT(admit) (admit)
#endif

#endif
