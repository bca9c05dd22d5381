/* fuzz_load.c - the loader, and the searches behind it, fed with anything.
 *
 * Hazard: a count or an id from the file that indexes memory. Checksums would keep a fuzzer out, so
 * LLVMFuzzerCustomMutator knows the format: it alters numbers where they stand, lays a file out again for counts it made
 * up, and corrects the checksums. Only the checks of counts, sizes, classes, levels, links and parents are left to stop
 * a bad file.
 *
 * A file that loads must be sound, and answer. One that is only mapped may hold any graph, codes and vectors: it must
 * answer with admissible rows, no row twice, and every call that would build on it must refuse it unless it is sound.
 *
 * With libFuzzer:   clang -fsanitize=fuzzer,address ... fuzz_load.c
 * With gcc alone:   replay.c runs the committed corpus, and seeded mutations of it, through the same two functions.
 */
#define CARAG_ALLOW_LIBC
#include "file/file.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "file/crc32c.h"

enum { MOST_BYTES = 1 << 16, K = 6 };

unsigned long fuzz_loads[2];    /* read whole, and mapped: how often, */
unsigned long fuzz_accepted[2]; /* and how often that gave an index */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* ---------------------------------------------------------------- mutating */

static const uint32_t interesting[] = {
    0,          1,          2,          3,          7,          8,          39,         40,         41,
    64,         255,        256,        65535,      65536,      0x7FFFFFFF, 0x80000000, 0xBFFFFFFF, 0xFFFFFFBF,
    0xFFFFFFC0, 0xFFFFFFFE, 0xFFFFFFFF, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF,
    0x00000001, 0x7C007C00, 0x08000000, 0x88000000, 0x48000000, 0x10000000,
};

static uint32_t draw_number(uint64_t *state, uint32_t before)
{
    switch (draw(state) >> 40 & 7) {
    case 0: return before + 1;
    case 1: return before - 1;
    case 2: return before ^ 1U << (draw(state) >> 40 & 31);
    case 3: return (uint32_t)(draw(state) >> 32);
    case 4: return (uint32_t)(draw(state) >> 32) % 48;
    default: return interesting[(draw(state) >> 32) % (sizeof interesting / sizeof *interesting)];
    }
}

static void alter_number(uint8_t *bytes, size_t size, uint64_t *state)
{
    uint32_t number;
    if (size < sizeof number) {
        if (size > 0)
            bytes[(draw(state) >> 32) % size] = (uint8_t)(draw(state) >> 32);
        return;
    }
    const size_t at = (size_t)((draw(state) >> 32) % (size / sizeof number)) * sizeof number;
    memcpy(&number, bytes + at, sizeof number);
    number = draw_number(state, number);
    memcpy(bytes + at, &number, sizeof number);
}

/* A file whose header says how long it is. */
static bool has_header(const uint8_t *bytes, size_t size)
{
    carag_header header;
    if (size < sizeof header)
        return false;
    memcpy(&header, bytes, sizeof header);
    return memcmp(header.magic, carag_magic, sizeof carag_magic) == 0 && header.version <= CARAG_FILE_VERSION;
}

static void alter_section(uint8_t *bytes, size_t size, uint64_t *state)
{
    carag_header header;
    memcpy(&header, bytes, sizeof header);
    const carag_section section = header.sections[(draw(state) >> 32) % SECTIONS];
    if (section.offset > size || section.size > size - section.offset || section.size == 0)
        return;
    uint8_t *at = bytes + section.offset;
    const size_t items = section.size / 8;
    switch (draw(state) >> 40 & 7) {
    case 0: /* one byte: levels and codes are bytes */
        at[(draw(state) >> 32) % section.size] = (uint8_t)(draw(state) >> 32);
        break;
    case 1: /* a piece of it elsewhere */
        if (items > 1)
            memcpy(at + 8 * ((draw(state) >> 32) % items), at + 8 * ((draw(state) >> 32) % items), 8);
        break;
    case 2: /* all of it */
        for (size_t i = 0; i + 4 <= section.size; i += 4)
            memcpy(at + i, &interesting[state[0] % (sizeof interesting / sizeof *interesting)], 4);
        break;
    default:
        for (uint64_t edits = draw(state) >> 40 & 7; edits > 0; edits--)
            alter_number(at, section.size, state);
        break;
    }
}

