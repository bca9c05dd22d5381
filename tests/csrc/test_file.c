/* test_file.c - what was saved is what is loaded; what was altered in any bit, or cut anywhere, is refused. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static char path[512];

static unsigned char *read_file(const char *name, size_t *out_size)
{
    FILE *file = fopen(name, "rb");
    CHECK(file);
    CHECK(fseek(file, 0, SEEK_END) == 0);
    *out_size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*out_size + 1);
    CHECK(bytes && fread(bytes, 1, *out_size, file) == *out_size);
    fclose(file);
    return bytes;
}

static void write_file(const char *name, const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(name, "wb");
    CHECK(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static carag_index *small_index(uint32_t rows)
{
    const uint32_t dim = 3;
    carag_index *index = new_index(dim, 2, 3);
    float *vectors = random_vectors(1, rows + 1, dim);
    uint32_t *words = random_words(2, rows + 1, 3);
    const carag_rows batch = rows_of(vectors, words, rows);
    CHECK_OK(carag_index_add(index, &batch, NULL, NULL));
    if (rows > 2) {
        const int64_t key = 1;
        CHECK_OK(carag_index_delete(index, &key, 1, NULL));
    }
    free(vectors);
    free(words);
    return index;
}

static void a_saved_index_loads_as_it_was(void)
{
    const uint32_t sizes[] = {0, 1, 2, 17, 300};
    for (size_t s = 0; s < 5; s++) {
        carag_index *index = small_index(sizes[s]);
        carag_index *loaded;
        size_t size;
        size_t again;
        CHECK_OK(carag_index_save(index, path, NULL));
        unsigned char *bytes = read_file(path, &size);
        CHECK_OK(carag_index_load(path, &loaded, NULL));
        CHECK(carag_index_check(loaded, NULL) == 0);
        CHECK_OK(carag_index_save(loaded, path, NULL));
        unsigned char *saved = read_file(path, &again);
        CHECK(size == again && memcmp(bytes, saved, size) == 0);
        free(bytes);
        free(saved);

        /* and goes on growing as the first would */
        const float vector[3] = {1, 2, 3};
        const uint32_t word = WORD(1);
        const carag_rows one = rows_of(vector, &word, 1);
        CHECK_OK(carag_index_add(index, &one, NULL, NULL));
        CHECK_OK(carag_index_add(loaded, &one, NULL, NULL));
        CHECK_OK(carag_index_save(index, path, NULL));
        bytes = read_file(path, &size);
        CHECK_OK(carag_index_save(loaded, path, NULL));
        saved = read_file(path, &again);
        CHECK(size == again && memcmp(bytes, saved, size) == 0);
        free(bytes);
        free(saved);
        carag_index_free(index);
        carag_index_free(loaded);
    }
}

static void refuses(const unsigned char *bytes, size_t size)
{
    carag_index *loaded = NULL;
    carag_fault fault = {0};
    write_file(path, bytes, size);
    CHECK(carag_index_load(path, &loaded, &fault) == CARAG_CORRUPT);
    CHECK(loaded == NULL && strlen(fault.what) > 0 && strlen(fault.where) > 0);
}

static void every_flipped_bit_is_found(void)
{
    size_t size;
    carag_index *index = small_index(6);
    CHECK_OK(carag_index_save(index, path, NULL));
    unsigned char *bytes = read_file(path, &size);
    for (size_t at = 0; at < size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (unsigned char)(1 << bit);
            refuses(bytes, size);
            bytes[at] ^= (unsigned char)(1 << bit);
        }
    }
    carag_index_free(index);
    free(bytes);
}

static void every_truncation_and_every_extra_byte_is_found(void)
{
    size_t size;
    carag_index *index = small_index(6);
    CHECK_OK(carag_index_save(index, path, NULL));
    unsigned char *bytes = read_file(path, &size);
    for (size_t length = 0; length < size; length++)
        refuses(bytes, length);
    bytes[size] = 0;
    refuses(bytes, size + 1);
    carag_index_free(index);
    free(bytes);
}

