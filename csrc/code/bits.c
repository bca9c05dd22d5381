/* code/bits.c - make one-bit codes: RaBitQ (Gao & Long, SIGMOD 2024) on centred, rotated vectors.
 *
 * A vector is rotated, so that its length spreads evenly over the coordinates whatever the model did to them; the
 * mean of the rows, the centre c, is taken off (text embeddings share a large common part, which would leave most signs
 * equal); and of what remains, o, the signs are kept. For a query q with the same rotation and r = q - c
 *
 *      <q, x> = <q, c> + <c, o> + <r, o>          <r, o> is about f <r, sign(o)>,  f = |o|^2 / sum|o_i|
 *
 * an unbiased estimate whose error has a standard deviation of about |r| sqrt(f^2 D - |o|^2) / sqrt(D - 1). A row keeps
 * <c, o>, f and that error in its factor; the query is quantised to sixteen levels a coordinate, so that the sum over
 * set bits is an integer, the same on every kernel. screen() in kernel/kernel.h then gives the estimate plus `confidence`
 * standard deviations: rows whose upper estimate is below what has been found are passed over.
 *
 * Rotation. Signs by hash, then a fast Hadamard transform over the first 2^p coordinates, signs, one over the last
 * 2^p, twice over: orthogonal for every dimension, and O(D log D).
 *
 * The centre is the mean of all rows whenever they have doubled since it was last taken. It depends on inadmissible
 * rows, too; hence certified answers never read these codes.
 */
#include "carag_internal.h"
#include "code/code.h"
#include "hash.h"
#include "parallel.h"
#include "row/row.h"

#include <math.h>
#include <string.h>

#define ROTATION_SEED UINT64_C(0x5bd1e995c2b2ae35) /* of the signs; part of the file format */
#define ROUNDS 2 /* times a vector goes through both transforms */
#define STAGES (2 * ROUNDS) /* sets of signs */
#define LEVELS 15.0F /* largest value of a quantised query coordinate, from 0 */
#define ROWS_PER_TASK 512 /* rows that a thread takes at a time */
#define SUMS 16 /* running sums side by side: one would wait for itself at every addition */

size_t carag_bits_words(uint32_t dim)
{
    return ((size_t)dim + 63) / 64;
}

/* ---------------------------------------------------------------- rotation */

/* One and minus one for each stage and coordinate. */
void carag_rotation_init(float *out_signs, size_t words)
{
    const size_t count = 64 * words;
    for (uint64_t stage = 0; stage < STAGES; stage++)
        for (size_t i = 0; i < count; i++) {
            const uint64_t drawn = carag_mix(ROTATION_SEED + (stage << 32) + i / 64);
            out_signs[stage * count + i] = (drawn >> (i % 64) & 1) ? -1.0F : 1.0F;
        }
}

size_t carag_rotation_floats(size_t words)
{
    return STAGES * 64 * words;
}

static void flip_signs(float *vector, const float *signs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        vector[i] *= signs[i];
}

/* In place, orthonormal; count a power of two, at least 64. Four neighbours at a time first: their two stages would
 * otherwise be loops too short for the compiler to make anything of. */
static void hadamard(float *vector, size_t count)
{
    for (size_t i = 0; i < count; i += 4) {
        const float a = vector[i] + vector[i + 1];
        const float b = vector[i] - vector[i + 1];
        const float c = vector[i + 2] + vector[i + 3];
        const float d = vector[i + 2] - vector[i + 3];
        vector[i] = a + c;
        vector[i + 1] = b + d;
        vector[i + 2] = a - c;
        vector[i + 3] = b - d;
    }
    for (size_t half = 4; half < count; half *= 2)
        for (size_t block = 0; block < count; block += 2 * half)
            for (size_t i = block; i < block + half; i++) {
                const float sum = vector[i] + vector[i + half];
                vector[i + half] = vector[i] - vector[i + half];
                vector[i] = sum;
            }
    const float scale = (float)(1.0 / sqrt((double)count));
    for (size_t i = 0; i < count; i++)
        vector[i] *= scale;
}

