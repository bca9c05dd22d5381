/* test_words_threads.c - everything at once on an index of words: searches and counts beside labels, adds, deletes,
 * compactions and saves. Built with ThreadSanitizer; the claims here are what a race would break.
 *
 *   closed    odd keys: their labels are closed to the question, and chunks come and go among them
 *   steady    the other first ones: relabelled all the time, in one step each, so that every search finds all of them
 */
#include "words.h"

#include <pthread.h>

enum { STEADY = 40, ROUNDS = 1500 };

static carag_text *shared;
static atomic_bool done;
static char path[512];
static const uint64_t word_ends[] = {1};

static void add_chunk(int64_t key)
{
    const int64_t document = key / 8;
    const uint32_t size = 1;
    const uint32_t tokens[] = {0, 0};
    const uint64_t ends[] = {2};
    const uint64_t heading_ends[] = {0};
    const carag_text_batch one = {.keys = &key, .chunks = 1, .documents = &document, .sizes = &size, .parts = 1,
                                  .words = (const uint8_t *)"a", .word_ends = word_ends, .terms = 1,
                                  .tokens = tokens, .token_ends = ends, .headings = tokens,
                                  .heading_ends = heading_ends};
    CHECK_OK(carag_text_add(shared, &one, NULL));
}

static void open_label(int64_t key, int64_t on, uint32_t word, int64_t closes)
{
    const carag_text_labels one = {.keys = &key, .chunks = &on, .words = &word, .count = 1, .closes = &closes,
                                   .close_count = closes >= 0};
    CHECK_OK(carag_text_label(shared, &one, NULL));
}

/* Each label of a steady chunk is replaced by another that is as open: key and the other key take turns. */
static void *relabel(void *unused)
{
    uint64_t state = 7;
    int64_t keys[STEADY];
    (void)unused;
    for (int64_t i = 0; i < STEADY; i++)
        keys[i] = 2 * i;
    while (!atomic_load(&done)) {
        const size_t i = below(&state, STEADY);
        const int64_t next = keys[i] < 1000000 ? keys[i] + 1000000 : keys[i] - 1000000;
        open_label(next, 2 * (int64_t)i, WORD(1 | below(&state, 40) << 1), keys[i]);
        keys[i] = next;
    }
    return NULL;
}

static void *come_and_go(void *unused)
{
    (void)unused;
    for (int64_t round = 0; !atomic_load(&done); round++) {
        const int64_t key = 100001 + 2 * round;
        add_chunk(key);
        open_label(5000000 + key, key, WORD(0), -1);
        if (round % 3)
            CHECK_OK(carag_text_delete(shared, &key, 1, NULL));
        if (round % 8 == 0)
            CHECK_OK(carag_text_compact(shared, NULL));
        if (round % 32 == 0)
            CHECK_OK(carag_text_save(shared, path, NULL));
    }
    return NULL;
}

static void *search(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    const carag_predicate open = one_mask(1, 0);
    for (int round = 0; round < ROUNDS; round++) {
        carag_text_found *found = NULL;
        const carag_text_query query = {.words = (const uint8_t *)"a", .word_ends = word_ends, .terms = 1, .k1 = 0.9,
                                        .b = 0.4, .k = below(&state, 2) * STEADY};
        CHECK_OK(carag_text_search(shared, &query, &open, 1, &found, NULL));
        CHECK(found->count == STEADY && found->stats.admissible == STEADY);
        for (size_t i = 0; i < STEADY; i++)
            CHECK(found->chunks[i] % 2 == 0 && found->chunks[i] < 2 * STEADY);
        carag_text_found_free(found);
        uint64_t frequency;
        carag_text_stats stats = {0};
        CHECK_OK(carag_text_count(shared, &query, &open, 1, &frequency, &stats, NULL));
        CHECK(frequency == STEADY && stats.length == 2 * STEADY);
        const int64_t last = (STEADY - 1) / 4; /* a document of four steady chunks */
        CHECK_OK(carag_text_admissible(shared, &open, 1, &last, 1, &found, NULL));
        CHECK(found->count == 4 && found->documents[3] == last);
        carag_text_found_free(found);
        CHECK_OK(carag_text_documents(shared, &open, 1, &found, NULL));
        CHECK(found->count == STEADY / 4 && found->documents[STEADY / 4 - 1] == last);
        carag_text_found_free(found);
        carag_text_info info;
        carag_text_get_info(shared, &info);
        CHECK(info.chunks >= STEADY && info.labels >= STEADY);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    enum { SEARCHERS = 3 };
    pthread_t searchers[SEARCHERS];
    pthread_t writers[2];
    temporary(argc, argv, path, "test_words_threads.carag");
    CHECK_OK(carag_text_new(&shared, NULL));
    for (int64_t i = 0; i < STEADY; i++) {
        add_chunk(2 * i);
        open_label(2 * i, 2 * i, WORD(1), -1);
    }
    CHECK(pthread_create(&writers[0], NULL, relabel, NULL) == 0);
    CHECK(pthread_create(&writers[1], NULL, come_and_go, NULL) == 0);
    for (uintptr_t i = 0; i < SEARCHERS; i++)
        CHECK(pthread_create(&searchers[i], NULL, search, (void *)(2 * i + 1)) == 0);
    for (size_t i = 0; i < SEARCHERS; i++)
        CHECK(pthread_join(searchers[i], NULL) == 0);
    atomic_store(&done, true);
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_join(writers[i], NULL) == 0);
    CHECK_OK(carag_text_verify(shared, NULL));
    carag_text_free(shared);
    unlink(path);
    return 0;
}
