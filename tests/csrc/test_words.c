/* test_words.c - an index of words against a plain account of it, after any history; and files that were damaged. */
#include "words.h"

static char path[512];

/* ---------------------------------------------------------------- laws */

static void answers_are_those_of_the_account(uint64_t seed)
{
    static account all;
    carag_text *text;
    uint64_t state = seed * 2 + 1;
    memset(&all, 0, sizeof all);
    CHECK_OK(carag_text_new(&text, NULL));
    for (int step = 0; step < 24; step++) {
        switch (below(&state, 10)) {
        case 0:
        case 1: add_some(text, &all, &state); break;
        case 2: delete_one(text, &all, &state); break;
        case 8: close_one(text, &all, &state); break;
        case 3:
            CHECK_OK(carag_text_compact(text, NULL));
            break;
        case 4:
            CHECK_OK(carag_text_save(text, path, NULL));
            carag_text_free(text);
            CHECK_OK(carag_text_load(path, (int)below(&state, 2), &text, NULL));
            break;
        default: label_some(text, &all, &state); break;
        }
        CHECK_OK(carag_text_verify(text, NULL));
        for (int i = 0; i < 4; i++) {
            question asked;
            draw_question(&asked, &state);
            answers_as_expected(text, &all, &asked);
            lists_as_expected(text, &all, &asked, i + 2);
        }
    }
    carag_text_free(text);
}

/* A term that every part has, and one that few have often: what is left out would not have been among the best. */
static void parts_left_out_would_not_have_been_found(void)
{
    enum { PARTS = 400 };
    static int64_t keys[PARTS];
    static uint32_t sizes[PARTS], tokens[PARTS * 20], words[PARTS];
    static uint64_t ends[PARTS], heading_ends[PARTS];
    static const uint64_t word_ends[] = {1, 2, 3};
    static const uint64_t query_ends[] = {1, 2};
    uint64_t state = 9;
    size_t count = 0;
    for (size_t i = 0; i < PARTS; i++) {
        const size_t many = below(&state, 8);
        keys[i] = (int64_t)(PARTS - i);
        sizes[i] = 1;
        words[i] = WORD(0);
        tokens[count++] = 0;
        for (size_t j = 0; j < many; j++)
            tokens[count++] = below(&state, 6) ? 2 : 1;
        ends[i] = count;
    }
    const carag_text_batch batch = {.keys = keys, .chunks = PARTS, .documents = keys, .sizes = sizes, .parts = PARTS,
                                    .words = (const uint8_t *)"abc", .word_ends = word_ends, .terms = 3,
                                    .tokens = tokens, .token_ends = ends, .headings = tokens,
                                    .heading_ends = heading_ends};
    const carag_text_labels labels = {.keys = keys, .chunks = keys, .words = words, .count = PARTS};
    const carag_predicate open = one_mask(0, 0);
    carag_text *text;
    uint64_t skipped = 0;
    CHECK_OK(carag_text_new(&text, NULL));
    CHECK_OK(carag_text_add(text, &batch, NULL));
    CHECK_OK(carag_text_label(text, &labels, NULL));
    for (size_t k = 1; k < 40; k++) {
        carag_text_found *some = NULL;
        carag_text_found *all = NULL;
        carag_text_query query = {.words = (const uint8_t *)"ab", .word_ends = query_ends, .terms = 2,
                                  .k1 = 0.9, .b = 0.4, .k = k};
        CHECK_OK(carag_text_search(text, &query, &open, 1, &some, NULL));
        query.count_matched = 1;
        CHECK_OK(carag_text_search(text, &query, &open, 1, &all, NULL));
        CHECK(some->count == k && all->count == k && all->stats.parts_skipped == 0);
        CHECK(all->stats.matched == PARTS && some->stats.matched == 0);
        CHECK(memcmp(some->keys, all->keys, k * sizeof *some->keys) == 0);
        CHECK(memcmp(some->scores, all->scores, k * sizeof *some->scores) == 0);
        skipped += some->stats.parts_skipped;
        carag_text_found_free(some);
        carag_text_found_free(all);
    }
    CHECK(skipped > 0);
    carag_text_free(text);
}

