/* test_file.c - what was saved is what is loaded; what was altered in any bit, or cut anywhere, is refused; and what a
 * mapped file hides from the eye can neither crash a search nor let a closed row through.
 *
 * usage: test_file DIRECTORY [remake]     remake: write the golden files again
 */
#define CARAG_ALLOW_LIBC
#include "file/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
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

static blob read_file(const char *name)
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
static void write_file(const char *name, const unsigned char *bytes, size_t size)
{
    const int file = open(name, O_WRONLY | O_CREAT, 0600);
    CHECK(file >= 0 && pwrite(file, bytes, size, 0) == (ssize_t)size && ftruncate(file, (off_t)size) == 0);
    CHECK(close(file) == 0);
}

static blob saved(carag_index *index)
{
    CHECK_OK(carag_index_save(index, path, NULL));
    return read_file(path);
}

static bool same(blob a, blob b)
{
    return a.size == b.size && memcmp(a.bytes, b.bytes, a.size) == 0;
}

static carag_header *header_of(blob file)
{
    return (carag_header *)(void *)file.bytes;
}

static unsigned char *section_of(blob file, const char *name, size_t *out_size)
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
static void put_checksums_right(blob file)
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

static void add_rows(carag_index *index, uint64_t seed, uint32_t count)
{
    float *vectors = random_vectors(seed, count + 1, DIM);
    uint32_t *words = random_words(seed, count + 1, 2);
    uint32_t *terms = malloc(3 * ((size_t)count + 1) * sizeof *terms);
    CHECK(terms);
    for (uint32_t i = 0; i < count; i++) {
        terms[i] = i % 3 * 100;
        terms[count + i] = i % 4 ? CARAG_NEVER_EXPIRES : 1000;
        terms[2 * count + i] = i % 5;
    }
    carag_rows rows = rows_of(vectors, words, count);
    rows.public_at = terms;
    rows.expires_at = terms + count;
    rows.entities = terms + 2 * (size_t)count;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    free(vectors);
    free(words);
    free(terms);
}

/* With a row deleted and one moved to another class, where there are as many. */
static carag_index *small_index(carag_dtype dtype, uint32_t rows)
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

static carag_index *loaded(int map)
{
    carag_index *index = NULL;
    CHECK_OK(carag_index_load(path, map, &index, NULL));
    return index;
}

static carag_predicate open_on(uint32_t required, uint32_t as_of)
{
    carag_predicate predicate = one_mask(required, 0);
    predicate.as_of = as_of;
    return predicate;
}

/* The same answers to some questions, on every plan. */
static void answer_alike(carag_index *a, carag_index *b)
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
static void answer_safely(carag_index *index)
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
                const carag_columns columns = {.words = &word, .public_at = &public_at, .expires_at = &expires_at};
                CHECK_OK(carag_index_get(index, &got.keys[i], 1, &columns, NULL));
                CHECK((word & (required | CONTROL)) == WORD(required) && public_at <= 150 && expires_at > 150);
            }
            free_answer(&got);
        }
}

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
    carag_index_free(index);
    carag_index_free(another);
    carag_index_free(mapped);
    carag_index_free(again);
}

/* ---------------------------------------------------------------- damage */

static void refuses(const unsigned char *bytes, size_t size, int map)
{
    carag_index *index = NULL;
    carag_fault fault = {0};
    write_file(path, bytes, size);
    CHECK(carag_index_load(path, map, &index, &fault) == CARAG_CORRUPT);
    CHECK(index == NULL && strlen(fault.what) > 0 && strlen(fault.where) > 0);
}

static void every_flipped_bit_is_found(carag_dtype dtype)
{
    carag_index *index = small_index(dtype, 6);
    blob file = saved(index);
    for (size_t at = 0; at < file.size; at++)
        for (size_t bit = dtype == CARAG_FLOAT32 ? 0 : at % 8; bit < 8; bit += dtype == CARAG_FLOAT32 ? 1 : 8) {
            file.bytes[at] ^= (unsigned char)(1 << bit);
            refuses(file.bytes, file.size, 0);
            file.bytes[at] ^= (unsigned char)(1 << bit);
        }
    carag_index_free(index);
    free(file.bytes);
}

