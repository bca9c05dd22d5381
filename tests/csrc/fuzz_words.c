/* fuzz_words.c - the loader of words, and the searches behind it, fed with anything.
 *
 * Hazard: a count, an end or a number in a stream that indexes memory. LLVMFuzzerCustomMutator alters bytes and numbers
 * where they stand and corrects the checksums, so that only the checks of what they say can stop a bad file.
 *
 * A file that loads must be sound, and answer. One that is only mapped may hold any terms and postings: it must answer
 * with admissible chunks, no chunk twice, or report that it is damaged; and every call that would build on it must
 * refuse it unless it is sound.
 */
#include "words.h"

#include <sys/mman.h>

unsigned long fuzz_loads[2];    /* read whole, and mapped: how often, */
unsigned long fuzz_accepted[2]; /* and how often that gave an index */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* ---------------------------------------------------------------- mutating */

static const uint32_t interesting[] = {0, 1, 2, 3, 7, 64, 127, 128, 255, 256, 65535, 0x7FFFFFFF, 0x80000000, 0xFFFFFFBF,
                                       0xFFFFFFFE, 0xFFFFFFFF, 0x08000000, 0x88000000, 0x48000000, 0x10000000,
                                       0x80808080, 0xFFFFFF7F};

static void alter(uint8_t *bytes, size_t size, uint64_t *state)
{
    uint32_t number;
    if (size == 0)
        return;
    if (size < sizeof number || below(state, 2)) { /* streams are bytes */
        bytes[below(state, size)] = (uint8_t)(below(state, 2) ? below(state, 256) : interesting[below(state, 9)]);
        return;
    }
    const size_t at = below(state, size / sizeof number) * sizeof number;
    memcpy(&number, bytes + at, sizeof number);
    switch (below(state, 4)) {
    case 0: number++; break;
    case 1: number--; break;
    case 2: number ^= 1U << below(state, 32); break;
    default: number = interesting[below(state, sizeof interesting / sizeof *interesting)]; break;
    }
    memcpy(bytes + at, &number, sizeof number);
}

/* Other counts in the header, and the layout that they demand. */
static size_t lay_out_anew(uint8_t *bytes, size_t size, size_t max_size, uint64_t *state)
{
    static uint8_t room[1 << 16];
    carag_text_header header;
    carag_section after[TEXT_SECTIONS];
    uint64_t end;
    memcpy(&header, bytes, sizeof header);
    uint64_t *const counts[] = {&header.chunks, &header.parts, &header.labels, &header.classes, &header.terms,
                                &header.streams[0], &header.streams[1], &header.streams[2]};
    uint64_t *count = counts[below(state, 8)];
    *count = below(state, 2) ? *count + 1 : *count - (*count > 0);
    if (!carag_text_lay_out(&header, after, &end) || end > max_size || end > sizeof room)
        return size;
    memset(room, 0, end);
    for (int s = 0; s < TEXT_SECTIONS; s++) {
        const carag_section before = header.sections[s];
        if (before.offset <= size && before.size <= size - before.offset)
            memcpy(room + after[s].offset, bytes + before.offset,
                   before.size < after[s].size ? before.size : after[s].size);
    }
    memcpy(header.sections, after, sizeof after);
    memcpy(room, &header, sizeof header);
    memcpy(bytes, room, end);
    return end;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    uint64_t state = (uint64_t)seed * 2 + 1;
    draw(&state);
    for (size_t edits = 1 + below(&state, 3); edits > 0 && size >= 16; edits--) {
        carag_text_header header;
        const size_t which = below(&state, 16);
        if (which == 0)
            size = below(&state, size); /* a cut */
        else if (size < sizeof header || which == 1)
            alter(data, size, &state);
        else if (memcpy(&header, data, sizeof header), memcmp(header.magic, carag_text_magic, 8) != 0 || which == 2)
            alter(data, sizeof header, &state);
        else if (which == 3)
            size = lay_out_anew(data, size, max_size, &state);
        else {
            const carag_section section = header.sections[below(&state, TEXT_SECTIONS)];
            if (section.offset <= size && section.size <= size - section.offset)
                alter(data + section.offset, section.size, &state);
        }
    }
    if (below(&state, 16) != 0)
        put_sums_right(data, size);
    return size;
}

/* ---------------------------------------------------------------- using */

