/* hash.h - a 64-bit mixer, the layers drawn from it, and a hash of 32 bits that costs less.
 *
 * The layers of a row are a function of (seed, row number): there is no generator state to save, to lock or
 * to disagree about, and a loaded file can be checked against it.
 */
#ifndef CARAG_HASH_H
#define CARAG_HASH_H

#include <stdint.h>

#define CARAG_MAX_LEVEL 15 /* top layer that a row may have */

/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection with full avalanche. */
static inline uint64_t carag_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The top bits of a very cheap hash: Fibonacci hashing (Knuth, vol. 3, 6.4). */
static inline uint32_t carag_scatter(uint32_t x, unsigned bits)
{
    return (x * UINT32_C(0x9E3779B1)) >> (32 - bits);
}

/* The top layer of a row: level >= l with probability M^-l, as floor(-ln(u) / ln(M)) of the HNSW paper
 * (section 4.1), in integers so that every machine agrees. Requires M >= 2. */
static inline uint8_t carag_level_of(uint64_t seed, uint32_t row, uint32_t M)
{
    const uint64_t draw = carag_mix(carag_mix(seed) + ((uint64_t)row + 1) * UINT64_C(0x9e3779b97f4a7c15));
    uint64_t bound = UINT64_MAX / M;
    uint8_t level = 0;
    while (draw < bound && level < CARAG_MAX_LEVEL) {
        level++;
        bound /= M;
    }
    return level;
}

#endif