static bool is_read_when_mapped(blob file, size_t at)
{
    const char *const names[] = {"words", "classes", "terms", "keys", "levels", "centre"};
    if (at < sizeof(carag_header))
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t size;
        const unsigned char *section = section_of(file, names[i], &size);
        if (file.bytes + at >= section && file.bytes + at < section + size)
            return true;
    }
    return false;
}

static void a_mapped_file_is_verified_in_two_steps(carag_dtype dtype)
{
    carag_index *index = small_index(dtype, 6);
    blob file = saved(index);
    blob whole = {malloc(file.size), file.size};
    CHECK(whole.bytes);
    memcpy(whole.bytes, file.bytes, file.size);
    for (size_t at = 0; at < file.size; at++) {
        carag_index *mapped = NULL;
        carag_fault fault = {0};
        file.bytes[at] ^= (unsigned char)(1 << at % 8);
        if (is_read_when_mapped(whole, at)) {
            refuses(file.bytes, file.size, 1);
        } else {
            write_file(path, file.bytes, file.size);
            CHECK_OK(carag_index_load(path, 1, &mapped, NULL));
            answer_safely(mapped);
            CHECK(carag_index_verify(mapped, &fault) == CARAG_CORRUPT && strlen(fault.where) > 0);
        }
        carag_index_free(mapped);
        file.bytes[at] ^= (unsigned char)(1 << at % 8);
    }
    carag_index_free(index);
    free(file.bytes);
    free(whole.bytes);
}

static void every_cut_and_every_extra_byte_is_found(carag_dtype dtype)
{
    carag_index *index = small_index(dtype, 6);
    blob file = saved(index);
    for (int map = 0; map < 2; map++) {
        for (size_t length = 0; length < file.size; length++)
            refuses(file.bytes, length, map);
        file.bytes[file.size] = 0;
        refuses(file.bytes, file.size + 1, map);
    }
    carag_index_free(index);
    free(file.bytes);
}

/* Not caught by a checksum: only by the checks. */
static void numbers_made_up_with_right_checksums_load_soundly_or_not_at_all(void)
{
    const uint32_t values[] = {0, 1, 2, 5, 6, 7, 63, 64, 255, 65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFBF, 0xFFFFFFFE, 0xFFFFFFFF};
    carag_index *index = small_index(CARAG_FLOAT32, 6);
    blob file = saved(index);
    for (size_t at = 8; at + 4 <= offsetof(carag_header, crc); at += 4)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            uint32_t before;
            memcpy(&before, file.bytes + at, 4);
            memcpy(file.bytes + at, &values[v], 4);
            put_checksums_right(file);
            write_file(path, file.bytes, file.size);
            for (int map = 0; map < 2; map++) {
                carag_index *altered = NULL;
                const carag_status status = carag_index_load(path, map, &altered, NULL);
                CHECK(status == CARAG_OK || status == CARAG_CORRUPT);
                CHECK((status == CARAG_OK) == (altered != NULL));
                CHECK(status != CARAG_OK || map || carag_index_check(altered, NULL) == 0);
                if (status == CARAG_OK && altered->params.dim == DIM)
                    answer_safely(altered);
                carag_index_free(altered);
            }
            memcpy(file.bytes + at, &before, 4);
        }
    carag_index_free(index);
    free(file.bytes);
}

