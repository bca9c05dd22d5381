/* kernel/kernel.h - the arithmetic of a search, once per instruction set, with one fixed meaning.
 *
 * Whatever a kernel computes, every set computes to the last bit: the same graph, the same answers and the
 * same file everywhere. Integers are exact. Floats have a fixed order of operations:
 *
 *   - dot and dot_half have sixty-four virtual lanes: lane l starts at +0 and takes fma(a[i], b[i], lane) for
 *     i = l, l + 64, ...; the last block is padded with zeros; then lanes fold in halves: l += l + 32,
 *     l + 16, ... l + 1. 64 lanes are 4 AVX-512, 8 AVX2 or 16 NEON registers: wide enough to hide the
 *     latency of fma.
 *   - estimate rounds after every multiplication and every addition, in the order its comment gives.
 *
 * Codes come in two kinds. A byte code holds x + 128 for x in [-128, 127], so a row can be the unsigned side
 * of a mixed-sign multiplication; its row is padded with 128, which is zero, to a multiple of
 * CARAG_CODE_BLOCK. Rows are named by number, in any order, and may repeat: a kernel that takes rows fetches ahead of
 * itself, because the next row is rarely the next address. One-bit codes come in packs of CARAG_PACK rows side by side,
 * with what makes estimates of them, so that a table of sixteen sums in a register serves all rows of a pack at once.
 */
#ifndef CARAG_KERNEL_H
#define CARAG_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "carag.h"

#define CARAG_LANES 64       /* virtual lanes of a dot product of floats */
#define CARAG_CODE_BLOCK 64  /* bytes: codes are padded to a multiple, with 128 in rows and 0 in queries */
#define CARAG_PACK 32        /* rows of a pack */

/* A pack, in a file and in memory: `size` times CARAG_PACK bytes, byte g of lane l at g * CARAG_PACK + l, bit j of it the
 * sign of coordinate 8 g + j; then CARAG_PACK binary16 bases, as many slopes and as many errors. */
static inline size_t carag_pack_bytes(size_t size)
{
    return CARAG_PACK * (size + 3 * sizeof(uint16_t));
}

/* A query for packs. `table` holds 2 * size times sixteen sums, each at most 127: entry n of number i is what coordinates
 * 4 i .. 4 i + 3 give where the bits of n are their signs. `step` and `shift` make a number of their sum. */
typedef struct carag_pack_query {
    const uint8_t *table;
    float step, shift;
} carag_pack_query;

/* The query relative to the centre of each row of a pack: most often the same for all. */
typedef struct carag_pack_sight {
    _Alignas(64) float near[CARAG_PACK]; /* their dot product */
    float away[CARAG_PACK]; /* the distance between them, times what the error of an estimate is to count */
} carag_pack_sight;

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

    /* Keep, in order, the rows whose word satisfies any pair, as carag_is_admissible does; returns how many.
     * Words are read relaxed. out has room for count, is scratch past what is returned, and may be rows. */
    size_t (*admit)(const _Atomic(uint32_t) *words, const uint32_t *rows, size_t count,
                    const carag_pair *pairs, size_t pair_count, uint32_t *out);

    /* The same for at most CARAG_PACK rows, as bits: bit i is rows[i]. */
    uint32_t (*open)(const _Atomic(uint32_t) *words, const uint32_t *rows, size_t count, const carag_pair *pairs,
                     size_t pair_count);

    /* Which of `lanes` of a pack have an upper estimate of at least floor, as bits. With the sum of the lane's entries in
     * lookup->table, and in exactly this order, every operation rounded by itself:
     *
     *     t     = step * (float)sum + shift
     *     upper = ((base + near[lane]) + slope * t) + error * away[lane]
     *
     * Requires size a multiple of 8, at most 8192. out_upper has room for CARAG_PACK, and is scratch in other lanes. */
    uint32_t (*estimate)(const uint8_t *pack, size_t size, const carag_pack_query *lookup, uint32_t lanes,
                         const carag_pack_sight *sight, float floor, float *out_upper);

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

/* 0, 1, 2 and so on: to `open`, the words from a place on. */
extern const uint32_t carag_iota[CARAG_PACK];

uint32_t carag_open_serial(const _Atomic(uint32_t) *words, const uint32_t *rows, size_t count, const carag_pair *pairs,
                           size_t pair_count);
uint32_t carag_estimate_serial(const uint8_t *pack, size_t size, const carag_pack_query *lookup, uint32_t lanes,
                               const carag_pack_sight *sight, float floor, float *out_upper);

/* A vector load reads aligned 32-bit words whole, which is all that relaxed asks of the machine; and lanes of a pack that
 * are being written to, besides those it was asked for. C has no way to say so, and ThreadSanitizer takes both for plain
 * reads that race with a writer. Under it every kernel runs the serial loops, whose loads are atomic in name too, and of
 * no other lane. */
#if defined(__SANITIZE_THREAD__)
#define CARAG_UNLESS_TRACED(vector, serial) (0 ? (vector) : (serial))
#else
#define CARAG_UNLESS_TRACED(vector, serial) (vector)
#endif

#endif
