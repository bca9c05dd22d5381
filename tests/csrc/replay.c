/* replay.c - run files through a fuzz target under plain gcc: each as it is, then with seeded mutations.
 *
 * usage: fuzz_load MUTATIONS FILE...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One to four edits: a byte, a bit, a 32-bit word of an interesting value, or a cut. */
static size_t mutate(uint8_t *bytes, size_t size, uint64_t *state)
{
    static const uint32_t values[] = {0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, 0x40000000};
    for (uint64_t edits = 1 + draw(state) % 4; edits > 0 && size >= 4; edits--) {
        const size_t at = (size_t)(draw(state) >> 8) % (size - 3);
        switch (draw(state) >> 32 & 7) {
        case 0: bytes[at] = (uint8_t)(draw(state) >> 16); break;
        case 1: bytes[at] ^= (uint8_t)(1U << (draw(state) >> 16 & 7)); break;
        case 2: size = draw(state) >> 32 & 7 ? size : at; break;
        case 3: bytes[at]++; break;
        default: memcpy(bytes + at / 4 * 4, &values[draw(state) >> 32 & 7], 4); break;
        }
    }
    return size;
}

int main(int argc, char **argv)
{
    CHECK(argc > 2);
    const long mutations = strtol(argv[1], NULL, 10);
    for (int i = 2; i < argc; i++) {
        static uint8_t bytes[1 << 20];
        static uint8_t mutant[1 << 20];
        FILE *file = fopen(argv[i], "rb");
        CHECK(file);
        const size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        LLVMFuzzerTestOneInput(bytes, size);
        uint64_t state = (uint64_t)i * 2 + 1;
        for (long m = 0; m < mutations; m++) {
            memcpy(mutant, bytes, size);
            LLVMFuzzerTestOneInput(mutant, mutate(mutant, size, &state));
        }
    }
    return 0;
}
