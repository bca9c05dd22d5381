/* kernel/half.c - convert between IEEE binary16 and binary32 in integers, the same on every machine. */
#include "kernel/kernel.h"

#include <string.h>

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t carag_half(float value)
{
    const uint32_t bits = float_bits(value);
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t size = bits & 0x7FFFFFFF;
    uint32_t half;
    if (size > 0x7F800000) /* a NaN stays one, quiet, with what fits of its payload */
        half = 0x7E00 | (size >> 13 & 0x3FF);
    else if (size >= 0x47800000) /* 65536 and up; rounding carries what is just below there by itself */
        half = 0x7C00;
    else if (size < 0x38800000) /* below 2^-14 halves are multiples of 2^-24, the ulp of 0.5 */
        half = float_bits(bits_float(size) + 0.5F) - float_bits(0.5F);
    else /* rebias the exponent, add half an ulp less one if the last bit kept is even, and cut */
        half = (size - ((uint32_t)112 << 23) + 0xFFF + (size >> 13 & 1)) >> 13;
    return (uint16_t)(sign | half);
}

float carag_widen(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    const uint32_t size = half & 0x7FFF;
    if (size >= 0x7C00) /* infinity and NaN, made quiet as processors do */
        return bits_float(sign | 0x7F800000 | (size & 0x3FF ? 0x400000 | (size & 0x3FF) << 13 : 0));
    if (size >= 0x400)
        return bits_float(sign | ((size << 13) + ((uint32_t)112 << 23)));
    return bits_float(sign | float_bits((float)size * 0x1p-24F)); /* subnormal: a normal float, or zero */
}
