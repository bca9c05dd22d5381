/* crc32c.h - the Castagnoli CRC (RFC 3720, appendix B.4), eight bytes a step.
 *
 * Against accidents: any single flipped bit and any burst up to 32 bits is found. It is no defence against an
 * adversary, who can recompute it; the loader checks structure as well. The tables (8 KB) are made per file.
 */
#ifndef CARAG_CRC32C_H
#define CARAG_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct carag_crc_tables {
    uint32_t at[8][256];
} carag_crc_tables;

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
}

/* Continue a checksum; the first call passes crc = 0. */
static inline uint32_t carag_crc(const carag_crc_tables *tables, uint32_t crc, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    crc = ~crc;
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
