/* file/crc32c.h - the Castagnoli CRC (RFC 3720, appendix B.4): by the processor's instruction, else eight bytes a step.
 *
 * It detects accidents: any single flipped bit and any burst up to 32 bits. It does not protect against an adversary,
 * who can recompute it; the loader checks structure as well. The tables (12 KB) are made per file.
 *
 * The instruction takes three cycles and can begin every cycle, so three pieces are summed side by side; what stands
 * before a piece is moved past it by a table, which is what that many zeros do to a sum.
 */
#ifndef CARAG_FILE_CRC32C_H
#define CARAG_FILE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CARAG_CRC_PIECE 4096 /* bytes of each of three streams that are summed side by side */

typedef struct carag_crc_tables {
    uint32_t at[8][256];
    uint32_t past[4][256]; /* a sum moved past a piece of zeros, byte by byte of the sum */
    bool has_instruction;
} carag_crc_tables;

#if defined(__x86_64__)
#define CARAG_CRC_INSTRUCTION __attribute__((target("sse4.2"))) static inline

static inline uint64_t carag_crc_load(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

CARAG_CRC_INSTRUCTION void carag_crc_init_past(carag_crc_tables *tables)
{
    for (int byte = 0; byte < 4; byte++) {
        tables->past[byte][0] = 0;
        for (int bit = 0; bit < 8; bit++) {
            uint64_t moved = (uint64_t)1 << (8 * byte + bit);
            for (int i = 0; i < CARAG_CRC_PIECE / 8; i++)
                moved = __builtin_ia32_crc32di(moved, 0);
            for (int low = 0; low < 1 << bit; low++) /* linear: each bit adds its own */
                tables->past[byte][(1 << bit) + low] = (uint32_t)moved ^ tables->past[byte][low];
        }
    }
}

static inline uint32_t carag_crc_past(const carag_crc_tables *tables, uint32_t crc)
{
    return tables->past[0][crc & 0xFF] ^ tables->past[1][crc >> 8 & 0xFF] ^ tables->past[2][crc >> 16 & 0xFF] ^
           tables->past[3][crc >> 24];
}

/* Whole words only; crc is the register, not complemented. */
CARAG_CRC_INSTRUCTION uint32_t carag_crc_words(const carag_crc_tables *tables, uint32_t crc, const unsigned char *bytes,
                                               size_t words)
{
    uint64_t first = crc;
    for (; words >= 3 * CARAG_CRC_PIECE / 8; words -= 3 * CARAG_CRC_PIECE / 8, bytes += 3 * CARAG_CRC_PIECE) {
        uint64_t second = 0;
        uint64_t third = 0;
        for (size_t i = 0; i < CARAG_CRC_PIECE; i += 8) {
            first = __builtin_ia32_crc32di(first, carag_crc_load(bytes + i));
            second = __builtin_ia32_crc32di(second, carag_crc_load(bytes + CARAG_CRC_PIECE + i));
            third = __builtin_ia32_crc32di(third, carag_crc_load(bytes + 2 * CARAG_CRC_PIECE + i));
        }
        first = carag_crc_past(tables, carag_crc_past(tables, (uint32_t)first) ^ (uint32_t)second) ^ third;
    }
    for (; words > 0; words--, bytes += 8)
        first = __builtin_ia32_crc32di(first, carag_crc_load(bytes));
    return (uint32_t)first;
}
#endif

static inline void carag_crc_tables_init(carag_crc_tables *tables)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? UINT32_C(0x82F63B78) : 0);
        tables->at[0][byte] = crc;
    }
    for (int t = 1; t < 8; t++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            const uint32_t crc = tables->at[t - 1][byte];
            tables->at[t][byte] = (crc >> 8) ^ tables->at[0][crc & 0xFF];
        }
    tables->has_instruction = false;
#if defined(__x86_64__)
    __builtin_cpu_init();
    tables->has_instruction = __builtin_cpu_supports("sse4.2");
    if (tables->has_instruction)
        carag_crc_init_past(tables);
#endif
}

/* Continue a checksum; the first call passes crc = 0. */
static inline uint32_t carag_crc(const carag_crc_tables *tables, uint32_t crc, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    crc = ~crc;
#if defined(__x86_64__)
    if (tables->has_instruction) {
        crc = carag_crc_words(tables, crc, bytes, size / 8);
        bytes += size / 8 * 8;
        size %= 8;
    }
#endif
    for (; size >= 8; size -= 8, bytes += 8) {
        uint32_t low;
        uint32_t high;
        memcpy(&low, bytes, 4);
        memcpy(&high, bytes + 4, 4);
        low ^= crc;
        crc = tables->at[7][low & 0xFF] ^ tables->at[6][low >> 8 & 0xFF] ^ tables->at[5][low >> 16 & 0xFF] ^
              tables->at[4][low >> 24] ^ tables->at[3][high & 0xFF] ^ tables->at[2][high >> 8 & 0xFF] ^
              tables->at[1][high >> 16 & 0xFF] ^ tables->at[0][high >> 24];
    }
    for (; size > 0; size--, bytes++)
        crc = (crc >> 8) ^ tables->at[0][(crc ^ *bytes) & 0xFF];
    return ~crc;
}

#endif
