/* files.h - small indexes, their files as bytes, and questions that an index loaded from any bytes must answer.
 *
 * Included before any header of the system: the core's say which of its functions there are. Set `path` before saving.
 */
#ifndef CARAG_TEST_FILES_H
#define CARAG_TEST_FILES_H

#define CARAG_ALLOW_LIBC
#include "file/file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "file/crc32c.h"

#define DIM 3
#define K 5

static char path[512];

/* ---------------------------------------------------------------- files */

typedef struct blob {
    unsigned char *bytes;
    size_t size;
} blob;

static inline blob read_file(const char *name)
{
    FILE *file = fopen(name, "rb");
    CHECK(file);
    CHECK(fseek(file, 0, SEEK_END) == 0);
    blob got = {.size = (size_t)ftell(file)};
    rewind(file);
    got.bytes = malloc(got.size + 1);
    CHECK(got.bytes && fread(got.bytes, 1, got.size, file) == got.size);
    fclose(file);
    return got;
}

/* In place: some file systems write a file that was emptied out to the disk when it is closed, and tests write many. */
static inline void write_file(const char *name, const unsigned char *bytes, size_t size)
{
    const int file = open(name, O_WRONLY | O_CREAT, 0600);
    CHECK(file >= 0 && pwrite(file, bytes, size, 0) == (ssize_t)size && ftruncate(file, (off_t)size) == 0);
    CHECK(close(file) == 0);
}

static inline blob saved(carag_index *index)
{
    CHECK_OK(carag_index_save(index, path, NULL));
    return read_file(path);
}

static inline bool same(blob a, blob b)
{
    return a.size == b.size && memcmp(a.bytes, b.bytes, a.size) == 0;
}

static inline carag_header *header_of(blob file)
{
    return (carag_header *)(void *)file.bytes;
}

static inline unsigned char *section_of(blob file, const char *name, size_t *out_size)
{
    for (int s = 0; s < SECTIONS; s++)
        if (strncmp(header_of(file)->sections[s].name, name, sizeof header_of(file)->sections[s].name) == 0) {
            *out_size = header_of(file)->sections[s].size;
            return file.bytes + header_of(file)->sections[s].offset;
        }
    CHECK(!"there is no such section");
    return NULL;
}

/* What an enemy does after altering something. */
static inline void put_checksums_right(blob file)
{
    carag_header *header = header_of(file);
    carag_crc_tables tables;
    carag_crc_tables_init(&tables);
    for (int s = 0; s < SECTIONS; s++)
        if (header->sections[s].offset <= file.size && header->sections[s].size <= file.size - header->sections[s].offset)
            header->sections[s].crc =
                carag_crc(&tables, 0, file.bytes + header->sections[s].offset, header->sections[s].size);
    header->crc = carag_crc(&tables, 0, header, offsetof(carag_header, crc));
}

/* ---------------------------------------------------------------- indexes */

static inline void add_rows(carag_index *index, uint64_t seed, uint32_t count)
{
    float *vectors = random_vectors(seed, count + 1, DIM);
    uint32_t *words = random_words(seed, count + 1, 2);
    uint32_t *terms = malloc(4 * ((size_t)count + 1) * sizeof *terms);
    CHECK(terms);
    for (uint32_t i = 0; i < count; i++) {
        terms[i] = i % 3 * 100;
        terms[count + i] = i % 4 ? CARAG_NEVER_EXPIRES : 1000;
        terms[2 * count + i] = i % 5;
        terms[3 * (size_t)count + i] = i % 7 == 6 ? 1 + i % 4 : CARAG_EVERYBODY;
    }
    carag_rows rows = rows_of(vectors, words, count);
    rows.public_at = terms;
    rows.expires_at = terms + count;
    rows.entities = terms + 2 * (size_t)count;
    rows.audiences = terms + 3 * (size_t)count;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    free(vectors);
    free(words);
    free(terms);
}

/* With a row deleted and one moved to another class, where there are as many. */
static inline carag_index *small_index(carag_dtype dtype, uint32_t rows)
{
    carag_index *index = new_index_of(dtype, DIM, 2, 3);
    add_rows(index, 1, rows);
    const int64_t deleted = 1;
    const int64_t moved = 2;
    const uint32_t word = WORD(7);
    if (rows > 2) {
        CHECK_OK(carag_index_delete(index, &deleted, 1, NULL));
        CHECK_OK(carag_index_relabel(index, &moved, &word, 1, 0, NULL));
    }
    return index;
}

static inline carag_index *loaded(int map)
{
    carag_index *index = NULL;
    CHECK_OK(carag_index_load(path, map, &index, NULL));
    return index;
}

static inline carag_predicate open_on(uint32_t required, uint32_t as_of)
{
    static const uint64_t audiences[] = {2 + 8};
    carag_predicate predicate = one_mask(required, 0);
    ask_at(&predicate, as_of);
    share_with(&predicate, audiences, 0);
    return predicate;
}

/* The same answers to some questions, on every plan. */
static inline void answer_alike(carag_index *a, carag_index *b)
{
    float *queries = random_vectors(9, 4, DIM);
    for (uint32_t q = 0; q < 4; q++)
        for (int plan = CARAG_PLAN_EXACT; plan < CARAG_PLANS; plan++) {
            const carag_predicate predicate = open_on(q % 2, 50 + 500 * q);
            answer x;
            answer y;
            CHECK_OK(search_one(a, queries + (size_t)q * DIM, &predicate, K, 10, (carag_plan)plan, &x));
            CHECK_OK(search_one(b, queries + (size_t)q * DIM, &predicate, K, 10, (carag_plan)plan, &y));
            CHECK(x.admissible == y.admissible && x.count == y.count);
            CHECK(memcmp(x.keys, y.keys, K * sizeof *x.keys) == 0);
            CHECK(memcmp(x.similarities, y.similarities, K * sizeof *x.similarities) == 0);
            free_answer(&x);
            free_answer(&y);
        }
    free(queries);
}

/* Whatever is in the file: answers come, and every row in them is one that may be. Requires distinct keys. */
static inline void answer_safely(carag_index *index)
{
    const float query[DIM] = {1, 2, 3};
    for (int plan = CARAG_PLAN_AUTO; plan < CARAG_PLANS; plan++)
        for (uint32_t required = 0; required < 4; required++) {
            const carag_predicate predicate = open_on(required, 150);
            answer got;
            CHECK_OK(search_one(index, query, &predicate, K, 10, (carag_plan)plan, &got));
            CHECK(got.count <= K && (uint64_t)got.count <= got.admissible);
            for (int64_t i = 0; i < got.count; i++) {
                uint32_t word;
                uint32_t public_at;
                uint32_t expires_at;
                uint32_t audience;
                const carag_columns columns = {
                    .words = &word, .public_at = &public_at, .expires_at = &expires_at, .audiences = &audience};
                CHECK_OK(carag_index_get(index, &got.keys[i], 1, &columns, NULL));
                CHECK((word & (required | CONTROL)) == WORD(required) && public_at <= 150 && expires_at > 150);
                CHECK(audience == CARAG_EVERYBODY || audience == 1 || audience == 3);
            }
            free_answer(&got);
        }
}

#endif