/* Parts of forty chunks, far apart, of terms that stand in them hundreds of times: numbers that take more than a byte.
 * `open_alone` leaves out what the question may not see. */
static carag_text *long_numbers(bool open_alone)
{
    enum { PARTS = 300, WIDE = 40, MANY = 200 };
    static int64_t keys[PARTS * WIDE], documents[PARTS];
    static uint32_t sizes[PARTS], tokens[PARTS * WIDE * 2 + PARTS * MANY], words[PARTS * WIDE];
    static uint64_t ends[PARTS * WIDE], heading_ends[PARTS];
    static const uint64_t word_ends[] = {1, 2, 3};
    size_t chunks = 0;
    size_t count = 0;
    size_t parts = 0;
    for (size_t part = 0; part < PARTS; part++) {
        const bool is_open = part % 3 == 0;
        if (open_alone && !is_open)
            continue;
        documents[parts] = (int64_t)part;
        sizes[parts++] = part % 5 ? 1 : WIDE;
        for (size_t i = 0; i < (part % 5 ? 1 : WIDE); i++) {
            tokens[count++] = 0;
            if (part % 100 == 0) /* a gap of a hundred and of two hundred parts */
                tokens[count++] = part % 200 ? 1 : 2;
            for (size_t j = 0; i == 0 && part % 7 == 0 && j < MANY; j++)
                tokens[count++] = 1;
            keys[chunks] = (int64_t)(part * WIDE + i);
            words[chunks] = WORD(is_open ? 1 : 2);
            ends[chunks++] = count;
        }
    }
    const carag_text_batch given = {.keys = keys, .chunks = chunks, .documents = documents, .sizes = sizes,
                                    .parts = parts, .words = (const uint8_t *)"abc", .word_ends = word_ends,
                                    .terms = 3, .tokens = tokens, .token_ends = ends, .headings = tokens,
                                    .heading_ends = heading_ends};
    const carag_text_labels labels = {.keys = keys, .chunks = keys, .words = words, .count = chunks};
    carag_text *text;
    CHECK_OK(carag_text_new(&text, NULL));
    CHECK_OK(carag_text_add(text, &given, NULL));
    CHECK_OK(carag_text_label(text, &labels, NULL));
    return text;
}

static void what_is_passed_over_changes_nothing(void)
{
    static const uint64_t query_ends[] = {1, 2, 3};
    const carag_predicate open = one_mask(1, 0);
    carag_text *texts[] = {long_numbers(false), long_numbers(true)};
    for (size_t k = 0; k < 200; k += 40) {
        carag_text_found *found[2] = {NULL, NULL};
        const carag_text_query query = {.words = (const uint8_t *)"abc", .word_ends = query_ends, .terms = 3,
                                        .k1 = 0.9, .b = 0.4, .k = k};
        uint64_t frequencies[2][3];
        for (int i = 0; i < 2; i++) {
            carag_text_stats stats = {0};
            CHECK_OK(carag_text_search(texts[i], &query, &open, 1, &found[i], NULL));
            CHECK_OK(carag_text_count(texts[i], &query, &open, 1, frequencies[i], &stats, NULL));
        }
        CHECK(memcmp(frequencies[0], frequencies[1], sizeof *frequencies) == 0 && frequencies[0][1] > 0);
        CHECK(found[0]->count > 0 && found[0]->count == found[1]->count);
        CHECK(found[0]->stats.runs_skipped > 0 && found[1]->stats.runs_skipped == 0);
        CHECK(memcmp(found[0]->keys, found[1]->keys, found[0]->count * sizeof *found[0]->keys) == 0);
        CHECK(memcmp(found[0]->scores, found[1]->scores, found[0]->count * sizeof *found[0]->scores) == 0);
        carag_text_found_free(found[0]);
        carag_text_found_free(found[1]);
    }
    carag_text_free(texts[0]);
    carag_text_free(texts[1]);
}

/* ---------------------------------------------------------------- refusals */

