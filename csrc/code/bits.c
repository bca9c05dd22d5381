/* code/bits.c - make one-bit codes: RaBitQ (Gao & Long, SIGMOD 2024) on rotated vectors, about the centres of their cells.
 *
 * A vector is rotated, so that its length spreads evenly over the coordinates whatever the model did to them; the
 * centre c of its cell is taken off; and of what remains, o, the signs s are kept. For a query q with the same rotation
 * and r = q - c
 *
 *      <q, x> = <q, c> + <c, o> + <r, o>          <r, o> is about f <r, s>,  f = |o|^2 / sum|o_i|
 *
 * an unbiased estimate whose error has a standard deviation of about |r| sqrt(f^2 D - |o|^2) / sqrt(D - 1). It is also
 *
 *      <q, c> + (<c, o> - f <c, s>) + f <q, s>
 *
 * in which <q, c> is known once a cell, the second term, the row's base, once and for all, and <q, s> comes from a table
 * that serves all cells (Gou et al., SymphonyQG, SIGMOD 2025). A row keeps base, f and its error as binary16. Rows of a
 * cell lie near its centre, so o is short, and the error small.
 *
 * The table. The query is quantised to LEVELS + 1 levels a coordinate, so that sums over four coordinates fit a byte, and
 * sixteen of them a register (Andre et al., VLDB 2015: the fast scan): a pack of rows is scored by table look-up in
 * registers, in integers, the same on every kernel. estimate() in kernel/kernel.h then gives the estimate plus a number
 * of standard deviations: rows whose upper estimate is below what has been found are skipped.
 *
 * Rotation. Signs by hash, then a fast Hadamard transform over the first 2^p coordinates, signs, one over the last
 * 2^p, twice over: orthogonal for every dimension, and O(D log D).
 *
 * Rows that are in no cell are coded about the mean of all rows, as it was when all codes were last made. Mean and
 * centres depend on inadmissible rows, too; hence certified answers never read these codes.
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
#define LEVELS 31 /* largest value of a quantised query coordinate, from 0: four of them fit a byte, and twice */
#define ROWS_PER_TASK (16 * CARAG_PACK) /* positions that a thread takes at a time: whole packs */
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
    uint32_t first, rows; /* positions */
    float *rooms;         /* [threads * 2 * 64 * words] a centre and a vector each */
} encoding;

static uint8_t *pack_of(const carag_bits *bits, uint32_t position)
{
    return bits->packs + position / CARAG_PACK * carag_pack_bytes(8 * bits->words);
}

static void set_half(uint8_t *halves, size_t at, double value)
{
    const uint16_t half = carag_half((float)value);
    memcpy(halves + at * sizeof half, &half, sizeof half);
}

/* The code of a vector about a centre, both rotated. */
static void encode_lane(const carag_bits *bits, uint32_t position, const float *vector, const float *centre)
{
    const size_t count = 64 * bits->words;
    const size_t lane = position % CARAG_PACK;
    uint8_t *pack = pack_of(bits, position);
    uint8_t *halves = pack + CARAG_PACK * 8 * bits->words;
    double squares = 0.0;
    double sum = 0.0;
    double cross = 0.0;
    double lean = 0.0;
    for (size_t byte = 0; byte < count / 8; byte++) {
        unsigned signs = 0;
        for (size_t j = 0; j < 8; j++) {
            const double c = (double)centre[8 * byte + j];
            const double o = (double)vector[8 * byte + j] - c;
            squares += o * o;
            sum += fabs(o);
            cross += o * c;
            lean += o > 0.0 ? c : -c;
            signs |= (unsigned)(o > 0.0) << j;
        }
        pack[CARAG_PACK * byte + lane] = (uint8_t)signs;
    }
    const double slope = sum > 0.0 ? squares / sum : 0.0;
    const double spread = fmax(slope * slope * (double)count - squares, 0.0) / (double)(count - 1);
    set_half(halves, lane, cross - slope * lean);
    set_half(halves, CARAG_PACK + lane, slope);
    set_half(halves, 2 * CARAG_PACK + lane, sqrt(spread));
}

static void load_rotated(const encoding *job, uint32_t row, float *out_vector)
{
    const size_t dim = job->index->params.dim;
    const size_t words = job->view->bits.words;
    carag_widen_vector(job->index, job->view, row, out_vector);
    memset(out_vector + dim, 0, (64 * words - dim) * sizeof *out_vector);
    carag_rotate(out_vector, job->view->bits.signs, words);
}

