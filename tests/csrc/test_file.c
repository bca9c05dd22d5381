/* test_file.c - what was saved is what is loaded, by every kernel, to the last byte.
 *
 * usage: test_file DIRECTORY [remake]     remake: write the golden files again
 */
#include "files.h"

/* ---------------------------------------------------------------- checksums */

/* RFC 3720, B.4; and what the processor computes is what the tables compute, at any length and alignment. */
static void the_checksum_is_the_published_one(void)
{
    carag_crc_tables tables;
    carag_crc_tables_init(&tables);
    carag_crc_tables plain = tables;
    plain.has_instruction = false;
    uint8_t zeros[32] = {0};
    CHECK(carag_crc(&tables, 0, "123456789", 9) == 0xE3069283);
    CHECK(carag_crc(&tables, 0, zeros, sizeof zeros) == 0x8A9136AA);
    const size_t most = 4 * 3 * CARAG_CRC_PIECE;
    float *noise = random_vectors(1, most / 4 + 2, 1);
    const uint8_t *bytes = (const uint8_t *)noise;
    for (size_t size = 0; size <= most; size += size < 100 ? 1 : 1021)
        for (size_t at = 0; at < 3; at++)
            CHECK(carag_crc(&tables, 7, bytes + at, size) == carag_crc(&plain, 7, bytes + at, size));
    CHECK(carag_crc(&tables, carag_crc(&tables, 0, bytes, 30000), bytes + 30000, 10000) ==
          carag_crc(&plain, 0, bytes, 40000));
    free(noise);
}

/* ---------------------------------------------------------------- round trips */

static void a_saved_index_loads_as_it_was(carag_dtype dtype, int map)
{
    const uint32_t sizes[] = {0, 1, 2, 17, 300};
    for (size_t s = 0; s < 5; s++) {
        carag_index *index = small_index(dtype, sizes[s]);
        blob first = saved(index);
        carag_index *again = loaded(map);
        CHECK(carag_index_check(again, NULL) == 0);
        CHECK_OK(carag_index_verify(again, NULL));
        answer_alike(index, again);
        blob second = saved(again);
        CHECK(same(first, second));

        /* and goes on as the first would */
        for (uint32_t round = 0; round < 2; round++) {
            const int64_t key = 0;
            const uint32_t word = WORD(2);
            if (sizes[s] > 0) {
                CHECK_OK(carag_index_relabel(index, &key, &word, 1, 0, NULL));
                CHECK_OK(carag_index_relabel(again, &key, &word, 1, 0, NULL));
            }
            add_rows(index, 20 + round, 1 + 3 * round);
            add_rows(again, 20 + round, 1 + 3 * round);
            answer_alike(index, again);
            blob a = saved(index);
            blob b = saved(again);
            CHECK(same(a, b));
            free(a.bytes);
            free(b.bytes);
        }
        CHECK_OK(carag_index_consolidate(index, 1, NULL));
        CHECK_OK(carag_index_consolidate(again, 1, NULL));
        CHECK(carag_index_check(again, NULL) == 0);
        answer_alike(index, again);
        free(first.bytes);
        free(second.bytes);
        carag_index_free(index);
        carag_index_free(again);
    }
}

static void changes_of_a_mapped_index_stay_out_of_its_file(void)
{
    carag_index *index = small_index(CARAG_FLOAT32, 40);
    blob before = saved(index);
    carag_index *mapped = loaded(1);
    const int64_t keys[] = {3, 4};
    const uint32_t words[] = {WORD(1), WORD(2)};
    CHECK(carag_index_contains(mapped, 3) && !carag_index_contains(mapped, 1));
    CHECK_OK(carag_index_relabel(mapped, keys, words, 2, 0, NULL));
    CHECK_OK(carag_index_delete(mapped, keys, 1, NULL));
    add_rows(mapped, 5, 3);
    blob after = read_file(path);
    CHECK(same(before, after));
    CHECK_OK(carag_index_verify(mapped, NULL));
    free(before.bytes);
    free(after.bytes);
    carag_index_free(index);
    carag_index_free(mapped);
}

static void a_mapped_file_may_be_replaced(void)
{
    carag_index *index = small_index(CARAG_FLOAT32, 40);
    carag_index *another = small_index(CARAG_FLOAT32, 300);
    free(saved(index).bytes);
    carag_index *mapped = loaded(1);
    free(saved(another).bytes);
    answer_alike(index, mapped);
    CHECK_OK(carag_index_verify(mapped, NULL));
    free(saved(mapped).bytes); /* itself, over the other */
    carag_index *again = loaded(1);
    answer_alike(index, again);
    CHECK(unlink(path) == 0);
    answer_alike(index, again);
    CHECK_OK(carag_index_preload(again, NULL));
    CHECK_OK(carag_index_preload(again, NULL));
    answer_alike(index, again);
    carag_index_free(index);
    carag_index_free(another);
    carag_index_free(mapped);
    carag_index_free(again);
}