static void a_failed_save_keeps_the_old_file(void)
{
    size_t size;
    carag_fault fault = {0};
    carag_index *index = small_index(6);
    CHECK_OK(carag_index_save(index, path, NULL));
    unsigned char *bytes = read_file(path, &size);
    char elsewhere[600];
    CHECK(snprintf(elsewhere, sizeof elsewhere, "%s.no/such/directory", path) > 0);
    CHECK(carag_index_save(index, elsewhere, &fault) == CARAG_IO && fault.os_error != 0);
    CHECK(carag_index_save(index, "/dev/null/x", &fault) == CARAG_IO);
    CHECK(snprintf(elsewhere, sizeof elsewhere, "%s.d", path) > 0);
    CHECK(mkdir(elsewhere, 0700) == 0);
    CHECK(carag_index_save(index, elsewhere, &fault) == CARAG_IO); /* a directory is in the way */
    CHECK(rmdir(elsewhere) == 0);                                  /* and nothing was left beside or in it */
    size_t again;
    unsigned char *after = read_file(path, &again);
    CHECK(size == again && memcmp(bytes, after, size) == 0);
    carag_index *loaded = NULL;
    CHECK(carag_index_load(elsewhere, &loaded, &fault) == CARAG_IO);
    CHECK(carag_index_load("/dev/zero", &loaded, &fault) == CARAG_CORRUPT && loaded == NULL);
    carag_index_free(index);
    free(bytes);
    free(after);
}

/* The committed file of format version 1, made by this recipe on x86-64, is made again to the last byte by any kernel
 * on any machine. tests/index/test_file.py follows the same recipe in Python. */
static void the_golden_file_is_made_again(void)
{
    enum { GOLDEN_ROWS = 24, GOLDEN_DIM = 5 };
    const carag_params params = {.dim = GOLDEN_DIM, .M = 2, .ef_construction = 10, .seed = 42};
    const int64_t deleted = 50;
    float vectors[GOLDEN_ROWS * GOLDEN_DIM];
    uint32_t words[GOLDEN_ROWS];
    uint32_t public_at[GOLDEN_ROWS];
    int64_t keys[GOLDEN_ROWS];
    for (int i = 0; i < GOLDEN_ROWS; i++) {
        for (int j = 0; j < GOLDEN_DIM; j++)
            vectors[i * GOLDEN_DIM + j] = (float)((i * 7 + j * 13 + i * i * j) % 11 - 4);
        words[i] = i == 7 ? 3 : WORD(i % 8);
        public_at[i] = i == 9 ? CARAG_NEVER_PUBLIC : (uint32_t)i * 100;
        keys[i] = 10 * i;
    }
    carag_rows rows = rows_of(vectors, words, GOLDEN_ROWS);
    rows.public_at = public_at;
    rows.keys = keys;
    for (size_t i = 0; i < carag_kernel_count(); i++) {
        carag_index *index;
        size_t size;
        size_t golden_size;
        if (!carag_kernel_is_available(i))
            continue;
        CHECK_OK(carag_set_kernel(carag_kernel_name(i), NULL));
        CHECK_OK(carag_index_new(&params, &index, NULL));
        CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
        CHECK_OK(carag_index_delete(index, &deleted, 1, NULL));
        CHECK_OK(carag_index_save(index, path, NULL));
        unsigned char *bytes = read_file(path, &size);
        unsigned char *golden = read_file("../index/golden/v1_small.carag", &golden_size);
        CHECK(size == golden_size && memcmp(bytes, golden, size) == 0);
        carag_index_free(index);
        free(bytes);
        free(golden);
    }
}

int main(int argc, char **argv)
{
    temporary(argc, argv, path, "test_file.carag");
    a_saved_index_loads_as_it_was();
    every_flipped_bit_is_found();
    every_truncation_and_every_extra_byte_is_found();
    a_failed_save_keeps_the_old_file();
    the_golden_file_is_made_again();
    unlink(path);
    return 0;
}