static void a_graph_and_scores_that_lie_are_survived(void)
{
    const uint32_t values[] = {0, 5, 39, 40, 41, 0x7FC00000, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 1, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF};
    const char *const names[] = {"vectors", "links", "parents", "uplinks", "uparents", "codes",
                                 "scales",  "errors", "bits",   "factors"};
    carag_index *index = small_index(CARAG_FLOAT32, 40);
    blob file = saved(index);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            for (size_t step = 1; step < 4; step++) { /* all of it, every other, every third */
                size_t size;
                unsigned char *section = section_of(file, names[n], &size);
                unsigned char *before = malloc(size + 1);
                CHECK(before);
                memcpy(before, section, size);
                for (size_t at = 0; at + 4 <= size; at += 4 * step)
                    memcpy(section + at, &values[v], 4);
                put_checksums_right(file);
                write_file(path, file.bytes, file.size);
                carag_index *mapped = loaded(1);
                answer_safely(mapped);
                const carag_status sound = carag_index_verify(mapped, NULL);
                CHECK(sound == CARAG_OK || sound == CARAG_CORRUPT);
                carag_index_free(mapped);
                memcpy(section, before, size);
                free(before);
            }
    carag_index_free(index);
    free(file.bytes);
}

static void nothing_is_built_on_damage(void)
{
    carag_index *index = small_index(CARAG_FLOAT32, 40);
    blob file = saved(index);
    size_t size;
    section_of(file, "vectors", &size)[5] ^= 1;
    write_file(path, file.bytes, file.size);
    carag_index *mapped = loaded(1);
    const float vector[DIM] = {1, 2, 3};
    const uint32_t word = WORD(1);
    const carag_rows one = rows_of(vector, &word, 1);
    carag_fault fault = {0};
    carag_info info;
    CHECK(carag_index_add(mapped, &one, NULL, &fault) == CARAG_CORRUPT && strcmp(fault.where, "vectors") == 0);
    CHECK(carag_index_consolidate(mapped, 1, &fault) == CARAG_CORRUPT);
    carag_index_info(mapped, &info);
    CHECK(info.rows == 40 && info.live == 39);
    CHECK_OK(carag_index_save(mapped, path, NULL)); /* the damage, with the checksum that shows it */
    carag_index *again = NULL;
    CHECK(carag_index_load(path, 0, &again, &fault) == CARAG_CORRUPT && strcmp(fault.where, "vectors") == 0);
    carag_index_free(index);
    carag_index_free(mapped);
    free(file.bytes);
}

/* Live rows have classes, each of a word that may be stored, each another, numbered where they first occur; deleted rows
 * have none. Requires terms that are all the same. */
static bool classes_are_those_of_words(const uint32_t *words, const uint32_t *classes, uint32_t rows, uint32_t wanted,
                                       uint64_t live)
{
    uint32_t first[8]; /* the first row of each class */
    uint32_t count = 0;
    uint64_t seen = 0;
    for (uint32_t row = 0; row < rows; row++) {
        if ((words[row] >> 31 != 0) != (classes[row] == CARAG_NONE))
            return false;
        if (classes[row] == CARAG_NONE)
            continue;
        seen++;
        if (classes[row] > count || (words[row] >> 27 & 7) > 1)
            return false;
        if (classes[row] == count)
            first[count++] = row;
        for (uint32_t class = 0; class < count; class ++)
            if ((words[first[class]] == words[row]) != (class == classes[row]))
                return false;
    }
    return count == wanted && seen == live;
}

