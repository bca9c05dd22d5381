/* code/code.h - the codes by which rows are compared before their vectors are read: eight-bit ones and one-bit ones. */
#ifndef CARAG_CODE_H
#define CARAG_CODE_H

#include "carag_internal.h"
#include "kernel/kernel.h"

typedef struct carag_view carag_view;

/* Eight-bit codes: coordinate j of row r is about scales[r] * (bytes[r * stride + j] - 128). */
typedef struct carag_codes {
    uint8_t *bytes; /* [capacity * stride], 64-byte aligned, padding 128 */
    size_t stride;  /* dim rounded up to CARAG_CODE_BLOCK */
    float *scales;  /* [capacity] */
    float *errors;  /* [capacity] at least the length of what the code lost of the kept vector */
} carag_codes;

/* One-bit codes, of rows at their positions (carag_row_at): signs of the rotated vector less the rotated centre of the
 * row's cell, or less the mean of the rows where it is in none (code/bits.c). */
typedef struct carag_bits {
    uint8_t *packs; /* [carag_packs(capacity) * carag_pack_bytes(8 words)]; lanes beyond the rows are zero */
    size_t words;   /* 64 coordinates each */
    float *centre;  /* [64 * words] the mean, rotated */
    float *signs;   /* [carag_rotation_floats(words)] of the rotation */
    uint32_t centred; /* rows it is the mean of */
} carag_bits;

/* The position of a query relative to a centre. */
typedef struct carag_sight {
    float near; /* their dot product */
    float away; /* the distance between them */
} carag_sight;

/* A query in every shape that a plan reads. */
typedef struct carag_query {
    float *unit;         /* [stride] unit length, padding zero */
    bool has_codes;      /* the next three are filled on demand (code/bytes.c) */
    int8_t *codes;       /* [codes.stride] */
    float scale;         /* unit[j] is about scale * codes[j] */
    float error;         /* at least the length of what that lost */
    bool has_cells;      /* the cells were ranked for it (search/order.c) */
    bool has_bits;       /* the rest is filled on demand (code/bits.c) */
    float *rotated;      /* [64 words] */
    uint8_t *table;      /* [256 words] */
    carag_pack_query lookup;
    carag_sight of_mean;
} carag_query;

/* The number of packs for a number of positions. */
static inline size_t carag_packs(uint32_t rows)
{
    return ((size_t)rows + CARAG_PACK - 1) / CARAG_PACK;
}

/* To the nearest integer, ties to even, of |x| < 2^22: as rintf, but the compiler can do many at a time. */
static inline float carag_round(float x)
{
    return (x + 0x1.8p23F) - 0x1.8p23F;
}

/* code/bytes.c */
float carag_encode_unit(const float *unit, size_t padded, uint8_t *out_bytes, size_t stride);
carag_status carag_normalise(const float *vector, uint32_t dim, float *out_unit, uint64_t row, carag_fault *out_fault);
void carag_keep_vector(const carag_index *index, carag_view *view, uint32_t row, const float *unit);
void carag_widen_vector(const carag_index *index, const carag_view *view, uint32_t row, float *out_vector);
void carag_query_renew(carag_query *query);
void carag_query_encode(const carag_index *index, const carag_codes *codes, carag_query *query);
float carag_score(const carag_index *index, const carag_view *view, const carag_kernel *kernel, const float *query,
                  float *room, uint32_t row);

/* code/bits.c */
size_t carag_bits_words(uint32_t dim);
size_t carag_rotation_floats(size_t words);
void carag_rotation_init(float *out_signs, size_t words);
void carag_rotate(float *vector, const float *signs, size_t words);
carag_status carag_bits_encode(const carag_index *index, carag_view *view, uint32_t first, uint32_t rows,
                               uint32_t threads);
carag_status carag_bits_extend(const carag_index *index, carag_view *view, const carag_view *from);
void carag_bits_move(const carag_bits *to, uint32_t position, const carag_bits *from, uint32_t old);
void carag_bits_clear(const carag_bits *bits, uint32_t from);
void carag_query_sketch(const carag_bits *bits, size_t dim, carag_query *query);

#endif
