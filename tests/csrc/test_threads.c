/* test_threads.c - everything at once: searches by every plan, counts and look-ups beside relabels by key
 * and by class, adds of one row and of many, deletes, consolidations and saves. Built with ThreadSanitizer,
 * which sees a race even when nothing goes wrong; the claims here are what a race would break.
 *
 *   closed    odd keys: no search may return one, though rows are added and deleted among them
 *   flickers  keys divisible by four are opened and closed again and again
 *   steady    all others are open all along, but move between admissible classes all the time: every search
 *             for all finds each of them, a search for the k nearest finds k rows, an exact one the nearest,
 *             a count counts them
 */
#define CARAG_ALLOW_LIBC
#include "materialised/materialised.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { ROWS = 480, DIM = 8, STEADY = ROWS / 4, FLICKERS = ROWS / 4, ROUNDS = 8, BULK = 900 };

static carag_index *shared;
static float *vectors;
static atomic_bool done;
static char path[512];

static int64_t steady_key(uint64_t *state)
{
    return (int64_t)((draw(state) >> 32) % STEADY) * 4 + 2;
}

/* Open, in one of eight classes. */
static uint32_t open_word(uint64_t *state)
{
    return WORD(1 | (draw(state) >> 40 & 7) << 1);
}

/* ---------------------------------------------------------------- writers */

/* Some rows, or all of them, in one call: in place, and with a new catalog. */
static void *relabel(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    while (!atomic_load(&done)) {
        int64_t keys[3 * STEADY];
        uint32_t words[3 * STEADY];
        const size_t sizes[] = {1, 5, 3 * STEADY};
        const size_t count = sizes[(draw(&state) >> 40) % 3];
        for (size_t i = 0; i < count; i++)
            if (draw(&state) >> 40 & 1) {
                keys[i] = (int64_t)((draw(&state) >> 32) % FLICKERS) * 4;
                words[i] = WORD(draw(&state) >> 40 & 15);
            } else {
                keys[i] = steady_key(&state);
                words[i] = open_word(&state);
            }
        CHECK_OK(carag_index_relabel(shared, keys, words, count, 0, NULL));
    }
    return NULL;
}

/* By class: open rows stay open, closed ones closed. */
static void *relabel_where(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    while (!atomic_load(&done)) {
        const uint32_t bit = (uint32_t)2 << (draw(&state) >> 40) % 3;
        const int sets = draw(&state) >> 40 & 1;
        const carag_predicate some = one_mask(sets ? 1 : 1 | bit, sets ? bit : 0);
        uint64_t changed;
        CHECK_OK(carag_index_relabel_where(shared, &some, sets ? bit : 0, sets ? 0 : bit, &changed, NULL));
        CHECK(changed <= STEADY + FLICKERS);
    }
    return NULL;
}

static void add_closed(int64_t first_key, size_t count, uint64_t seed)
{
    float *more = random_vectors(seed, count, DIM);
    uint32_t *words = random_words(seed, count, 3);
    int64_t *keys = malloc(count * sizeof *keys);
    CHECK(keys);
    for (size_t i = 0; i < count; i++) {
        keys[i] = first_key + 2 * (int64_t)i;
        words[i] &= ~(uint32_t)1;
    }
    carag_rows rows = rows_of(more, words, count);
    rows.keys = keys;
    rows.threads = 2;
    CHECK_OK(carag_index_add(shared, &rows, NULL, NULL));
    free(more);
    free(words);
    free(keys);
}

static void delete_closed(int64_t first_key, size_t count)
{
    int64_t *keys = malloc(count * sizeof *keys);
    CHECK(keys);
    for (size_t i = 0; i < count; i++)
        keys[i] = first_key + 2 * (int64_t)i;
    CHECK_OK(carag_index_delete(shared, keys, count, NULL));
    free(keys);
}

/* Every kind of write in turn: rows one by one, a bulk as large as the index, a clean-up, a file. */
static void write_rows(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t few = ROWS + 1;
        const int64_t many = 100 * ROWS + 1;
        for (int64_t i = 0; i < 20; i++)
            add_closed(few + 2 * i, 1, (uint64_t)(round * 100 + i));
        add_closed(many, round % 3 ? 90 : BULK, (uint64_t)round + 7);
        delete_closed(few, 10);
        if (round % 3 == 0)
            CHECK_OK(carag_index_reserve(shared, (size_t)(round + 4) * ROWS, NULL));
        CHECK_OK(carag_index_save(shared, path, NULL));
        delete_closed(few + 20, 10);
        delete_closed(many, round % 3 ? 90 : BULK);
        if (round % 2)
            CHECK_OK(carag_index_consolidate(shared, 2, NULL));
    }
}

/* ---------------------------------------------------------------- readers */

static void finds_what_is_there(const answer *got, carag_plan plan, size_t k, int64_t nearest)
{
    size_t steady = 0;
    int has_nearest = 0;
    for (int64_t i = 0; i < got->count; i++) {
        CHECK(got->keys[i] % 2 == 0);
        steady += got->keys[i] % 4 == 2;
        has_nearest |= got->keys[i] == nearest;
    }
    CHECK(k == ROWS ? steady == STEADY : (size_t)got->count == k);
    CHECK(has_nearest || plan == CARAG_PLAN_AUTO || plan == CARAG_PLAN_GRAPH || plan == CARAG_PLAN_SCAN);
}

