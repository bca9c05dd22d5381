/* code/bytes.c - keep vectors, encode them and queries in eight bits a coordinate, and score what is kept.
 *
 * A row keeps its unit vector as float32, binary16, or only as its eight-bit code. "Exact" means exact over what is
 * kept, scored by carag_score in float32.
 *
 * Eight-bit codes. Coordinates are rounded to 127ths of the largest, and the scale s makes the code a unit vector
 * again: a code that came out longer than its vector would draw links and answers to itself. x is then about s (b -
 * 128), and `errors` holds the length of the difference, computed in double and rounded up: by Cauchy and Schwarz the
 * score of a query q is within
 *
 *      |q| errors[row] + |q - q'| |s (b - 128)|
 *
 * of what the codes say, q' being the query's own code; search/exact.c turns that into exact answers. A code is made
 * from its own vector alone, so no row's code says anything about another row.
 */
#include "carag_internal.h"
#include "code/code.h"
#include "row/row.h"

#include <math.h>
#include <string.h>

#define CODE_MAX 127.0F /* largest absolute value of a code's coordinate */

#define ROUNDED 0x1.001p-24 /* most that the length of a unit vector is off 1, its coordinates being rounded */

#define SUMS 8 /* running sums side by side: one would wait for itself at every addition */

static double fold(const double sums[SUMS])
{
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

static double sum_of_squares(const float *vector, size_t dim)
{
    double sums[SUMS] = {0.0};
    size_t i = 0;
    for (; i + SUMS <= dim; i += SUMS)
        for (size_t s = 0; s < SUMS; s++)
            sums[s] += (double)vector[i + s] * (double)vector[i + s];
    for (; i < dim; i++)
        sums[i % SUMS] += (double)vector[i] * (double)vector[i];
    return fold(sums);
}

/* Unit length, summed in double: squares of any float32 neither overflow nor vanish there. A vector that has it but for
 * rounding stays as it is, so what an index kept of a row is kept again to the last bit. out_unit may be NULL to check
 * only. */
carag_status carag_normalise(const float *vector, uint32_t dim, float *out_unit, uint64_t row, carag_fault *out_fault)
{
    const double squares = sum_of_squares(vector, dim);
    if (!isfinite(squares)) /* a finite float32 squares and sums to a finite double */
        return carag_fail(out_fault, CARAG_NOT_FINITE, row, "a vector holds a NaN or an infinity");
    if (squares <= 0.0)
        return carag_fail(out_fault, CARAG_ZERO_VECTOR, row, "a zero vector has no direction");
    if (out_unit) {
        const double length = sqrt(squares);
        if (fabs(length - 1.0) <= ROUNDED)
            memcpy(out_unit, vector, dim * sizeof *out_unit);
        else
            for (uint32_t i = 0; i < dim; i++)
                out_unit[i] = (float)((double)vector[i] / length);
    }
    return CARAG_OK;
}

/* The code of one unit vector, padded with zeros to a multiple of SUMS; returns its scale, and at least the length of
 * what it lost. */
static float encode(const float *unit, size_t padded, uint8_t *out_bytes, size_t stride, float *out_error)
{
    float tops[SUMS] = {0.0F};
    for (size_t i = 0; i < padded; i += SUMS)
        for (size_t s = 0; s < SUMS; s++)
            tops[s] = fabsf(unit[i + s]) > tops[s] ? fabsf(unit[i + s]) : tops[s];
    float largest = tops[0];
    for (size_t s = 1; s < SUMS; s++)
        largest = tops[s] > largest ? tops[s] : largest;
    const float inverse = CODE_MAX / largest;
    double squares[SUMS] = {0.0}; /* of the unit vector, of its code, and their product */
    double code_squares[SUMS] = {0.0};
    double products[SUMS] = {0.0};
    memset(out_bytes + padded, 128, stride - padded);
    for (size_t i = 0; i < padded; i += SUMS)
        for (size_t s = 0; s < SUMS; s++) {
            const float code = carag_round(unit[i + s] * inverse);
            out_bytes[i + s] = (uint8_t)((int32_t)code + 128);
            squares[s] += (double)unit[i + s] * (double)unit[i + s];
            code_squares[s] += (double)code * (double)code;
            products[s] += (double)unit[i + s] * (double)code;
        }
    const float scale = (float)(1.0 / sqrt(fold(code_squares)));
    const double lost = fold(squares) - 2.0 * (double)scale * fold(products) +
                        (double)scale * (double)scale * fold(code_squares);
    *out_error = nextafterf((float)(sqrt(fmax(lost, 0.0) + 1e-13) * (1.0 + 1e-6)), INFINITY);
    return scale;
}

/* Encode a unit vector that is not a row; returns its scale. */
float carag_encode_unit(const float *unit, size_t padded, uint8_t *out_bytes, size_t stride)
{
    float error;
    return encode(unit, padded, out_bytes, stride, &error);
}

/* Store a row's vector as the index keeps it, and its code. `unit` has index->stride floats, padding zero. */
void carag_keep_vector(const carag_index *index, carag_view *view, uint32_t row, const float *unit)
{
    const carag_codes *codes = &view->codes;
    uint8_t *bytes = codes->bytes + (size_t)row * codes->stride;
    codes->scales[row] = encode(unit, index->stride, bytes, codes->stride, &codes->errors[row]);
    switch (index->params.dtype) {
    case CARAG_FLOAT32:
        memcpy((float *)view->vectors + (size_t)row * index->stride, unit, index->vector_bytes);
        break;
    case CARAG_FLOAT16: {
        uint16_t *halves = (uint16_t *)view->vectors + (size_t)row * index->stride;
        double moved = 0.0; /* the code describes the unit vector, but answers use the halves */
        for (size_t i = 0; i < index->stride; i++) {
            halves[i] = carag_half(unit[i]);
            const double off = (double)unit[i] - (double)carag_widen(halves[i]);
            moved += off * off;
        }
        codes->errors[row] = nextafterf((float)((double)codes->errors[row] + sqrt(moved) * (1.0 + 1e-6)), INFINITY);
        break;
    }
    case CARAG_INT8: { /* nothing is lost of what is kept, but rounding may have made it longer than MAX_LENGTH */
        double squares = 0.0;
        for (size_t i = 0; i < index->params.dim; i++)
            squares += (double)((int)bytes[i] - 128) * (double)((int)bytes[i] - 128);
        const double excess = (double)codes->scales[row] * sqrt(squares) * (1.0 + 1e-6) - 1.0;
        codes->errors[row] = excess > 0.0 ? nextafterf((float)excess, INFINITY) : 0.0F;
        break;
    }
    }
}

/* The kept vector as float32, `dim` long. */
void carag_widen_vector(const carag_index *index, const carag_view *view, uint32_t row, float *out_vector)
{
    const size_t dim = index->params.dim;
    const uint8_t *bytes = view->codes.bytes + (size_t)row * view->codes.stride;
    const float scale = view->codes.scales[row];
    switch (index->params.dtype) {
    case CARAG_FLOAT32:
        memcpy(out_vector, (const float *)view->vectors + (size_t)row * index->stride, dim * sizeof(float));
        break;
    case CARAG_FLOAT16:
        for (size_t i = 0; i < dim; i++)
            out_vector[i] = carag_widen(((const uint16_t *)view->vectors)[(size_t)row * index->stride + i]);
        break;
    case CARAG_INT8:
        for (size_t i = 0; i < dim; i++)
            out_vector[i] = scale * (float)((int)bytes[i] - 128);
        break;
    }
}

/* The score an answer carries: dot product with the kept vector. `room` holds dim floats. */
float carag_score(const carag_index *index, const carag_view *view, const carag_kernel *kernel, const float *query,
                  float *room, uint32_t row)
{
    const size_t at = (size_t)row * index->stride;
    switch (index->params.dtype) {
    case CARAG_FLOAT32:
        return kernel->dot((const float *)view->vectors + at, query, index->params.dim);
    case CARAG_FLOAT16:
        return kernel->dot_half((const uint16_t *)view->vectors + at, query, index->params.dim);
    case CARAG_INT8:
        break;
    }
    carag_widen_vector(index, view, row, room);
    return kernel->dot(room, query, index->params.dim);
}

/* query->unit is set: what was made of another is void. */
void carag_query_renew(carag_query *query)
{
    query->has_codes = query->has_bits = query->has_cells = false;
}

/* Its code, if that is not made yet. */
void carag_query_encode(const carag_index *index, const carag_codes *codes, carag_query *query)
{
    if (query->has_codes)
        return;
    uint8_t *bytes = (uint8_t *)query->codes;
    query->scale = encode(query->unit, index->stride, bytes, codes->stride, &query->error);
    for (size_t i = 0; i < codes->stride; i++)
        query->codes[i] = (int8_t)(bytes[i] - 128);
    query->has_codes = true;
}