/* ---------------------------------------------------------------- golden files */

/* tests/index/test_file.py follows the same recipe in Python. */
static carag_index *golden_index(carag_dtype dtype, bool has_audiences)
{
    enum { ROWS = 24, GOLDEN_DIM = 5 };
    const carag_params params = {.dim = GOLDEN_DIM, .M = 2, .ef_construction = 10, .seed = 42, .dtype = dtype};
    const int64_t deleted = 50;
    float vectors[ROWS * GOLDEN_DIM];
    uint32_t words[ROWS];
    uint32_t public_at[ROWS];
    uint32_t expires_at[ROWS];
    uint32_t entities[ROWS];
    uint32_t audiences[ROWS];
    int64_t keys[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t j = 0; j < GOLDEN_DIM; j++)
            vectors[i * GOLDEN_DIM + j] = (float)((int)((i * 7 + j * 13 + i * i * j) % 11) - 4);
        words[i] = i == 7 ? 3 : WORD(i % 8);
        public_at[i] = i == 9 ? CARAG_NEVER_PUBLIC : i / 4 * 100;
        expires_at[i] = i % 6 == 5 ? 10000 : CARAG_NEVER_EXPIRES;
        entities[i] = i % 3;
        audiences[i] = i % 4 == 2 ? i * i : CARAG_EVERYBODY;
        keys[i] = 10 * (int64_t)i;
    }
    carag_rows rows = rows_of(vectors, words, ROWS);
    rows.public_at = public_at;
    rows.expires_at = expires_at;
    rows.entities = entities;
    rows.audiences = has_audiences ? audiences : NULL;
    rows.keys = keys;
    carag_index *index;
    CHECK_OK(carag_index_new(&params, &index, NULL));
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    CHECK_OK(carag_index_delete(index, &deleted, 1, NULL));
    return index;
}

static const char *const golden_names[] = {
    "../index/golden/v3_float32.carag", "../index/golden/v3_float16.carag", "../index/golden/v3_int8.carag"};
static const char *const old_names[] = {
    "../index/golden/v2_float32.carag", "../index/golden/v2_float16.carag", "../index/golden/v2_int8.carag"};

/* Committed files, made by the recipe on x86-64, are made again to the last byte by any kernel on any machine. */
static void the_golden_files_are_made_again(bool remakes)
{
    for (size_t i = 0; i < carag_kernel_count(); i++)
        for (int dtype = CARAG_FLOAT32; dtype <= CARAG_INT8; dtype++) {
            if (!carag_kernel_is_available(i))
                continue;
            CHECK_OK(carag_set_kernel(carag_kernel_name(i), NULL));
            carag_index *index = golden_index((carag_dtype)dtype, true);
            blob made = saved(index);
            if (remakes)
                write_file(golden_names[dtype], made.bytes, made.size);
            blob golden = read_file(golden_names[dtype]);
            CHECK(same(made, golden));
            for (int map = 0; map < 2; map++) {
                carag_index *again = loaded(map);
                CHECK_OK(carag_index_verify(again, NULL));
                carag_index_free(again);
            }
            carag_index_free(index);
            free(made.bytes);
            free(golden.bytes);
        }
}

/* A file of the version before is an index whose rows are all for everybody, and is saved as one. */
static void the_version_before_is_for_everybody(void)
{
    for (int dtype = CARAG_FLOAT32; dtype <= CARAG_INT8; dtype++)
        for (int map = 0; map < 2; map++) {
            carag_index *index = golden_index((carag_dtype)dtype, false);
            carag_index *old;
            CHECK_OK(carag_index_load(old_names[dtype], map, &old, NULL));
            CHECK_OK(carag_index_verify(old, NULL));
            blob made = saved(index);
            blob again = saved(old);
            CHECK(same(made, again));
            CHECK_OK(carag_index_preload(old, NULL));
            CHECK(carag_index_check(old, NULL) == 0);
            carag_index_free(index);
            carag_index_free(old);
            free(made.bytes);
            free(again.bytes);
        }
}

int main(int argc, char **argv)
{
    const bool remakes = argc > 2 && strcmp(argv[2], "remake") == 0;
    temporary(argc, argv, path, "test_file.carag");
    the_checksum_is_the_published_one();
    the_golden_files_are_made_again(remakes);
    the_version_before_is_for_everybody();
    for (int dtype = CARAG_FLOAT32; dtype <= CARAG_INT8; dtype++)
        for (int map = 0; map < 2; map++)
            a_saved_index_loads_as_it_was((carag_dtype)dtype, map);
    changes_of_a_mapped_index_stay_out_of_its_file();
    a_mapped_file_may_be_replaced();
    unlink(path);
    return 0;
}