/* A closed row listed with an open class would be counted, and looked at, as one that may be found. */
static void classes_that_are_not_those_of_words_do_not_load(void)
{
    enum { ROWS = 5 };
    carag_index *index = new_index(DIM, 2, 1);
    float *vectors = random_vectors(5, ROWS, DIM);
    const uint32_t given[ROWS] = {WORD(0), WORD(0), WORD(1), WORD(2), WORD(3)};
    const uint32_t lies[] = {WORD(0), WORD(1), WORD(2), WORD(5), 0, WORD(1) | QUARANTINE, (uint32_t)2 << 27,
                             WORD(1) | (uint32_t)1 << 31};
    const int64_t deleted = 4;
    const carag_rows rows = rows_of(vectors, given, ROWS);
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    CHECK_OK(carag_index_delete(index, &deleted, 1, NULL));
    blob file = saved(index);
    size_t size;
    uint32_t *words = (uint32_t *)(void *)section_of(file, "words", &size);
    uint32_t *classes = (uint32_t *)(void *)section_of(file, "classes", &size);
    uint32_t loads = 0;
    CHECK(size == ROWS * sizeof *classes && header_of(file)->classes == 3 && header_of(file)->live == 4);
    for (uint32_t row = 0; row < ROWS; row++)
        for (size_t lie = 0; lie < sizeof lies / sizeof *lies; lie++)
            for (uint32_t class = 0; class < 5; class ++)
                for (uint32_t live = 3; live <= 5; live++) {
                    const uint32_t word_before = words[row];
                    const uint32_t class_before = classes[row];
                    words[row] = lies[lie];
                    classes[row] = class < 4 ? class : CARAG_NONE;
                    header_of(file)->live = live;
                    put_checksums_right(file);
                    write_file(path, file.bytes, file.size);
                    carag_index *altered = NULL;
                    const bool may_load = classes_are_those_of_words(words, classes, ROWS, 3, live);
                    carag_fault fault = {0};
                    CHECK((carag_index_load(path, 1, &altered, &fault) == CARAG_OK) == may_load);
                    if (class < 4 && lies[lie] >> 31) /* found as what it is, not as an unknown version */
                        CHECK(strcmp(fault.where, "classes") == 0);
                    loads += may_load;
                    carag_index_free(altered);
                    words[row] = word_before;
                    classes[row] = class_before;
                }
    CHECK(loads > 0);
    carag_index_free(index);
    free(vectors);
    free(file.bytes);
}

static void two_live_rows_of_one_key_are_found_when_keys_are_asked_for(void)
{
    carag_index *index = small_index(CARAG_FLOAT32, 40);
    blob file = saved(index);
    size_t size;
    unsigned char *keys = section_of(file, "keys", &size);
    memcpy(keys + 8 * 10, keys + 8 * 20, 8);
    put_checksums_right(file);
    refuses(file.bytes, file.size, 0);
    carag_index *mapped = loaded(1);
    int64_t key;
    uint32_t word = WORD(0);
    memcpy(&key, keys + 8 * 10, 8);
    const carag_columns columns = {.words = &word};
    CHECK(carag_index_get(mapped, &key, 1, &columns, NULL) == CARAG_CORRUPT);
    CHECK(carag_index_relabel(mapped, &key, &word, 1, 0, NULL) == CARAG_CORRUPT);
    CHECK(carag_index_delete(mapped, &key, 1, NULL) == CARAG_CORRUPT);
    CHECK(carag_index_verify(mapped, NULL) == CARAG_CORRUPT);
    CHECK(carag_index_contains(mapped, key) && !carag_index_contains(mapped, 1) && !carag_index_contains(mapped, 999));
    carag_index_free(index);
    carag_index_free(mapped);
    free(file.bytes);
}

/* ---------------------------------------------------------------- failed saves */

static void a_failed_save_keeps_the_old_file(void)
{
    carag_fault fault = {0};
    carag_index *index = small_index(CARAG_FLOAT32, 6);
    blob before = saved(index);
    char elsewhere[600];
    CHECK(snprintf(elsewhere, sizeof elsewhere, "%s.no/such/directory", path) > 0);
    CHECK(carag_index_save(index, elsewhere, &fault) == CARAG_IO && fault.os_error != 0);
    CHECK(carag_index_save(index, "/dev/null/x", &fault) == CARAG_IO);
    CHECK(snprintf(elsewhere, sizeof elsewhere, "%s.d", path) > 0);
    CHECK(mkdir(elsewhere, 0700) == 0);
    CHECK(carag_index_save(index, elsewhere, &fault) == CARAG_IO); /* a directory is in the way */
    blob after = read_file(path);
    CHECK(same(before, after));
    for (int map = 0; map < 2; map++) {
        carag_index *got = NULL;
        CHECK(carag_index_load(elsewhere, map, &got, &fault) != CARAG_OK && got == NULL);
        CHECK(carag_index_load("/dev/zero", map, &got, &fault) == CARAG_CORRUPT && got == NULL);
    }
    CHECK(rmdir(elsewhere) == 0); /* nothing was left beside or in it */
    carag_index_free(index);
    free(before.bytes);
    free(after.bytes);
}

