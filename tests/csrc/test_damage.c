/* test_damage.c - what was altered in any bit, or cut anywhere, is refused; and what a mapped file hides from the eye can
 * neither crash a search nor let a closed row through.
 */
#include "files.h"

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
                                 "scales",  "errors", "packs"};
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
    CHECK(carag_index_reserve(mapped, 1000000, &fault) == CARAG_CORRUPT);
    carag_index_info(mapped, &info);
    CHECK(info.rows == 40 && info.live == 39);
    CHECK_OK(carag_index_save(mapped, path, NULL)); /* the damage, with the checksum that shows it */
    carag_index *again = NULL;
    CHECK(carag_index_load(path, 0, &again, &fault) == CARAG_CORRUPT && strcmp(fault.where, "vectors") == 0);
    carag_index_free(index);
    carag_index_free(mapped);
    free(file.bytes);
}

/* What is copied into memory is compared with its checksum; a section that is not stays in the file, unread. */
static void nothing_damaged_is_preloaded(void)
{
    static const char *const names[] = {"links", "codes", "scales", "errors", "packs", "vectors"};
    carag_index *index = small_index(CARAG_FLOAT32, 40);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        const bool is_copied = strcmp(names[n], "vectors") != 0;
        blob file = saved(index);
        size_t size;
        section_of(file, names[n], &size)[5] ^= 1;
        write_file(path, file.bytes, file.size);
        carag_index *mapped = loaded(1);
        carag_fault fault = {0};
        const carag_view *before = atomic_load(&mapped->view);
        const carag_status status = carag_index_preload(mapped, &fault);
        CHECK(status == (is_copied ? CARAG_CORRUPT : CARAG_OK));
        CHECK(!is_copied || (strcmp(fault.where, names[n]) == 0 && atomic_load(&mapped->view) == before));
        CHECK(carag_index_verify(mapped, &fault) == CARAG_CORRUPT && strcmp(fault.where, names[n]) == 0);
        answer_safely(mapped);
        carag_index_free(mapped);
        free(file.bytes);
    }
    carag_index_free(index);
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

/* A scan follows them unchecked: rows that do not exist, come twice or are out of order do not load, mapped or read. */
static void members_that_lie_do_not_load(void)
{
    enum { ROWS = 600 };
    carag_index *index = small_index(CARAG_FLOAT32, ROWS);
    blob file = saved(index);
    size_t size;
    uint32_t *members = (uint32_t *)(void *)section_of(file, "members", &size);
    const uint32_t listed = (uint32_t)(size / sizeof *members);
    CHECK(header_of(file)->cells > 1 && listed == header_of(file)->listed && listed > 300);
    for (uint32_t at = 0; at < listed; at += 37) {
        const uint32_t true_one = members[at];
        const uint32_t lies[] = {listed, UINT32_MAX, members[(at + 1) % listed], members[(at + 300) % listed]};
        for (size_t lie = 0; lie < sizeof lies / sizeof *lies; lie++) {
            members[at] = lies[lie];
            put_checksums_right(file);
            refuses(file.bytes, file.size, 0);
            refuses(file.bytes, file.size, 1);
        }
        members[at] = true_one;
    }
    put_checksums_right(file);
    write_file(path, file.bytes, file.size);
    carag_index_free(loaded(1));
    carag_index_free(index);
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

int main(int argc, char **argv)
{
    temporary(argc, argv, path, "test_damage.carag");
    for (int dtype = CARAG_FLOAT32; dtype <= CARAG_INT8; dtype++) {
        every_flipped_bit_is_found((carag_dtype)dtype);
        a_mapped_file_is_verified_in_two_steps((carag_dtype)dtype);
        every_cut_and_every_extra_byte_is_found((carag_dtype)dtype);
    }
    numbers_made_up_with_right_checksums_load_soundly_or_not_at_all();
    a_graph_and_scores_that_lie_are_survived();
    nothing_is_built_on_damage();
    nothing_damaged_is_preloaded();
    classes_that_are_not_those_of_words_do_not_load();
    members_that_lie_do_not_load();
    two_live_rows_of_one_key_are_found_when_keys_are_asked_for();
    unlink(path);
    return 0;
}