/* In place, over 64 * words coordinates. */
void carag_rotate(float *vector, const float *signs, size_t words)
{
    const size_t count = 64 * words;
    size_t power = 64;
    while (2 * power <= count)
        power *= 2;
    for (int round = 0; round < ROUNDS; round++, signs += 2 * count) {
        flip_signs(vector, signs, count);
        hadamard(vector, power);
        if (power == count)
            continue;
        flip_signs(vector, signs + count, count);
        hadamard(vector + count - power, power);
    }
}

/* ---------------------------------------------------------------- rows */

typedef struct encoding {
    const carag_index *index;
    carag_view *view;
    uint32_t first, rows;
    float *rooms; /* [threads * 64 * words] */
} encoding;

static void load_rotated(const encoding *job, uint32_t row, float *out_vector)
{
    const size_t dim = job->index->params.dim;
    const size_t words = job->view->bits.words;
    carag_widen_vector(job->index, job->view, row, out_vector);
    memset(out_vector + dim, 0, (64 * words - dim) * sizeof *out_vector);
    carag_rotate(out_vector, job->view->bits.signs, words);
}

static void encode_row(const carag_bits *bits, uint32_t row, float *vector)
{
    const size_t count = 64 * bits->words;
    uint64_t *code = bits->codes + (size_t)row * bits->words;
    double squares = 0.0;
    double sum = 0.0;
    double cross = 0.0;
    uint32_t ones = 0;
    memset(code, 0, bits->words * sizeof *code);
    for (size_t i = 0; i < count; i++) {
        const double o = (double)vector[i] - (double)bits->centre[i];
        squares += o * o;
        sum += fabs(o);
        cross += o * (double)bits->centre[i];
        code[i / 64] |= (uint64_t)(o > 0.0) << (i % 64);
    }
    for (size_t w = 0; w < bits->words; w++)
        ones += (uint32_t)__builtin_popcountll(code[w]);
    const double slope = sum > 0.0 ? squares / sum : 0.0;
    const double spread = fmax(slope * slope * (double)count - squares, 0.0) / (double)(count - 1);
    bits->factors[row] = (carag_bits_factor){.offset = (float)cross,
                                             .slope = (float)slope,
                                             .error = (float)sqrt(spread),
                                             .tilt = (float)(slope * (double)ones)};
}

static void encode_block(void *context, size_t item, uint32_t worker)
{
    const encoding *job = context;
    float *room = job->rooms + (size_t)worker * 64 * job->view->bits.words;
    const uint32_t begin = job->first + (uint32_t)item * ROWS_PER_TASK;
    const uint32_t end = begin + ROWS_PER_TASK < job->rows ? begin + ROWS_PER_TASK : job->rows;
    for (uint32_t row = begin; row < end; row++) {
        load_rotated(job, row, room);
        encode_row(&job->view->bits, row, room);
    }
}

/* The mean of kept vectors, in row order so that it is the same for any number of threads; then rotated. */
static void take_centre(const carag_index *index, carag_view *view, uint32_t rows, float *room, double *sums)
{
    const size_t dim = index->params.dim;
    memset(sums, 0, dim * sizeof *sums);
    for (uint32_t row = 0; row < rows; row++) {
        carag_widen_vector(index, view, row, room);
        for (size_t i = 0; i < dim; i++)
            sums[i] += (double)room[i];
    }
    memset(view->bits.centre, 0, 64 * view->bits.words * sizeof *view->bits.centre);
    for (size_t i = 0; i < dim; i++)
        view->bits.centre[i] = (float)(sums[i] / (double)rows);
    carag_rotate(view->bits.centre, view->bits.signs, view->bits.words);
    view->bits.centred = rows;
}