static void what_cannot_be_is_refused_and_changes_nothing(void)
{
    static account all;
    carag_text *text = some_text(&all, 5, 4);
    carag_fault fault = {0};
    drawn_batch some;
    uint64_t state = 77;
    carag_text_info before;
    carag_text_info after;
    carag_text_get_info(text, &before);
    draw_batch(&some, &state, &all);
    carag_text_batch bad = some.given;
#define REFUSED(call, status) CHECK((call) == (status) && (status) != CARAG_OK)
    some.keys[0] = all.chunks[0].key >= 0 ? all.chunks[0].key : all.chunks[1].key;
    REFUSED(carag_text_add(text, &bad, &fault), CARAG_DUPLICATE_KEY);
    CHECK(fault.row == 0);
    some.keys[0] = -4;
    REFUSED(carag_text_add(text, &bad, &fault), CARAG_BAD_KEY);
    some.keys[0] = all.next_key;
    bad.chunks++;
    REFUSED(carag_text_add(text, &bad, &fault), CARAG_BAD_ARGUMENT);
    bad = some.given;
    some.documents[0] = -1;
    REFUSED(carag_text_add(text, &bad, &fault), CARAG_BAD_ARGUMENT);
    some.documents[0] = 1;
    some.sizes[0] = 0;
    REFUSED(carag_text_add(text, &bad, &fault), CARAG_BAD_ARGUMENT);
    draw_batch(&some, &state, &all);
    bad = some.given;
    bad.terms = 0; /* tokens name terms that there are not */
    some.tokens[0] = 1;
    some.token_ends[0] = some.token_ends[0] ? some.token_ends[0] : 1;
    REFUSED(carag_text_add(text, &bad, &fault), CARAG_BAD_ARGUMENT);
    draw_batch(&some, &state, &all);
    bad = some.given;
    some.words[0] = 'z'; /* out of order */
    REFUSED(carag_text_add(text, &bad, &fault), CARAG_BAD_ARGUMENT);
    some.words[0] = 'a';
    some.word_ends[0] = 0; /* empty */
    REFUSED(carag_text_add(text, &bad, &fault), CARAG_BAD_ARGUMENT);

    label *live = NULL;
    for (size_t i = 0; i < all.label_count; i++)
        live = all.labels[i].key >= 0 ? &all.labels[i] : live;
    CHECK(live);
    int64_t key = 5000000;
    int64_t on = live->chunk;
    uint32_t word = WORD(1);
    carag_text_labels one = {.keys = &key, .chunks = &on, .words = &word, .count = 1};
    REFUSED(carag_text_label(text, &one, &fault), CARAG_OVERLAP);
    const uint32_t first = live->terms.expires_at;
    one.public_at = &first;
    const int64_t unknown = 777777;
    one.closes = &unknown;
    one.close_count = 1;
    REFUSED(carag_text_label(text, &one, &fault), CARAG_UNKNOWN_KEY);
    CHECK(strcmp(fault.where, "closes") == 0);
    one.close_count = 0;
    key = live->key;
    REFUSED(carag_text_label(text, &one, &fault), CARAG_DUPLICATE_KEY);
    key = -1;
    REFUSED(carag_text_label(text, &one, &fault), CARAG_BAD_KEY);
    key = 5000000;
    word = WORD(1) | QUARANTINE;
    REFUSED(carag_text_label(text, &one, &fault), CARAG_BAD_WORD);
    word = WORD(1);
    on = unknown;
    REFUSED(carag_text_label(text, &one, &fault), CARAG_UNKNOWN_KEY);
    CHECK(strcmp(fault.where, "chunks") == 0);
    const int64_t keys[] = {6000000, 6000001};
    const int64_t same[] = {live->chunk, live->chunk};
    const uint32_t two[] = {WORD(1), WORD(2)};
    const uint32_t begins[] = {1000, 1010};
    const uint32_t ends[] = {1020, 1030};
    const carag_text_labels both = {.keys = keys, .chunks = same, .words = two, .public_at = begins,
                                    .expires_at = ends, .count = 2};
    REFUSED(carag_text_label(text, &both, &fault), CARAG_OVERLAP);
    CHECK(fault.row == 1);
    REFUSED(carag_text_delete(text, &unknown, 1, &fault), CARAG_UNKNOWN_KEY);

    question asked;
    carag_text_found *found = NULL;
    draw_question(&asked, &state);
    carag_predicate open_to_deleted = asked.predicates[0];
    open_to_deleted.pairs[0].mask = 0;
    REFUSED(carag_text_search(text, &asked.query, &open_to_deleted, 1, &found, &fault), CARAG_BAD_PREDICATE);
    REFUSED(carag_text_documents(text, &open_to_deleted, 1, &found, &fault), CARAG_BAD_PREDICATE);
    REFUSED(carag_text_admissible(text, &open_to_deleted, 1, keys, 2, &found, &fault), CARAG_BAD_PREDICATE);
    carag_predicate many[CARAG_MAX_PREDICATES + 1];
    for (size_t i = 0; i <= CARAG_MAX_PREDICATES; i++)
        many[i] = asked.predicates[0];
    many[2].pairs[0].mask = 0; /* each of them counts */
    REFUSED(carag_text_search(text, &asked.query, many, 3, &found, &fault), CARAG_BAD_PREDICATE);
    CHECK(fault.row == 2);
    many[2] = many[0];
    REFUSED(carag_text_search(text, &asked.query, many, CARAG_MAX_PREDICATES + 1, &found, &fault), CARAG_BAD_ARGUMENT);
    REFUSED(carag_text_search(text, &asked.query, many, 0, &found, &fault), CARAG_BAD_ARGUMENT);
    REFUSED(carag_text_documents(text, many, 0, &found, &fault), CARAG_BAD_ARGUMENT);
    const int64_t below_zero[] = {0, -1};
    REFUSED(carag_text_admissible(text, many, 1, below_zero, 2, &found, &fault), CARAG_BAD_KEY);
    CHECK(fault.row == 1);
    carag_text_query of_documents = asked.query;
    of_documents.documents = below_zero;
    of_documents.document_count = 2;
    REFUSED(carag_text_search(text, &of_documents, asked.predicates, 1, &found, &fault), CARAG_BAD_KEY);
    CHECK(fault.row == 1);
    const double bad_numbers[] = {-1.0, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < 3; i++) {
        carag_text_query query = asked.query;
        query.k1 = bad_numbers[i];
        REFUSED(carag_text_search(text, &query, asked.predicates, 1, &found, &fault), CARAG_BAD_ARGUMENT);
        query = asked.query;
        query.b = bad_numbers[i];
        REFUSED(carag_text_search(text, &query, asked.predicates, 1, &found, &fault), CARAG_BAD_ARGUMENT);
        query = asked.query;
        query.floor = bad_numbers[i];
        REFUSED(carag_text_search(text, &query, asked.predicates, 1, &found, &fault), CARAG_BAD_ARGUMENT);
    }
    asked.query.terms = 5000;
    REFUSED(carag_text_search(text, &asked.query, asked.predicates, 1, &found, &fault), CARAG_BAD_ARGUMENT);
    asked.query.terms = 1;
    asked.ends[0] = 0;
    REFUSED(carag_text_search(text, &asked.query, asked.predicates, 1, &found, &fault), CARAG_BAD_ARGUMENT);
    CHECK(found == NULL);
#undef REFUSED
    carag_text_get_info(text, &after);
    CHECK(before.chunks == after.chunks && before.labels == after.labels && before.segments == after.segments);
    CHECK_OK(carag_text_verify(text, NULL));
    for (int i = 0; i < 20; i++) {
        draw_question(&asked, &state);
        answers_as_expected(text, &all, &asked);
    }
    carag_text_free(text);
}

