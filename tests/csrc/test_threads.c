/* test_threads.c - searches, relabels, adds, deletes and saves at once. Built with ThreadSanitizer, which sees a race
 * even when nothing goes wrong; the claims here are what a race would break.
 *
 * Rows with an odd key are never opened: no search may return one. Rows whose key is a multiple of four are opened
 * and closed again and again; all others stay open, so a search for everything finds at least them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"

enum { ROWS = 400, DIM = 8, ADDED = 40, SEARCHES = 300 };

static carag_index *shared;
static float *vectors;
static atomic_bool done;
static char path[512];

static void *relabel(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    while (!atomic_load(&done)) {
        const int64_t key = (int64_t)(draw(&state) % (ROWS / 4)) * 4;
        const uint32_t word = WORD(draw(&state) >> 40 & 1);
        CHECK_OK(carag_index_relabel(shared, &key, &word, 1, 0, NULL));
    }
    return NULL;
}

static void *search(void *seed)
{
    const carag_predicate opened = one_mask(1, 0);
    for (size_t i = 0; i < SEARCHES; i++) {
        const carag_plan plan = i % 2 ? CARAG_PLAN_GRAPH : CARAG_PLAN_EXACT;
        const size_t k = i % 3 ? 10 : ROWS;
        answer got;
        CHECK_OK(search_one(shared, vectors + ((i * 7 + (uintptr_t)seed) % ROWS) * DIM, &opened, k, 30, plan, &got));
        CHECK(k == 10 ? got.count == 10 : got.count >= ROWS / 4);
        for (int64_t j = 0; j < got.count; j++)
            CHECK(got.keys[j] % 2 == 0);
        free_answer(&got);
    }
    return NULL;
}

static void *write_rows(void *unused)
{
    (void)unused;
    for (int64_t i = 0; i < ADDED; i++) {
        const int64_t key = ROWS + 2 * i + 1; /* odd: closed */
        const uint32_t word = WORD(0);
        carag_rows one = rows_of(vectors + i * DIM, &word, 1);
        one.keys = &key;
        CHECK_OK(carag_index_add(shared, &one, NULL, NULL));
        if (i % 2)
            CHECK_OK(carag_index_delete(shared, &key, 1, NULL));
        if (i % 10 == 0)
            CHECK_OK(carag_index_save(shared, path, NULL));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    uint32_t words[ROWS];
    temporary(argc, argv, path, "test_threads.carag");
    vectors = random_vectors(1, ROWS, DIM);
    for (int i = 0; i < ROWS; i++)
        words[i] = WORD(i % 2 == 0);
    shared = new_index(DIM, 8, 0);
    const carag_rows rows = rows_of(vectors, words, ROWS);
    CHECK_OK(carag_index_add(shared, &rows, NULL, NULL));

    pthread_t threads[6];
    CHECK(pthread_create(&threads[0], NULL, relabel, (void *)(uintptr_t)1) == 0);
    CHECK(pthread_create(&threads[1], NULL, relabel, (void *)(uintptr_t)2) == 0);
    for (uintptr_t i = 2; i < 5; i++)
        CHECK(pthread_create(&threads[i], NULL, search, (void *)i) == 0);
    CHECK(pthread_create(&threads[5], NULL, write_rows, NULL) == 0);
    for (int i = 2; i < 6; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    atomic_store(&done, 1);
    CHECK(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
    CHECK(carag_index_check(shared, NULL) == 0);
    carag_index_free(shared);
    free(vectors);
    unlink(path);
    return 0;
}
