/* fuzz_load.c - the loader fed with anything.
 *
 * Hazard: a count or an id from the file that indexes memory. The checksums would keep a fuzzer out, so they are
 * put right first, where the header's table can be followed: what is left to stop a bad file are the checks of counts,
 * sizes, levels, links and parents. An index that loads must be sound and must answer.
 *
 * With libFuzzer:   clang -fsanitize=fuzzer,address ... fuzz_load.c
 * With gcc alone:   replay.c runs the committed corpus, and seeded mutations of it, through the same function.
 */
#define CARAG_ALLOW_LIBC
#include "carag_internal.h"

#include <string.h>
#include <unistd.h>

#include "check.h"
#include "crc32c.h"

enum { HEADER = 384, TABLE = 72, ENTRY_SIZE = 32, SECTION_COUNT = 9, HEADER_CRC = 380 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_checksums_right(uint8_t *bytes, size_t size)
{
    carag_crc_tables tables;
    carag_crc_tables_init(&tables);
    if (size < HEADER)
        return;
    for (int s = 0; s < SECTION_COUNT; s++) {
        uint8_t *entry = bytes + TABLE + ENTRY_SIZE * s;
        uint64_t offset;
        uint64_t length;
        memcpy(&offset, entry + 8, 8);
        memcpy(&length, entry + 16, 8);
        if (offset > size || length > size - offset)
            continue;
        const uint32_t crc = carag_crc(&tables, 0, bytes + offset, length);
        memcpy(entry + 24, &crc, 4);
    }
    const uint32_t crc = carag_crc(&tables, 0, bytes, HEADER_CRC);
    memcpy(bytes + HEADER_CRC, &crc, 4);
}

static void use(carag_index *index)
{
    const carag_predicate open = one_mask(0, 0);
    carag_info info;
    carag_index_info(index, &info);
    float *vector = random_vectors(1, 1, info.params.dim);
    const uint32_t word = WORD(0);
    const carag_rows one = rows_of(vector, &word, 1);
    CHECK(carag_index_check(index, NULL) == 0);
    for (int plan = CARAG_PLAN_EXACT; plan <= CARAG_PLAN_GRAPH; plan++) {
        answer got;
        CHECK_OK(search_one(index, vector, &open, 5, 10, (carag_plan)plan, &got));
        CHECK((uint64_t)got.count == (got.admissible < 5 ? got.admissible : 5));
        free_answer(&got);
    }
    CHECK_OK(carag_index_add(index, &one, NULL, NULL));
    CHECK(carag_index_check(index, NULL) == 0);
    free(vector);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/fuzz_load.XXXXXX";
    uint8_t *bytes = malloc(size + 1);
    CHECK(bytes);
    memcpy(bytes, data, size);
    put_checksums_right(bytes, size);
    const int file = mkstemp(path);
    CHECK(file >= 0 && write(file, bytes, size) == (ssize_t)size && close(file) == 0);
    carag_index *index = NULL;
    const carag_status status = carag_index_load(path, &index, NULL);
    CHECK((status == CARAG_OK) == (index != NULL));
    CHECK(status == CARAG_OK || status == CARAG_CORRUPT);
    if (index)
        use(index);
    carag_index_free(index);
    unlink(path);
    free(bytes);
    return 0;
}