/* ---------------------------------------------------------------- files */

static size_t read_bytes(unsigned char *bytes, size_t room)
{
    FILE *file = fopen(path, "rb");
    CHECK(file);
    const size_t size = fread(bytes, 1, room, file);
    CHECK(size < room);
    fclose(file);
    return size;
}

static void write_bytes(const unsigned char *bytes, size_t size)
{
    const int file = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(file >= 0 && pwrite(file, bytes, size, 0) == (ssize_t)size && ftruncate(file, (off_t)size) == 0);
    CHECK(close(file) == 0);
}

static void is_refused(const unsigned char *bytes, size_t size)
{
    write_bytes(bytes, size);
    for (int map = 0; map < 2; map++) {
        carag_text *text = NULL;
        carag_fault fault = {0};
        CHECK(carag_text_load(path, map, &text, &fault) == CARAG_CORRUPT);
        CHECK(text == NULL && strlen(fault.what) > 0 && strlen(fault.where) > 0);
    }
}

static void every_flipped_bit_cut_and_extra_byte_is_found(void)
{
    static account all;
    static unsigned char bytes[1 << 15];
    carag_text *text = some_text(&all, 3, 3);
    CHECK_OK(carag_text_save(text, path, NULL));
    carag_text_free(text);
    const size_t size = read_bytes(bytes, sizeof bytes);
    for (size_t at = 0; at < size; at++) {
        bytes[at] ^= (unsigned char)(1 << at % 8);
        is_refused(bytes, size);
        bytes[at] ^= (unsigned char)(1 << at % 8);
        is_refused(bytes, at);
    }
    is_refused(bytes, size + 1);
}