static bool is_admissible(carag_text *text, const question *asked, int64_t label_key, int64_t chunk_key)
{
    const carag_shelf *shelf = &text->shelf;
    carag_test test;
    bool passes = false;
    const uint32_t slot = carag_lookup_find(&shelf->label_of, label_key);
    if (slot == CARAG_NONE || shelf->chunks[shelf->labels[slot].chunk].key != chunk_key)
        return false;
    const uint32_t class = shelf->labels[slot].class;
    for (size_t i = 0; i < asked->predicate_count; i++) {
        carag_test_init(&test, &asked->predicates[i]);
        passes |= carag_is_admissible(&test, atomic_load(&shelf->classes->words[class]), shelf->classes->terms[class]);
    }
    return passes;
}

static void ask(carag_text *text, bool is_sound)
{
    uint64_t state = 5;
    for (int i = 0; i < 12; i++) {
        question asked;
        carag_text_found *found = NULL;
        draw_question(&asked, &state);
        asked.query.k = (size_t)i % 3;
        const carag_status status =
            carag_text_search(text, &asked.query, asked.predicates, asked.predicate_count, &found, NULL);
        CHECK(status == CARAG_OK || (!is_sound && status == CARAG_CORRUPT));
        if (status != CARAG_OK)
            continue;
        CHECK(asked.query.k == 0 || found->count <= asked.query.k);
        for (size_t j = 0; j < found->count; j++) {
            CHECK(is_admissible(text, &asked, found->keys[j], found->chunks[j]));
            CHECK(is_wanted(&asked.query, found->documents[j]));
            CHECK(found->scores[j] > 0.0 && found->scores[j] < (double)INFINITY);
            for (size_t earlier = 0; earlier < j; earlier++)
                CHECK(found->chunks[earlier] != found->chunks[j]);
        }
        carag_text_found_free(found);
        CHECK_OK(carag_text_documents(text, asked.predicates, asked.predicate_count, &found, NULL));
        carag_text_found *listed = NULL;
        CHECK_OK(carag_text_admissible(text, asked.predicates, asked.predicate_count, found->documents, found->count,
                                       &listed, NULL));
        CHECK(listed->count >= found->count);
        for (size_t j = 0; j < listed->count; j++)
            CHECK(is_admissible(text, &asked, listed->keys[j], listed->chunks[j]));
        carag_text_found_free(listed);
        carag_text_found_free(found);
    }
}

static void change(carag_text *text, bool is_sound)
{
    account nothing = {.next_key = INT64_C(0x123456789ABCDEF)}; /* which no mutation makes */
    drawn_batch some;
    uint64_t state = 6;
    draw_batch(&some, &state, &nothing);
    int64_t *keys = malloc(sizeof *keys * (text->shelf.live_chunks + (size_t)1));
    CHECK(keys);
    if (carag_text_chunks(text, keys, text->shelf.live_chunks) > 0)
        CHECK_OK(carag_text_delete(text, keys, 1, NULL));
    free(keys);
    const carag_status added = carag_text_add(text, &some.given, NULL);
    CHECK(added == CARAG_OK || (!is_sound && added == CARAG_CORRUPT));
    const carag_status compacted = carag_text_compact(text, NULL);
    CHECK(compacted == CARAG_OK || (!is_sound && compacted == CARAG_CORRUPT));
    if (compacted == CARAG_OK)
        CHECK_OK(carag_text_verify(text, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1; /* in memory, and rewritten each time */
    char path[64];
    if (file < 0)
        file = memfd_create("fuzz_words", MFD_CLOEXEC);
    CHECK(file >= 0 && pwrite(file, data, size, 0) == (ssize_t)size && ftruncate(file, (off_t)size) == 0);
    CHECK(snprintf(path, sizeof path, "/proc/self/fd/%d", file) > 0);
    for (int map = 0; map < 2; map++) {
        carag_text *text = NULL;
        const carag_status status = carag_text_load(path, map, &text, NULL);
        CHECK((status == CARAG_OK) == (text != NULL));
        CHECK(status == CARAG_OK || status == CARAG_CORRUPT);
        fuzz_loads[map]++;
        fuzz_accepted[map] += text != NULL;
        if (text) {
            ask(text, !map);
            const carag_status verified = carag_text_verify(text, NULL);
            CHECK(verified == CARAG_OK || (map && verified == CARAG_CORRUPT));
            ask(text, verified == CARAG_OK);
            change(text, verified == CARAG_OK);
            ask(text, verified == CARAG_OK);
        }
        carag_text_free(text);
    }
    return 0;
}
