/* test_oom.c - every single allocation of every call fails once, alone and with all that follow it: the call
 * says so, the index is as before, nothing leaks; and the same call made again does what it would have done
 * at once.
 */
#include <unistd.h>

#include "failing.h"
#include "oracle.h"

enum { DIM = 5, ROWS = 700, QUERIES = 4 };

static float *vectors;
static uint32_t *words;
static char path[512];

/* ---------------------------------------------------------------- what an index is */

static uint64_t mixed(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211); /* FNV-1a */
    return hash;
}

/* Rows, words, terms and vectors, and the answers of every plan. */
static uint64_t fingerprint(carag_index *index)
{
    carag_info info;
    carag_index_info(index, &info);
    world all = world_of(index);
    uint64_t hash = mixed(UINT64_C(14695981039346656037), &info.rows, sizeof info.rows);
    hash = mixed(hash, all.keys, all.count * sizeof *all.keys);
    hash = mixed(hash, all.words, all.count * sizeof *all.words);
    hash = mixed(hash, all.public_at, all.count * sizeof *all.public_at);
    hash = mixed(hash, all.vectors, all.count * DIM * sizeof *all.vectors);
    for (uint32_t q = 0; q < QUERIES; q++)
        for (size_t p = 1; p < PLANS; p++) {
            const carag_predicate predicate = one_mask(q & 3, ~q & 1);
            answer got;
            CHECK_OK(search_one(index, vectors + q * DIM, &predicate, 7, 20, plans[p], &got));
            if (plans[p] != CARAG_PLAN_SCAN) { /* goes another way where there was no memory for the copy by words */
                hash = mixed(hash, got.keys, 7 * sizeof *got.keys);
                hash = mixed(hash, got.similarities, 7 * sizeof *got.similarities);
            }
            hash = mixed(hash, &got.count, sizeof got.count);
            hash = mixed(hash, &got.admissible, sizeof got.admissible);
            free_answer(&got);
        }
    CHECK(carag_index_check(index, NULL) == 0);
    free_world(&all);
    return hash;
}

/* ---------------------------------------------------------------- calls */

static carag_status add(carag_index *index, size_t from, size_t count, uint32_t threads)
{
    carag_rows rows = rows_of(vectors + from * DIM, words + from, count);
    rows.threads = threads;
    return carag_index_add(index, &rows, NULL, NULL);
}

static carag_status add_one(carag_index *index) { return add(index, 500, 1, 1); }
static carag_status add_few(carag_index *index) { return add(index, 500, 20, 1); }
static carag_status add_hundred(carag_index *index) { return add(index, 500, 99, 1); }
static carag_status add_bulk(carag_index *index) { return add(index, 400, 256, 1); } /* a new graph */

static carag_status search(carag_index *index, carag_plan plan, uint32_t threads)
{
    int64_t keys[QUERIES * 9], numbers[QUERIES];
    float similarities[QUERIES * 9];
    uint8_t bytes[QUERIES];
    carag_results results = {.keys = keys, .similarities = similarities, .counts = numbers, .estimates = numbers,
                             .distance_computations = numbers, .hops = numbers, .ef = numbers, .plans = bytes,
                             .whys = bytes};
    const carag_search_params params = {.k = 9, .ef_search = 30, .plan = plan, .threads = threads};
    const carag_predicate some = one_mask(1, 0);
    similarities[0] = 9.0F;
    const carag_status status = carag_index_search(index, vectors, QUERIES, &some, &params, &results, NULL);
    CHECK((status == CARAG_OK) == (similarities[0] < 8.0F)); /* outputs untouched */
    return status;
}