/* Loaded whole it is sound, or refused; mapped it answers, or says that it cannot. */
static void numbers_made_up_with_right_sums_are_survived(void)
{
    static const unsigned char values[] = {0, 1, 2, 127, 128, 255};
    static account all;
    static unsigned char bytes[1 << 15];
    carag_text *text = some_text(&all, 3, 3);
    CHECK_OK(carag_text_save(text, path, NULL));
    carag_text_free(text);
    const size_t size = read_bytes(bytes, sizeof bytes);
    unsigned long loaded[2] = {0, 0};
    uint64_t state = 1;
    for (size_t at = 8; at < size; at++)
        for (size_t v = 0; v < sizeof values; v++) {
            const unsigned char before = bytes[at];
            bytes[at] = values[v];
            put_sums_right(bytes, size);
            write_bytes(bytes, size);
            for (int map = 0; map < 2; map++) {
                carag_text *altered = NULL;
                const carag_status status = carag_text_load(path, map, &altered, NULL);
                CHECK((status == CARAG_OK) == (altered != NULL) && (status == CARAG_OK || status == CARAG_CORRUPT));
                if (!altered)
                    continue;
                loaded[map]++;
                question asked;
                carag_text_found *found = NULL;
                draw_question(&asked, &state);
                const carag_status searched =
                    carag_text_search(altered, &asked.query, asked.predicates, 1, &found, NULL);
                CHECK(searched == CARAG_OK || (map && searched == CARAG_CORRUPT));
                carag_text_found_free(found);
                const carag_status verified = carag_text_verify(altered, NULL);
                CHECK(verified == CARAG_OK || (map && verified == CARAG_CORRUPT));
                CHECK(carag_text_save(altered, "/dev/null/nothing", NULL) ==
                      (verified == CARAG_OK ? CARAG_IO : CARAG_CORRUPT));
                carag_text_free(altered);
            }
            bytes[at] = before;
        }
    CHECK(loaded[0] > 100 && loaded[1] > loaded[0]);
}