/* The centre of a cell, rotated; the mean for the rows that are in none. */
static void load_centre(const carag_view *view, size_t dim, uint32_t cell, float *out_centre)
{
    const size_t count = 64 * view->bits.words;
    const carag_cells *cells = view->cells;
    if (!cells || cell == cells->count) {
        memcpy(out_centre, view->bits.centre, count * sizeof *out_centre);
        return;
    }
    const uint8_t *bytes = cells->centres + (size_t)cell * cells->stride;
    for (size_t i = 0; i < count; i++)
        out_centre[i] = i < dim ? cells->cells[cell].scale * (float)((int32_t)bytes[i] - 128) : 0.0F;
    carag_rotate(out_centre, view->bits.signs, view->bits.words);
}

/* The cell of a position; the number of cells where it is in none. */
static uint32_t cell_of(const carag_cells *cells, uint32_t position)
{
    uint32_t low = 0;
    uint32_t high = cells ? cells->count : 0;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (cells->cells[middle].end <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void encode_positions(const encoding *job, uint32_t begin, uint32_t end, float *room)
{
    const carag_view *view = job->view;
    float *vector = room + 64 * view->bits.words;
    uint32_t cell_end = begin;
    for (uint32_t position = begin; position < end; position++) {
        if (position == cell_end) {
            const uint32_t cell = cell_of(view->cells, position);
            cell_end = view->cells && cell < view->cells->count ? view->cells->cells[cell].end : end;
            load_centre(view, job->index->params.dim, cell, room);
        }
        load_rotated(job, carag_row_at(view, position), vector);
        encode_lane(&view->bits, position, vector, room);
    }
}

static void encode_task(void *context, size_t item, uint32_t worker)
{
    const encoding *job = context;
    const uint32_t from = job->first / ROWS_PER_TASK * ROWS_PER_TASK + (uint32_t)item * ROWS_PER_TASK;
    const uint32_t begin = from < job->first ? job->first : from;
    const uint32_t end = job->rows - from < ROWS_PER_TASK ? job->rows : from + ROWS_PER_TASK;
    encode_positions(job, begin, end, job->rooms + (size_t)worker * 2 * 64 * job->view->bits.words);
}

/* Empty the lanes of a pack from a position on. */
void carag_bits_clear(const carag_bits *bits, uint32_t from)
{
    const size_t lane = from % CARAG_PACK;
    if (lane == 0)
        return;
    uint8_t *pack = pack_of(bits, from);
    for (size_t byte = 0; byte < 8 * bits->words; byte++)
        memset(pack + CARAG_PACK * byte + lane, 0, CARAG_PACK - lane);
    for (size_t part = 0; part < 3; part++)
        for (size_t l = lane; l < CARAG_PACK; l++)
            set_half(pack + CARAG_PACK * 8 * bits->words, part * CARAG_PACK + l, 0.0);
}

/* The mean of kept vectors, in row order so that it is the same for any number of threads; then rotated. */
static void take_mean(const carag_index *index, carag_view *view, uint32_t rows, float *room, double *sums)
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

/* Make the codes of positions first .. rows - 1; if first is 0, about a newly computed mean. On failure nothing is
 * written. Requires the cells that the view will have. */
carag_status carag_bits_encode(const carag_index *index, carag_view *view, uint32_t first, uint32_t rows,
                               uint32_t threads)
{
    const size_t width = 64 * view->bits.words;
    encoding job = {.index = index, .view = view, .first = first, .rows = rows};
    job.rooms = carag_allocate((size_t)threads * 2 * width, sizeof *job.rooms);
    double *sums = carag_allocate(width, sizeof *sums);
    if (job.rooms && sums) {
        if (first == 0)
            take_mean(index, view, rows, job.rooms, sums);
        const uint32_t tasks = (rows + ROWS_PER_TASK - 1) / ROWS_PER_TASK - first / ROWS_PER_TASK;
        carag_parallel(threads, tasks, encode_task, &job);
        carag_bits_clear(&view->bits, rows);
    }
    const carag_status status = job.rooms && sums ? CARAG_OK : CARAG_NO_MEMORY;
    carag_release(job.rooms);
    carag_release(sums);
    return status;
}

/* Copy the code of a row from one position to another. */
void carag_bits_move(const carag_bits *to, uint32_t position, const carag_bits *from, uint32_t old)
{
    uint8_t *pack = pack_of(to, position) + position % CARAG_PACK;
    const uint8_t *old_pack = pack_of(from, old) + old % CARAG_PACK;
    for (size_t byte = 0; byte < 8 * to->words; byte++)
        pack[CARAG_PACK * byte] = old_pack[CARAG_PACK * byte];
    uint8_t *halves = pack_of(to, position) + CARAG_PACK * 8 * to->words;
    const uint8_t *old_halves = pack_of(from, old) + CARAG_PACK * 8 * to->words;
    for (size_t part = 0; part < 3; part++)
        memcpy(halves + sizeof(uint16_t) * (part * CARAG_PACK + position % CARAG_PACK),
               old_halves + sizeof(uint16_t) * (part * CARAG_PACK + old % CARAG_PACK), sizeof(uint16_t));
}

/* Make the codes of a view whose cells are those of another with all rows in them: rows that were in a cell before keep
 * theirs. Requires room. */
carag_status carag_bits_extend(const carag_index *index, carag_view *view, const carag_view *from)
{
    const carag_cells *cells = view->cells;
    encoding job = {.index = index, .view = view};
    job.rooms = carag_allocate(2 * 64 * view->bits.words, sizeof *job.rooms);
    if (!job.rooms)
        return CARAG_NO_MEMORY;
    memcpy(view->bits.centre, from->bits.centre, 64 * view->bits.words * sizeof *view->bits.centre);
    view->bits.centred = from->bits.centred;
    uint32_t position = 0;
    uint32_t old = 0;
    for (uint32_t c = 0; c < cells->count; c++) {
        for (; old < from->cells->cells[c].end; old++, position++)
            carag_bits_move(&view->bits, position, &from->bits, old);
        encode_positions(&job, position, cells->cells[c].end, job.rooms);
        position = cells->cells[c].end;
    }
    carag_bits_clear(&view->bits, position);
    carag_release(job.rooms);
    return CARAG_OK;
}

/* ---------------------------------------------------------------- queries */

/* Sixteen sums for every four coordinates: of their values where the bits of n say that signs are positive, and of what is
 * missing to LEVELS where not. */
static void fill_table(const carag_query *query, size_t count, float inverse)
{
    for (size_t i = 0; i < count; i += 4) {
        uint8_t *entries = query->table + 4 * i;
        int value[4];
        for (size_t j = 0; j < 4; j++)
            value[j] = (int)carag_round(0.5F * LEVELS + query->rotated[i + j] * inverse);
        entries[0] = (uint8_t)(4 * LEVELS - (value[0] + value[1] + value[2] + value[3]));
        for (size_t n = 1, bit = 0; bit < 4; bit++, n *= 2)
            for (size_t m = 0; m < n; m++)
                entries[n + m] = (uint8_t)(entries[m] + 2 * value[bit] - LEVELS);
    }
}

/* query->unit is set; make what carag_kernel.estimate reads. */
void carag_query_sketch(const carag_bits *bits, size_t dim, carag_query *query)
{
    const size_t count = 64 * bits->words;
    if (query->has_bits)
        return;
    float *rotated = query->rotated;
    memcpy(rotated, query->unit, dim * sizeof *rotated);
    memset(rotated + dim, 0, (count - dim) * sizeof *rotated);
    carag_rotate(rotated, bits->signs, bits->words);
    float near[SUMS] = {0.0F};
    float squares[SUMS] = {0.0F};
    float tops[SUMS] = {0.0F};
    for (size_t i = 0; i < count; i += SUMS)
        for (size_t s = 0; s < SUMS; s++) {
            const float away = rotated[i + s] - bits->centre[i + s];
            near[s] += rotated[i + s] * bits->centre[i + s];
            squares[s] += away * away;
            tops[s] = fabsf(rotated[i + s]) > tops[s] ? fabsf(rotated[i + s]) : tops[s];
        }
    for (size_t s = 1; s < SUMS; s++) {
        near[0] += near[s];
        squares[0] += squares[s];
        tops[0] = tops[s] > tops[0] ? tops[s] : tops[0];
    }
    /* A coordinate is about step * (value - LEVELS / 2), so what signs make of it is that, or its negative. */
    const float step = 2.0F * tops[0] / LEVELS;
    fill_table(query, count, tops[0] > 0.0F ? 1.0F / step : 0.0F);
    query->lookup = (carag_pack_query){query->table, step, -0.5F * LEVELS * step * (float)count};
    query->of_mean = (carag_sight){near[0], sqrtf(squares[0])};
    query->has_bits = true;
}