static carag_status search_auto(carag_index *index) { return search(index, CARAG_PLAN_AUTO, 1); }
static carag_status search_exact(carag_index *index) { return search(index, CARAG_PLAN_EXACT, 1); }
static carag_status search_both_on(carag_index *index, carag_plan plan, uint32_t threads)
{
    int64_t keys[2][QUERIES * 9], numbers[QUERIES];
    float similarities[2][QUERIES * 9];
    uint32_t found[QUERIES * 9];
    uint8_t bytes[QUERIES], refused[QUERIES * 9];
    carag_results results[2];
    const carag_search_params params = {.k = 6, .ef_search = 30, .plan = plan, .threads = threads};
    const carag_predicate some = one_mask(1, 0);
    const carag_predicate all = one_mask(0, 0);
    for (int i = 0; i < 2; i++) {
        results[i] = (carag_results){.keys = keys[i], .similarities = similarities[i], .counts = numbers,
                                     .estimates = numbers, .distance_computations = numbers, .hops = numbers,
                                     .ef = numbers, .plans = bytes, .whys = bytes};
        similarities[i][0] = 9.0F;
    }
    const carag_wider wider = {&all, 9, &results[1], found, refused};
    const carag_status status = carag_index_search_both(index, vectors, QUERIES, &some, &params, results, &wider, NULL);
    CHECK((status == CARAG_OK) == (similarities[0][0] < 8.0F) && (status == CARAG_OK) == (similarities[1][0] < 8.0F));
    return status;
}

static carag_status search_both_exact(carag_index *index) { return search_both_on(index, CARAG_PLAN_EXACT, 1); }
static carag_status search_both_graph_on_two(carag_index *index) { return search_both_on(index, CARAG_PLAN_GRAPH, 2); }
static carag_status search_graph(carag_index *index) { return search(index, CARAG_PLAN_GRAPH, 1); }
static carag_status search_scan(carag_index *index) { return search(index, CARAG_PLAN_SCAN, 1); }
static carag_status search_certified(carag_index *index) { return search(index, CARAG_PLAN_CERTIFIED, 1); }
static carag_status search_auto_on_two(carag_index *index) { return search(index, CARAG_PLAN_AUTO, 2); }
static carag_status search_exact_on_two(carag_index *index) { return search(index, CARAG_PLAN_EXACT, 2); }
static carag_status search_graph_on_two(carag_index *index) { return search(index, CARAG_PLAN_GRAPH, 2); }
static carag_status search_scan_on_two(carag_index *index) { return search(index, CARAG_PLAN_SCAN, 2); }
static carag_status search_certified_on_two(carag_index *index) { return search(index, CARAG_PLAN_CERTIFIED, 2); }

/* The first keys; with `kinds` above what can be added to the dictionary, a new catalog is made. */
static carag_status relabel(carag_index *index, size_t count, uint32_t kinds)
{
    int64_t keys[200];
    uint32_t new_words[200];
    for (size_t i = 0; i < count; i++) {
        keys[i] = (int64_t)(i % 90);
        new_words[i] = WORD(100 + i % kinds);
    }
    return carag_index_relabel(index, keys, new_words, count, 0, NULL);
}

static carag_status relabel_few(carag_index *index) { return relabel(index, 10, 3); }
static carag_status relabel_many(carag_index *index) { return relabel(index, 200, 90); }

static carag_status relabel_where(carag_index *index)
{
    const carag_predicate some = one_mask(1, 2);
    uint64_t changed = UINT64_MAX;
    const carag_status status = carag_index_relabel_where(index, &some, 2, 1, &changed, NULL);
    CHECK((status == CARAG_OK) == (changed < UINT64_MAX));
    return status;
}

static carag_status delete_few(carag_index *index)
{
    const int64_t keys[] = {3, 5, 7, 3};
    return carag_index_delete(index, keys, 4, NULL);
}

static carag_status reserve(carag_index *index) { return carag_index_reserve(index, 3 * ROWS, NULL); }
static carag_status consolidate(carag_index *index) { return carag_index_consolidate(index, 1, NULL); }
static carag_status consolidate_on_two(carag_index *index) { return carag_index_consolidate(index, 2, NULL); }