/* The same bytes, laid out for other counts: each section cut or filled up with zeros. */
static size_t lay_out_anew(uint8_t *bytes, size_t size, size_t max_size, uint64_t *state)
{
    static uint8_t room[MOST_BYTES];
    carag_header header;
    memcpy(&header, bytes, sizeof header);
    uint32_t *const small[] = {&header.dim, &header.M, &header.dtype, &header.classes};
    uint64_t *const large[] = {&header.rows, &header.upper_slots, &header.live};
    const uint64_t which = draw(state) >> 40 & 7;
    if (which < 4)
        *small[which] = draw_number(state, *small[which]) % 300;
    else
        *large[which % 3] = draw_number(state, (uint32_t)*large[which % 3]) % 64;
    const carag_params params = {header.dim, header.M, 1, 0, (carag_dtype)header.dtype};
    carag_index shape = {.params = params, .M0 = 2 * params.M, .stride = ((size_t)params.dim + 15) / 16 * 16};
    shape.vector_bytes = shape.stride * (params.dtype == CARAG_FLOAT32 ? 4 : params.dtype == CARAG_FLOAT16 ? 2 : 0);
    carag_section after[SECTIONS];
    uint64_t end;
    if (!carag_lay_out(&shape, &header, after, &end) || end > max_size || end > sizeof room)
        return size;
    memset(room, 0, end);
    for (int s = 0; s < SECTIONS; s++) {
        const carag_section before = header.sections[s];
        if (before.offset > size || before.size > size - before.offset)
            continue;
        memcpy(room + after[s].offset, bytes + before.offset, before.size < after[s].size ? before.size : after[s].size);
    }
    memcpy(header.sections, after, sizeof after);
    memcpy(room, &header, sizeof header);
    memcpy(bytes, room, end);
    return end;
}

static void put_checksums_right(uint8_t *bytes, size_t size)
{
    carag_crc_tables tables;
    carag_crc_tables_init(&tables);
    carag_header header;
    if (size < sizeof header)
        return;
    memcpy(&header, bytes, sizeof header);
    for (int s = 0; s < SECTIONS; s++) {
        carag_section *section = &header.sections[s];
        if (section->offset <= size && section->size <= size - section->offset)
            section->crc = carag_crc(&tables, 0, bytes + section->offset, section->size);
    }
    header.crc = carag_crc(&tables, 0, &header, offsetof(carag_header, crc));
    memcpy(bytes, &header, sizeof header);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    uint64_t state = (uint64_t)seed * 2 + 1;
    draw(&state);
    for (uint64_t edits = 1 + (draw(&state) >> 40) % 3; edits > 0 && size >= 16; edits--) {
        const uint64_t which = draw(&state) >> 40 & 15;
        if (which == 0)
            size = (size_t)(draw(&state) >> 32) % size; /* a cut */
        else if (which == 1)
            alter_number(data, size, &state); /* anywhere */
        else if (which == 2)
            alter_number(data, size < sizeof(carag_header) ? size : sizeof(carag_header), &state);
        else if (!has_header(data, size))
            alter_number(data, size, &state);
        else if (which <= 5)
            size = lay_out_anew(data, size, max_size, &state);
        else
            alter_section(data, size, &state);
    }
    if (size >= 16 && (draw(&state) >> 40 & 15) != 0)
        put_checksums_right(data, size);
    return size;
}

/* ---------------------------------------------------------------- using */

/* Whether some row has the key and may be in the answer. */
static bool some_row_is_admissible(const carag_index *index, const carag_predicate *predicate, int64_t key)
{
    const carag_view *view = atomic_load(&((carag_index *)(uintptr_t)index)->view);
    carag_test test;
    carag_test_init(&test, predicate);
    for (uint32_t row = 0; row < atomic_load(&view->rows); row++)
        if (view->keys[row] == key && carag_is_admissible(&test, atomic_load(&view->words[row]), view->terms[row]))
            return true;
    return false;
}