static void *search(void *seed)
{
    const carag_predicate opened = one_mask(1, 0);
    uint64_t state = (uint64_t)(uintptr_t)seed;
    for (size_t i = 0; i < 200 || !atomic_load(&done); i++) {
        const carag_plan plan = (carag_plan)(i % CARAG_PLANS);
        const size_t k = i % 3 ? 10 : ROWS;
        const int64_t nearest = steady_key(&state); /* the query is its own vector */
        answer got;
        CHECK_OK(search_one(shared, vectors + nearest * DIM, &opened, k, 30, plan, &got));
        finds_what_is_there(&got, plan, k, nearest);
        free_answer(&got);
    }
    return NULL;
}

/* Of the rows that a wider search of the same call finds, those are refused that were closed when they were written. */
static void *search_for_both(void *seed)
{
    const carag_predicate opened = one_mask(1, 0);
    const carag_predicate any = one_mask(0, 0);
    uint64_t state = (uint64_t)(uintptr_t)seed;
    for (size_t i = 0; i < 100 || !atomic_load(&done); i++) {
        const carag_search_params params = {.k = i % 3 ? 10 : ROWS, .ef_search = 30, .plan = (carag_plan)(i % CARAG_PLANS),
                                            .threads = 1};
        const size_t more = i % 2 ? 10 : ROWS;
        const int64_t nearest = steady_key(&state);
        answers got;
        CHECK_OK(search_both(shared, vectors + nearest * DIM, &opened, &params, &any, more, &got));
        finds_what_is_there(&got.first, params.plan, params.k, nearest);
        CHECK((size_t)got.second.count == more);
        for (size_t j = 0; j < more; j++) {
            CHECK(got.refused[j] == !(got.words[j] & 1));
            CHECK(got.refused[j] || got.second.keys[j] % 2 == 0);
        }
        CHECK(got.second.keys[0] == nearest || params.plan == CARAG_PLAN_AUTO || params.plan == CARAG_PLAN_GRAPH ||
              params.plan == CARAG_PLAN_SCAN);
        free_answers(&got);
    }
    return NULL;
}

static void *look_up(void *seed)
{
    const carag_predicate opened = one_mask(1, 0);
    uint64_t state = (uint64_t)(uintptr_t)seed;
    while (!atomic_load(&done)) {
        const uint64_t admissible = count_of(shared, &opened);
        const int64_t key = steady_key(&state);
        uint32_t word;
        float vector[DIM];
        int64_t keys[ROWS];
        const carag_columns columns = {.vectors = vector, .words = &word};
        carag_info info;
        CHECK(admissible >= STEADY && admissible <= STEADY + FLICKERS);
        CHECK_OK(carag_index_get(shared, &key, 1, &columns, NULL));
        CHECK((word & 1) && carag_index_contains(shared, key) && !carag_index_contains(shared, INT64_MAX));
        float similarity;
        CHECK_OK(carag_index_similarities(shared, vector, &key, 1, &similarity, NULL));
        CHECK(similarity > 0.999F);
        const int64_t coming = ROWS + 1; /* is there, or is not */
        const carag_status status = carag_index_get(shared, &coming, 1, &columns, NULL);
        CHECK(status == CARAG_UNKNOWN_KEY || (status == CARAG_OK && (word & 1) == 0));
        CHECK(carag_index_keys(shared, keys, ROWS) == ROWS);
        carag_index_info(shared, &info);
        CHECK(info.live >= ROWS && info.rows >= ROWS);
    }
    return NULL;
}

/* Over a view, which is behind as soon as it is made: as it is, and made to believe that it is current. */
static void ask_view(carag_materialised *view, uint64_t *state)
{
    const carag_predicate opened = one_mask(1, 0);
    for (size_t i = 0; i < 40; i++) {
        const carag_search_params params = {.k = i % 3 ? 10 : ROWS, .plan = (carag_plan)(i % CARAG_PLANS), .threads = 1};
        const int64_t nearest = steady_key(state);
        answer got = {.keys = malloc(params.k * sizeof *got.keys),
                      .similarities = malloc(params.k * sizeof *got.similarities)};
        carag_results results = {.keys = got.keys, .similarities = got.similarities, .counts = &got.count,
                                 .estimates = &got.estimates, .distance_computations = &got.distance_computations,
                                 .hops = &got.hops, .ef = &got.ef, .plans = &got.plan, .whys = &got.why};
        const int believes = i % 2;
        if (believes) {
            view->from = atomic_load(&shared->view);
            view->generation = atomic_load(&shared->generation);
        }
        CHECK(got.keys && got.similarities);
        const carag_status status = carag_materialised_search(view, vectors + nearest * DIM, 1, &opened, &params,
                                                              &results, NULL);
        CHECK(status == CARAG_OK || status == CARAG_BEHIND);
        for (int64_t at = 0; status == CARAG_OK && at < got.count; at++)
            CHECK(got.keys[at] % 2 == 0);
        if (status == CARAG_OK && !believes)
            finds_what_is_there(&got, params.plan, params.k, nearest);
        free_answer(&got);
    }
}

static void *view_rows(void *seed)
{
    const carag_predicate opened = one_mask(1, 0);
    uint64_t state = (uint64_t)(uintptr_t)seed;
    while (!atomic_load(&done)) {
        carag_materialised *view = NULL;
        const carag_status status = carag_materialised_copy(shared, &opened, UINT64_MAX, &view, NULL);
        if (status == CARAG_BEHIND)
            continue;
        CHECK_OK(status);
        CHECK_OK(carag_materialised_build(view, 1, NULL));
        ask_view(view, &state);
        carag_materialised_free(view);
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

    void *(*const work[])(void *) = {relabel, relabel_where, search, search, search_for_both, look_up, view_rows};
    enum { THREADS = sizeof work / sizeof *work };
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work[i], (void *)(i + 1)) == 0);
    write_rows();
    atomic_store(&done, 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(carag_index_check(shared, NULL) == 0);
    carag_index_free(shared);
    free(vectors);
    unlink(path);
    return 0;
}