/* Make the codes of rows first .. rows - 1; of all rows, when the centre is taken again. */
carag_status carag_bits_encode(const carag_index *index, carag_view *view, uint32_t first, uint32_t rows,
                               uint32_t threads)
{
    const size_t width = 64 * view->bits.words;
    const bool is_recentred = view->bits.centred == 0 || rows / 2 >= view->bits.centred;
    encoding job = {.index = index, .view = view, .first = is_recentred ? 0 : first, .rows = rows};
    job.rooms = carag_allocate((size_t)threads * width, sizeof *job.rooms);
    double *sums = carag_allocate(width, sizeof *sums);
    if (job.rooms && sums) {
        if (is_recentred)
            take_centre(index, view, rows, job.rooms, sums);
        carag_parallel(threads, (rows - job.first + ROWS_PER_TASK - 1) / ROWS_PER_TASK, encode_block, &job);
    }
    const carag_status status = job.rooms && sums ? CARAG_OK : CARAG_NO_MEMORY;
    carag_release(job.rooms);
    carag_release(sums);
    return status;
}

/* ---------------------------------------------------------------- queries */

/* Bit `plane` of eight bytes, gathered into one: the product moves bit 8 i to bit 56 + i, and no two bits meet. */
static uint64_t gather_bits(uint64_t bytes, unsigned plane)
{
    return (bytes >> plane & UINT64_C(0x0101010101010101)) * UINT64_C(0x0102040810204080) >> 56;
}

static void set_planes(carag_query *query, size_t words)
{
    for (size_t word = 0; word < words; word++) {
        uint64_t bytes[8];
        memcpy(bytes, query->values + 64 * word, sizeof bytes);
        for (unsigned plane = 0; plane < CARAG_QUERY_PLANES; plane++) {
            uint64_t bits = 0;
            for (unsigned i = 0; i < 8; i++)
                bits |= gather_bits(bytes[i], plane) << (8 * i);
            query->planes[plane * words + word] = bits;
        }
    }
}

/* query->unit is set; make what carag_kernel.bits and .screen read. */
void carag_query_sketch(const carag_bits *bits, size_t dim, carag_query *query, float confidence)
{
    const size_t count = 64 * bits->words;
    float *rest = query->rotated;
    if (query->has_bits) {
        query->spread = confidence * query->length;
        return;
    }
    memcpy(rest, query->unit, dim * sizeof *rest);
    memset(rest + dim, 0, (count - dim) * sizeof *rest);
    carag_rotate(rest, bits->signs, bits->words);
    float base[SUMS] = {0.0F}; /* running sums side by side: one would wait for itself at every addition */
    float squares[SUMS] = {0.0F};
    float total[SUMS] = {0.0F};
    float low[SUMS] = {0.0F};
    float high[SUMS] = {0.0F};
    for (size_t i = 0; i < count; i += SUMS)
        for (size_t s = 0; s < SUMS; s++) {
            base[s] += rest[i + s] * bits->centre[i + s];
            rest[i + s] -= bits->centre[i + s];
            squares[s] += rest[i + s] * rest[i + s];
            total[s] += rest[i + s];
            low[s] = rest[i + s] < low[s] ? rest[i + s] : low[s];
            high[s] = rest[i + s] > high[s] ? rest[i + s] : high[s];
        }
    for (size_t s = 1; s < SUMS; s++) {
        base[0] += base[s];
        squares[0] += squares[s];
        total[0] += total[s];
        low[0] = low[s] < low[0] ? low[s] : low[0];
        high[0] = high[s] > high[0] ? high[s] : high[0];
    }
    const float lowest = low[0];
    const float highest = high[0];
    const float step = highest > lowest ? (highest - lowest) / LEVELS : 1.0F;
    const float inverse = highest > lowest ? LEVELS / (highest - lowest) : 0.0F;
    for (size_t i = 0; i < count; i++)
        query->values[i] = (uint8_t)(int32_t)carag_round((rest[i] - lowest) * inverse);
    set_planes(query, bits->words);
    /* <r, sign(o)> = 2 sum over set bits - sum of all, and a set bit stands for lowest + step * value. */
    query->bits = (carag_bits_query){.planes = query->planes, .values = query->values};
    query->base = base[0];
    query->slope = 2.0F * step;
    query->intercept = -total[0];
    query->tilt = 2.0F * lowest;
    query->length = sqrtf(squares[0]);
    query->spread = confidence * query->length;
    query->has_bits = true;
}
