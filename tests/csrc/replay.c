/* replay.c - run files through a fuzz target under plain gcc: each as it is, then with seeded mutations.
 *
 * usage: fuzz_load MUTATIONS FILE...          MUTATIONS of each file
 *        fuzz_load MUTATIONS@SEED FILE...     others of them
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define MOST_BYTES 65536

extern unsigned long fuzz_loads[2];
extern unsigned long fuzz_accepted[2];
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

int main(int argc, char **argv)
{
    static uint8_t bytes[MOST_BYTES];
    static uint8_t mutant[MOST_BYTES];
    CHECK(argc > 2);
    char *end;
    const long mutations = strtol(argv[1], &end, 10);
    const unsigned int seed = *end == '@' ? (unsigned int)strtoul(end + 1, NULL, 10) : 0;
    for (int i = 2; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        CHECK(file);
        const size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        LLVMFuzzerTestOneInput(bytes, size);
        for (long m = 0; m < mutations; m++) {
            memcpy(mutant, bytes, size);
            const size_t after =
                LLVMFuzzerCustomMutator(mutant, size, sizeof mutant, seed * 1000003U + (unsigned int)i * 7919U + (unsigned int)m);
            LLVMFuzzerTestOneInput(mutant, after);
        }
    }
    printf("read whole: %lu, accepted %lu; mapped: %lu, accepted %lu\n", fuzz_loads[0], fuzz_accepted[0], fuzz_loads[1],
           fuzz_accepted[1]);
    return 0;
}