/* A view, and what it answers. */
static carag_status materialise(carag_index *index)
{
    const carag_predicate some = one_mask(1, 0);
    carag_materialised *view = NULL;
    carag_status status = carag_materialised_copy(index, &some, UINT64_MAX, &view, NULL);
    CHECK((status == CARAG_OK) == (view != NULL));
    if (status == CARAG_OK)
        status = carag_materialised_build(view, 1, NULL);
    carag_materialised_free(view);
    return status;
}

static carag_status count(carag_index *index)
{
    const carag_predicate open = one_mask(0, 0);
    uint64_t admissible;
    return carag_index_count(index, &open, &admissible, NULL);
}

/* A file is there afterwards, or was not made. */
static carag_status save(carag_index *index)
{
    unlink(path);
    const carag_status status = carag_index_save(index, path, NULL);
    CHECK((status == CARAG_OK) == (access(path, F_OK) == 0));
    return status;
}

static carag_index *loaded;

static carag_status load(carag_index *index) /* the file is that of the index */
{
    (void)index;
    return carag_index_load(path, 0, &loaded, NULL);
}

static carag_status load_mapped(carag_index *index)
{
    (void)index;
    return carag_index_load(path, 1, &loaded, NULL);
}

static carag_status preload(carag_index *index) { return carag_index_preload(index, NULL); }
static carag_status verify(carag_index *index) { return carag_index_verify(index, NULL); }

static carag_status similarities(carag_index *index)
{
    const int64_t keys[] = {5, 3, 80};
    float found[3] = {9.0F, 9.0F, 9.0F};
    const carag_status status = carag_index_similarities(index, vectors, keys, 3, found, NULL);
    CHECK((status == CARAG_OK) == (found[0] < 8.0F)); /* outputs untouched */
    return status;
}

static carag_status get(carag_index *index)
{
    const int64_t key = 8;
    const carag_columns none = {.words = NULL};
    return carag_index_get(index, &key, 1, &none, NULL);
}

static carag_status contains(carag_index *index) /* which cannot fail */
{
    CHECK(carag_index_contains(index, 8) && !carag_index_contains(index, 80000));
    return CARAG_OK;
}

/* ---------------------------------------------------------------- indexes */

static carag_index *make_empty(void) { return new_index(DIM, 4, 1); }

static carag_index *make_rows(size_t count)
{
    carag_index *index = make_empty();
    CHECK_OK(add(index, 0, count, 1));
    return index;
}

static carag_index *make_some(void) { return make_rows(100); } /* exactly: the next row makes it grow */

static carag_index *make_roomy(void) /* there is room, and no new centre is due before 200 rows */
{
    carag_index *index = make_some();
    CHECK_OK(add(index, 100, 1, 1));
    return index;
}

static carag_index *make_few(void) { return make_rows(5); }

static carag_index *make_many(void) { return make_rows(260); } /* enough for a cost model */

static carag_index *make_holey(void)
{
    carag_index *index = make_some();
    int64_t keys[30];
    for (int64_t i = 0; i < 30; i++)
        keys[i] = 3 * i + 1; /* not 8 */
    CHECK_OK(carag_index_delete(index, keys, 30, NULL));
    return index;
}

static carag_index *make_saved(void)
{
    carag_index *index = make_holey();
    CHECK_OK(save(index));
    return index;
}

static carag_index *make_mapped(void)
{
    carag_index *index = NULL;
    carag_index_free(make_saved());
    CHECK_OK(carag_index_load(path, 1, &index, NULL));
    return index;
}

/* ---------------------------------------------------------------- the walk */

typedef carag_index *(*make_fn)(void);
typedef carag_status (*act_fn)(carag_index *index);

static void settle_loaded(carag_index *index)
{
    if (loaded)
        CHECK(fingerprint(loaded) == fingerprint(index));
    carag_index_free(loaded);
    loaded = NULL;
}

/* The nth allocation fails, alone or with all that follow: what was said is true. True when there were as
 * many. */