/* What a label admits is decided by these numbers, so none is believed. */
static void labels_that_lie_do_not_load(void)
{
    static unsigned char bytes[1 << 14];
    static const uint64_t word_ends[] = {1};
    static const uint32_t tokens[] = {0};
    const int64_t keys[] = {1, 2};
    const uint32_t sizes[] = {1, 1};
    const uint64_t ends[] = {1, 1};
    const uint64_t heading_ends[] = {0, 0};
    const uint32_t words[] = {WORD(1), WORD(2), WORD(2)};
    const int64_t labels[] = {5, 6, 7};
    const int64_t on[] = {1, 1, 2};
    const uint32_t public_at[] = {0, 10, 10};
    const uint32_t expires_at[] = {10, 20, 20};
    const carag_text_batch both = {.keys = keys, .chunks = 2, .documents = keys, .sizes = sizes, .parts = 2,
                                   .words = (const uint8_t *)"a", .word_ends = word_ends, .terms = 1,
                                   .tokens = tokens, .token_ends = ends, .headings = tokens,
                                   .heading_ends = heading_ends};
    const carag_text_labels given = {.keys = labels, .chunks = on, .words = words, .public_at = public_at,
                                     .expires_at = expires_at, .count = 3};
    carag_text *text;
    carag_text_header header;
    CHECK_OK(carag_text_new(&text, NULL));
    CHECK_OK(carag_text_add(text, &both, NULL));
    CHECK_OK(carag_text_label(text, &given, NULL));
    CHECK_OK(carag_text_save(text, path, NULL));
    carag_text_free(text);
    const size_t size = read_bytes(bytes, sizeof bytes);
    memcpy(&header, bytes, sizeof header);
    CHECK(header.classes == 2 && header.labels == 3);
    uint32_t *const classes = (uint32_t *)(void *)(bytes + header.sections[TEXT_CLASSES].offset);
    uint32_t *const kept = (uint32_t *)(void *)(bytes + header.sections[TEXT_WORDS].offset);
    carag_terms *const terms_kept = (carag_terms *)(void *)(bytes + header.sections[TEXT_TERMS].offset);
    uint32_t *const chunks = (uint32_t *)(void *)(bytes + header.sections[TEXT_ON].offset);
    int64_t *const label_keys = (int64_t *)(void *)(bytes + header.sections[TEXT_LABELS].offset);
    static unsigned char whole[1 << 14];
    memcpy(whole, bytes, size);
    for (int lie = 0; lie < 10; lie++) {
        memcpy(bytes, whole, size);
        switch (lie) {
        case 0: /* numbered otherwise than where they first occur */
            classes[0] = 1;
            classes[1] = classes[2] = 0;
            kept[0] = WORD(2);
            kept[1] = WORD(1);
            terms_kept[0] = (carag_terms){10, 20, 0, 0};
            terms_kept[1] = (carag_terms){0, 10, 0, 0};
            break;
        case 1: kept[1] = (uint32_t)2 << 27; break; /* an unknown version */
        case 2: kept[1] = WORD(2) | (uint32_t)1 << 31; break; /* deleted */
        case 3: terms_kept[1].public_at = 9; break; /* both hold at the ninth minute */
        case 4: chunks[2] = 2; break; /* on no chunk */
        case 5: chunks[0] = 1; break; /* not in the order of chunks */
        case 6: label_keys[1] = 5; break; /* a key of two labels */
        case 7: label_keys[2] = -7; break;
        case 8: classes[2] = 2; break; /* of no class */
        default: /* two classes that are one */
            kept[1] = kept[0];
            terms_kept[1] = terms_kept[0] = (carag_terms){10, 10, 0, 0};
            break;
        }
        put_sums_right(bytes, size);
        is_refused(bytes, size);
    }
    memcpy(bytes, whole, size);
    put_sums_right(bytes, size);
    write_bytes(bytes, size);
    CHECK_OK(carag_text_load(path, 0, &text, NULL)); /* the truth does */
    carag_text_free(text);
}

static void equal_contents_make_equal_files(void)
{
    static account all;
    static unsigned char first[1 << 16], second[1 << 16];
    for (uint64_t seed = 0; seed < 20; seed++) {
        carag_text *text = some_text(&all, seed, 5);
        CHECK_OK(carag_text_save(text, path, NULL));
        const size_t size = read_bytes(first, sizeof first);
        for (int map = 0; map < 2; map++) {
            carag_text *again;
            CHECK_OK(carag_text_load(path, map, &again, NULL));
            CHECK_OK(carag_text_save(again, path, NULL)); /* over the file that it may be mapped from */
            CHECK(read_bytes(second, sizeof second) == size && memcmp(first, second, size) == 0);
            carag_text_free(again);
        }
        carag_text_free(text);
    }
}

int main(int argc, char **argv)
{
    temporary(argc, argv, path, "test_words.carag");
    for (uint64_t seed = 0; seed < 300; seed++)
        answers_are_those_of_the_account(seed);
    parts_left_out_would_not_have_been_found();
    what_is_passed_over_changes_nothing();
    what_cannot_be_is_refused_and_changes_nothing();
    every_flipped_bit_cut_and_extra_byte_is_found();
    numbers_made_up_with_right_sums_are_survived();
    labels_that_lie_do_not_load();
    equal_contents_make_equal_files();
    unlink(path);
    return 0;
}
