/* kernel/serial.c - the reference: plain C, correct everywhere, and what every other kernel must equal. */
#include "kernel/kernel.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static float fold(float lanes[CARAG_LANES])
{
    for (size_t width = CARAG_LANES / 2; width > 0; width /= 2)
        for (size_t l = 0; l < width; l++)
            lanes[l] += lanes[l + width];
    return lanes[0];
}

static size_t padded(size_t n)
{
    return (n + CARAG_LANES - 1) / CARAG_LANES * CARAG_LANES;
}

static float dot_serial(const float *a, const float *b, size_t n)
{
    float lanes[CARAG_LANES] = {0};
    for (size_t i = 0; i < padded(n); i++) {
        const float x = i < n ? a[i] : 0.0F;
        const float y = i < n ? b[i] : 0.0F;
        lanes[i % CARAG_LANES] = fmaf(x, y, lanes[i % CARAG_LANES]);
    }
    return fold(lanes);
}

static float dot_half_serial(const uint16_t *half, const float *b, size_t n)
{
    float lanes[CARAG_LANES] = {0};
    for (size_t i = 0; i < padded(n); i++) {
        const float x = i < n ? carag_widen(half[i]) : 0.0F;
        const float y = i < n ? b[i] : 0.0F;
        lanes[i % CARAG_LANES] = fmaf(x, y, lanes[i % CARAG_LANES]);
    }
    return fold(lanes);
}

static void dot8_serial(const uint8_t *codes, size_t stride, const uint32_t *rows, size_t count,
                        const int8_t *query, size_t n, int32_t *out)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *row = codes + rows[i] * stride;
        int32_t sum = 0;
        for (size_t j = 0; j < n; j++)
            sum += (row[j] - 128) * query[j];
        out[i] = sum;
    }
}

static bool passes(const _Atomic(uint32_t) *word_at, const carag_pair *pairs, size_t pair_count)
{
    const uint32_t word = atomic_load_explicit(word_at, memory_order_relaxed);
    bool admitted = false;
    for (size_t p = 0; p < pair_count; p++)
        admitted |= (word & pairs[p].mask) == pairs[p].value;
    return admitted;
}

/* Without a branch on the outcome: at middling selectivity it is a coin toss, and a miss costs ten rows. */
size_t carag_admit_serial(const _Atomic(uint32_t) *words, const uint32_t *rows, size_t count,
                          const carag_pair *pairs, size_t pair_count, uint32_t *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t row = rows[i];
        const bool admitted = passes(&words[row], pairs, pair_count);
        out[kept] = row;
        kept += admitted;
    }
    return kept;
}

const uint32_t carag_iota[CARAG_PACK] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                         16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

uint32_t carag_open_serial(const _Atomic(uint32_t) *words, const uint32_t *rows, size_t count, const carag_pair *pairs,
                           size_t pair_count)
{
    uint32_t open = 0;
    for (size_t i = 0; i < count; i++)
        open |= (uint32_t)passes(&words[rows[i]], pairs, pair_count) << i;
    return open;
}

static uint16_t load_half(const uint8_t *from)
{
    uint16_t half;
    memcpy(&half, from, sizeof half);
    return half;
}

uint32_t carag_estimate_serial(const uint8_t *pack, size_t size, const carag_pack_query *lookup, uint32_t lanes,
                               const carag_pack_sight *sight, float floor, float *out_upper)
{
    const uint8_t *halves = pack + CARAG_PACK * size;
    uint32_t kept = 0;
    for (uint32_t left = lanes; left; left &= left - 1) {
        const size_t lane = (size_t)__builtin_ctz(left);
        uint32_t sum = 0;
        for (size_t g = 0; g < size; g++) {
            const uint8_t byte = pack[CARAG_PACK * g + lane];
            sum += lookup->table[32 * g + (byte & 15)];
            sum += lookup->table[32 * g + 16 + (byte >> 4)];
        }
        const float base = carag_widen(load_half(halves + 2 * lane));
        const float slope = carag_widen(load_half(halves + 2 * (CARAG_PACK + lane)));
        const float error = carag_widen(load_half(halves + 2 * (2 * CARAG_PACK + lane)));
        const float t = lookup->step * (float)sum + lookup->shift;
        out_upper[lane] = ((base + sight->near[lane]) + slope * t) + error * sight->away[lane];
        kept |= (uint32_t)(out_upper[lane] >= floor) << lane;
    }
    return kept;
}

/* Row by row: a row less its bias is a query, if one that may hold -128, which plain C does not mind. */
static void gram8_serial(const uint8_t *codes, size_t stride, const uint32_t *a, size_t m, const uint32_t *b,
                         size_t n, size_t dim, void *workspace, int32_t *out)
{
    int8_t *query = workspace;
    for (size_t i = 0; i < m; i++) {
        for (size_t k = 0; k < dim; k++)
            query[k] = (int8_t)(codes[a[i] * stride + k] - 128);
        dot8_serial(codes, stride, b, n, query, dim, out + i * n);
    }
}

static size_t gram8_workspace_serial(size_t m, size_t n, size_t dim)
{
    (void)m;
    (void)n;
    return dim;
}

const carag_kernel carag_kernel_serial = {
    .name = "serial",
    .dot = dot_serial,
    .dot_half = dot_half_serial,
    .dot8 = dot8_serial,
    .admit = carag_admit_serial,
    .open = carag_open_serial,
    .estimate = carag_estimate_serial,
    .gram8 = gram8_serial,
    .gram8_workspace = gram8_workspace_serial,
};