static bool nth_fails(make_fn make, act_fn act, long nth, bool and_all_after, uint64_t before, uint64_t after)
{
    carag_index *index = make();
    arm(nth, and_all_after);
    carag_status status = act(index);
    const bool failed = disarm();
    if (status != CARAG_OK) { /* a failure may also be done without */
        CHECK(failed && status == CARAG_NO_MEMORY && loaded == NULL);
        CHECK(fingerprint(index) == before);
        if (!and_all_after)
            CHECK_OK(act(index));
    }
    CHECK((status != CARAG_OK && and_all_after) || fingerprint(index) == after);
    settle_loaded(index);
    carag_index_free(index);
    CHECK(atomic_load(&outstanding) == 0);
    return failed;
}

static void every_allocation_fails_once(make_fn make, act_fn act)
{
    carag_index *index = make();
    const uint64_t before = fingerprint(index);
    carag_index_free(index);
    index = make(); /* a fingerprint leaves memory for searches behind */
    CHECK_OK(act(index));
    const uint64_t after = fingerprint(index);
    settle_loaded(index);
    carag_index_free(index);
    for (int on = 0; on < 2; on++)
        for (long nth = 0; nth_fails(make, act, nth, on != 0, before, after); nth++)
            ;
}

static void making_one_fails(void)
{
    const carag_params params = {.dim = DIM, .M = 4, .ef_construction = 20, .seed = 1};
    carag_index *index = NULL;
    carag_status status = CARAG_NO_MEMORY;
    for (long nth = 0; status != CARAG_OK; nth++) {
        arm(nth, false);
        status = carag_index_new(&params, &index, NULL);
        CHECK(disarm() == (status == CARAG_NO_MEMORY) && (index == NULL) == (status != CARAG_OK));
        CHECK(index || atomic_load(&outstanding) == 0);
    }
    carag_index_free(index);
    carag_index_free(NULL);
    CHECK(atomic_load(&outstanding) == 0);
}

int main(int argc, char **argv)
{
    static const struct {
        make_fn make;
        act_fn act;
    } walks[] = {
        {make_empty, add_few},         {make_few, add_bulk},           {make_some, add_one},
        {make_roomy, add_one},         {make_roomy, add_few},          {make_roomy, add_hundred},
        {make_some, search_exact},     {make_some, search_graph},      {make_some, search_scan},
        {make_some, search_certified}, {make_many, search_auto},       {make_some, search_exact_on_two},
        {make_some, search_graph_on_two}, {make_some, search_scan_on_two}, {make_some, search_certified_on_two},
        {make_some, search_both_exact}, {make_some, search_both_graph_on_two},
        {make_many, search_auto_on_two}, {make_some, relabel_few},     {make_some, relabel_many},
        {make_some, relabel_where},    {make_many, relabel_where},     {make_some, delete_few},
        {make_holey, consolidate},     {make_holey, consolidate_on_two}, {make_empty, consolidate},
        {make_some, materialise},      {make_mapped, materialise},
        {make_empty, reserve},         {make_holey, reserve},          {make_mapped, reserve},
        {make_some, count},            {make_holey, save},             {make_saved, load},
        {make_saved, load_mapped},     {make_mapped, verify},          {make_mapped, get},
        {make_some, similarities},     {make_mapped, similarities},
        {make_mapped, preload},        {make_some, preload},
        {make_mapped, contains},       {make_mapped, add_one},         {make_mapped, relabel_where},
        {make_mapped, consolidate},    {make_mapped, save},
    };
    temporary(argc, argv, path, "test_oom.carag");
    vectors = random_vectors(1, ROWS, DIM);
    words = random_words(1, ROWS, 2);
    carag_set_allocator(failing_allocate, counting_release);
    making_one_fails();
    for (size_t i = 0; i < sizeof walks / sizeof *walks; i++)
        every_allocation_fails_once(walks[i].make, walks[i].act);
    carag_set_allocator(NULL, NULL);
    unlink(path);
    free(vectors);
    free(words);
    return 0;
}