/* Files in the directory of `path` whose names begin with its own and a dot: what a killed save leaves. */
static int litter(void)
{
    char directory[512];
    const char *name = strrchr(path, '/') + 1;
    int count = 0;
    CHECK(snprintf(directory, sizeof directory, "%.*s", (int)(name - path), path) > 0);
    DIR *open_directory = opendir(directory);
    CHECK(open_directory);
    for (struct dirent *entry; (entry = readdir(open_directory));)
        if (strncmp(entry->d_name, name, strlen(name)) == 0 && entry->d_name[strlen(name)] == '.') {
            CHECK(unlinkat(dirfd(open_directory), entry->d_name, 0) == 0);
            count++;
        }
    closedir(open_directory);
    return count;
}

/* The system ends the process at the write that passes a limit: so at any byte of the file. */
static void a_process_killed_while_writing_leaves_the_old_file(void)
{
    carag_index *small = small_index(CARAG_FLOAT32, 17);
    carag_index *large = small_index(CARAG_FLOAT32, 300);
    blob new = saved(large);
    blob old = saved(small);
    CHECK(litter() == 0);
    for (size_t limit = 0; limit < new.size; limit += new.size / 40 + 1) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            signal(SIGXFSZ, SIG_DFL);
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit});
            carag_index_save(large, path, NULL);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        blob now = read_file(path);
        CHECK(same(old, now));
        free(now.bytes);
        CHECK(litter() == 1);
    }
    carag_index_free(small);
    carag_index_free(large);
    free(old.bytes);
    free(new.bytes);
}

static void a_process_killed_at_any_time_leaves_a_whole_file(void)
{
    carag_index *a = small_index(CARAG_FLOAT32, 300);
    carag_index *b = small_index(CARAG_FLOAT32, 17);
    blob other_file = saved(b);
    blob first = saved(a);
    uint64_t state = 1;
    for (int round = 0; round < 40; round++) {
        const pid_t child = fork();
        CHECK(child >= 0);
        while (child == 0) {
            carag_index_save(b, path, NULL);
            carag_index_save(a, path, NULL);
        }
        nanosleep(&(struct timespec){0, (long)(draw(&state) % 5000000)}, NULL);
        CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
        blob now = read_file(path);
        CHECK(same(now, first) || same(now, other_file));
        free(now.bytes);
        litter();
    }
    carag_index_free(a);
    carag_index_free(b);
    free(first.bytes);
    free(other_file.bytes);
}

/* In a file system of 64 KB, of a child's own: needs the right to mount one. */
static void a_full_disk_keeps_the_old_file(void)
{
    enum { SKIPPED = 77 };
    char directory[600];
    CHECK(snprintf(directory, sizeof directory, "%s.full", path) > 0);
    CHECK(mkdir(directory, 0700) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("tmpfs", directory, "tmpfs", 0, "size=64k") != 0)
            _exit(SKIPPED);
        CHECK(snprintf(path, sizeof path, "%.480s/a.carag", directory) > 0);
        carag_index *small = small_index(CARAG_FLOAT32, 17);
        carag_index *large = small_index(CARAG_FLOAT32, 300);
        carag_fault fault = {0};
        blob old = saved(small);
        CHECK(carag_index_save(large, path, &fault) == CARAG_IO && fault.os_error == ENOSPC);
        blob now = read_file(path);
        CHECK(same(old, now) && litter() == 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == SKIPPED)
        fprintf(stderr, "test_file: no right to mount a small file system: the full disk was not tried\n");
    else
        CHECK(WEXITSTATUS(status) == 0);
    CHECK(rmdir(directory) == 0);
}