static void ask(carag_index *index, const float *query, bool is_sound)
{
    static const uint32_t required[] = {0, 1, 3, 1U << 26};
    const uint32_t entities[] = {0, 2, 3};
    const uint64_t audiences[] = {2 + 8};
    for (size_t p = 0; p < 4; p++) {
        carag_predicate predicate = one_mask(required[p], 0);
        ask_at(&predicate, p == 1 ? 150 : CARAG_NEVER_PUBLIC - 1);
        predicate.entities = entities;
        share_with(&predicate, audiences, p == 3);
        predicate.entity_count = 3;
        predicate.entity_rule = p == 0 ? CARAG_ANY_ENTITY : CARAG_NOT_ENTITIES;
        for (int plan = CARAG_PLAN_AUTO; plan < CARAG_PLANS; plan++)
            for (size_t k = 1; k <= K; k += K - 1) {
                answer got;
                CHECK_OK(search_one(index, query, &predicate, k, 10, (carag_plan)plan, &got));
                CHECK(got.count >= 0 && (uint64_t)got.count <= (got.admissible < k ? got.admissible : k));
                CHECK(!is_sound || (uint64_t)got.count == (got.admissible < k ? got.admissible : k));
                for (int64_t i = 0; i < got.count; i++) {
                    CHECK(some_row_is_admissible(index, &predicate, got.keys[i]));
                    CHECK(got.similarities[i] >= -INFINITY); /* a number */
                    for (int64_t j = 0; is_sound && j < i; j++)
                        CHECK(got.keys[i] != got.keys[j]);
                }
                free_answer(&got);
            }
    }
}

static void change(carag_index *index, const float *vector, bool is_sound)
{
    const uint32_t words[] = {WORD(1), WORD(5)};
    const carag_rows one = rows_of(vector, words, 1);
    carag_info info;
    carag_index_info(index, &info);
    int64_t *keys = malloc(((size_t)info.rows + 1) * sizeof *keys);
    CHECK(keys);
    const size_t live = carag_index_keys(index, keys, info.rows);
    CHECK(live == info.live);
    const size_t some = live < 2 ? live : 2;
    const carag_status relabelled = carag_index_relabel(index, keys, words, some, 0, NULL);
    CHECK(relabelled == CARAG_OK || (!is_sound && relabelled == CARAG_CORRUPT));
    if (relabelled == CARAG_OK)
        CHECK_OK(carag_index_delete(index, keys, some / 2, NULL));
    const carag_status added = carag_index_add(index, &one, NULL, NULL);
    CHECK(added == CARAG_OK || (!is_sound && added == CARAG_CORRUPT));
    if (added == CARAG_OK)
        CHECK(carag_index_check(index, NULL) == 0);
    free(keys);
}

static void use(carag_index *index, bool is_mapped)
{
    float *query = random_vectors(1, 1, index->params.dim);
    bool is_sound = !is_mapped;
    if (is_mapped) {
        ask(index, query, false);
        const carag_status copied = carag_index_preload(index, NULL);
        CHECK(copied == CARAG_OK || copied == CARAG_CORRUPT);
        ask(index, query, false);
        const carag_status status = carag_index_verify(index, NULL);
        CHECK(status == CARAG_OK || status == CARAG_CORRUPT);
        is_sound = status == CARAG_OK;
    }
    CHECK((carag_index_check(index, NULL) == 0) >= is_sound);
    ask(index, query, is_sound);
    change(index, query, is_sound);
    ask(index, query, is_sound);
    free(query);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1; /* in memory, and rewritten each time */
    char path[64];
    if (file < 0)
        file = memfd_create("fuzz_load", MFD_CLOEXEC);
    CHECK(file >= 0 && pwrite(file, data, size, 0) == (ssize_t)size && ftruncate(file, (off_t)size) == 0);
    CHECK(snprintf(path, sizeof path, "/proc/self/fd/%d", file) > 0);
    for (int map = 0; map < 2; map++) {
        carag_index *index = NULL;
        const carag_status status = carag_index_load(path, map, &index, NULL);
        CHECK((status == CARAG_OK) == (index != NULL));
        CHECK(status == CARAG_OK || status == CARAG_CORRUPT);
        fuzz_loads[map]++;
        fuzz_accepted[map] += index != NULL;
        if (index)
            use(index, index->mapping != NULL);
        carag_index_free(index);
    }
    return 0;
}