/* ---------------------------------------------------------------- golden files */

/* tests/index/test_file.py follows the same recipe in Python. */
static carag_index *golden_index(carag_dtype dtype)
{
    enum { ROWS = 24, GOLDEN_DIM = 5 };
    const carag_params params = {.dim = GOLDEN_DIM, .M = 2, .ef_construction = 10, .seed = 42, .dtype = dtype};
    const int64_t deleted = 50;
    float vectors[ROWS * GOLDEN_DIM];
    uint32_t words[ROWS];
    uint32_t public_at[ROWS];
    uint32_t expires_at[ROWS];
    uint32_t entities[ROWS];
    int64_t keys[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t j = 0; j < GOLDEN_DIM; j++)
            vectors[i * GOLDEN_DIM + j] = (float)((int)((i * 7 + j * 13 + i * i * j) % 11) - 4);
        words[i] = i == 7 ? 3 : WORD(i % 8);
        public_at[i] = i == 9 ? CARAG_NEVER_PUBLIC : i / 4 * 100;
        expires_at[i] = i % 6 == 5 ? 10000 : CARAG_NEVER_EXPIRES;
        entities[i] = i % 3;
        keys[i] = 10 * (int64_t)i;
    }
    carag_rows rows = rows_of(vectors, words, ROWS);
    rows.public_at = public_at;
    rows.expires_at = expires_at;
    rows.entities = entities;
    rows.keys = keys;
    carag_index *index;
    CHECK_OK(carag_index_new(&params, &index, NULL));
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    CHECK_OK(carag_index_delete(index, &deleted, 1, NULL));
    return index;
}

static const char *const golden_names[] = {
    "../index/golden/v1_float32.carag", "../index/golden/v1_float16.carag", "../index/golden/v1_int8.carag"};

/* Committed files, made by the recipe on x86-64, are made again to the last byte by any kernel on any machine. */
static void the_golden_files_are_made_again(bool remakes)
{
    for (size_t i = 0; i < carag_kernel_count(); i++)
        for (int dtype = CARAG_FLOAT32; dtype <= CARAG_INT8; dtype++) {
            if (!carag_kernel_is_available(i))
                continue;
            CHECK_OK(carag_set_kernel(carag_kernel_name(i), NULL));
            carag_index *index = golden_index((carag_dtype)dtype);
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

int main(int argc, char **argv)
{
    const bool remakes = argc > 2 && strcmp(argv[2], "remake") == 0;
    temporary(argc, argv, path, "test_file.carag");
    the_checksum_is_the_published_one();
    the_golden_files_are_made_again(remakes);
    for (int dtype = CARAG_FLOAT32; dtype <= CARAG_INT8; dtype++) {
        for (int map = 0; map < 2; map++)
            a_saved_index_loads_as_it_was((carag_dtype)dtype, map);
        every_flipped_bit_is_found((carag_dtype)dtype);
        a_mapped_file_is_verified_in_two_steps((carag_dtype)dtype);
        every_cut_and_every_extra_byte_is_found((carag_dtype)dtype);
    }
    changes_of_a_mapped_index_stay_out_of_its_file();
    a_mapped_file_may_be_replaced();
    numbers_made_up_with_right_checksums_load_soundly_or_not_at_all();
    a_graph_and_scores_that_lie_are_survived();
    nothing_is_built_on_damage();
    classes_that_are_not_those_of_words_do_not_load();
    two_live_rows_of_one_key_are_found_when_keys_are_asked_for();
    a_failed_save_keeps_the_old_file();
    a_process_killed_while_writing_leaves_the_old_file();
    a_process_killed_at_any_time_leaves_a_whole_file();
    a_full_disk_keeps_the_old_file();
    unlink(path);
    return 0;
}
