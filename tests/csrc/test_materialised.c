/* test_materialised.c - materialised views: what one answers is what the index answers, to the last bit where both are
 * exact; after any change of the index it answers nothing; and one that does not know that the index changed still
 * gives out nothing inadmissible.
 */
#define CARAG_ALLOW_LIBC
#include "materialised/materialised.h"
#include "search/search.h"

#include <malloc.h>

#include "oracle.h"

enum { N = 3000, DIM = 16, K = 10, ENTITIES = 20 };

static const uint32_t some_entities[] = {0, 3, 7, 11};
static const uint64_t some_audiences[] = {2 + 8};
static float *vectors;
static uint32_t *words;

/* Rows of few words, entities and instants; odd keys descend as rows ascend, and vectors repeat, so that there are ties. */
static carag_index *make_index(carag_dtype dtype)
{
    carag_index *index = new_index_of(dtype, DIM, 8, 5);
    uint32_t *public_at = room_for(N, sizeof *public_at);
    uint32_t *expires_at = room_for(N, sizeof *expires_at);
    uint32_t *entities = room_for(N, sizeof *entities);
    uint32_t *audiences = room_for(N, sizeof *audiences);
    int64_t *keys = room_for(N, sizeof *keys);
    uint64_t state = 9;
    for (size_t i = 0; i < N; i++) {
        public_at[i] = below(&state, 3) * 100;
        expires_at[i] = below(&state, 2) ? CARAG_NEVER_EXPIRES : 1000;
        entities[i] = below(&state, ENTITIES);
        audiences[i] = below(&state, 3) ? CARAG_EVERYBODY : below(&state, 5);
        keys[i] = i % 2 ? (int64_t)(2 * N - i) : (int64_t)i;
    }
    carag_rows rows = rows_of(vectors, words, N);
    rows.public_at = public_at;
    rows.expires_at = expires_at;
    rows.entities = entities;
    rows.audiences = audiences;
    rows.keys = keys;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    free(public_at);
    free(expires_at);
    free(entities);
    free(audiences);
    free(keys);
    return index;
}

static carag_predicate some_predicate(carag_entity_rule rule)
{
    carag_predicate predicate = one_mask(1, 2);
    ask_at(&predicate, 150);
    predicate.entity_rule = rule;
    predicate.entities = some_entities;
    predicate.entity_count = rule == CARAG_ANY_ENTITY ? 0 : sizeof some_entities / sizeof *some_entities;
    share_with(&predicate, some_audiences, 0);
    return predicate;
}

static carag_materialised *make_view(carag_index *index, const carag_predicate *predicate)
{
    carag_materialised *view;
    CHECK_OK(carag_materialised_copy(index, predicate, UINT64_MAX, &view, NULL));
    CHECK_OK(carag_materialised_build(view, 1, NULL));
    CHECK(carag_materialised_is_current(view));
    return view;
}

static carag_status ask(carag_materialised *view, const float *query, const carag_predicate *predicate, size_t k,
                        carag_plan plan, answer *out)
{
    const carag_search_params params = {.k = k, .ef_search = 0, .plan = plan, .threads = 1};
    *out = (answer){.keys = room_for(k, sizeof *out->keys), .similarities = room_for(k, sizeof *out->similarities)};
    carag_results results = {.keys = out->keys,
                             .similarities = out->similarities,
                             .counts = &out->count,
                             .estimates = &out->estimates,
                             .distance_computations = &out->distance_computations,
                             .hops = &out->hops,
                             .ef = &out->ef,
                             .plans = &out->plan,
                             .whys = &out->why};
    const carag_status status = carag_materialised_search(view, query, 1, predicate, &params, &results, NULL);
    CHECK(status != CARAG_OK || results.materialised == 1);
    out->admissible = results.admissible;
    out->rows = results.rows;
    out->classes = results.classes;
    return status;
}

/* ---------------------------------------------------------------- the same answers */

static void answers_are_those_of_the_index(carag_index *index, carag_materialised *view,
                                           const carag_predicate *predicate, const world *all)
{
    for (size_t q = 0; q < 30; q++) {
        const float *query = vectors + q * 7 * DIM;
        float unit[DIM];
        scored *expected;
        unit_of(query, DIM, unit);
        const size_t admissible = oracle(all, unit, predicate, &expected);
        for (carag_plan plan = CARAG_PLAN_AUTO; plan < CARAG_PLANS; plan++) {
            const size_t k = q % 3 ? K : N;
            answer got;
            answer of_index;
            CHECK_OK(ask(view, query, predicate, k, plan, &got));
            CHECK_OK(search_one(index, query, predicate, k, 0, plan, &of_index));
            obeys(&got, k, expected, admissible);
            CHECK(got.rows == of_index.rows && got.classes == of_index.classes);
            if (is_exact(got.plan) && is_exact(of_index.plan)) {
                CHECK(same_bytes(got.keys, of_index.keys, k * sizeof *got.keys));
                CHECK(same_bytes(got.similarities, of_index.similarities, k * sizeof *got.similarities));
            }
            free_answer(&got);
            free_answer(&of_index);
        }
        free(expected);
    }
}

static void a_view_answers_as_the_index_does(carag_dtype dtype)
{
    carag_index *index = make_index(dtype);
    world all = world_of(index);
    for (carag_entity_rule rule = CARAG_ANY_ENTITY; rule <= CARAG_NOT_ENTITIES; rule++) {
        const carag_predicate predicate = some_predicate(rule);
        carag_materialised *view = make_view(index, &predicate);
        answers_are_those_of_the_index(index, view, &predicate, &all);
        CHECK(carag_materialised_rows(view) == count_of(index, &predicate));
        carag_materialised_free(view);
    }
    free_world(&all);
    carag_index_free(index);
}

/* ---------------------------------------------------------------- what it answers nothing to */

/* Not for one row either, which may be admissible under what is asked. */
static void behind(carag_materialised *view, const carag_predicate *predicate)
{
    for (size_t q = 0; q < 40; q++) {
        answer got;
        CHECK(ask(view, vectors + q * DIM, predicate, q % 2 ? 1 : K, CARAG_PLAN_AUTO, &got) == CARAG_BEHIND);
        free_answer(&got);
    }
}

static void other_predicates_are_not_answered(void)
{
    carag_index *index = make_index(CARAG_FLOAT32);
    const uint32_t others[] = {0, 3, 7, ENTITIES}; /* the last of which does not exist */
    for (carag_entity_rule rule = CARAG_ANY_ENTITY; rule <= CARAG_NOT_ENTITIES; rule++) {
        const carag_predicate predicate = some_predicate(rule);
        carag_materialised *view = make_view(index, &predicate);
        for (uint32_t instant = 0; instant < 1200; instant += 50) { /* of what is public at 0, 100, 200 until 1000 */
            carag_predicate later = predicate;
            ask_at(&later, instant);
            if (instant < 100 || instant >= 200) {
                behind(view, &later);
                continue;
            }
            answer got;
            CHECK_OK(ask(view, vectors, &later, K, CARAG_PLAN_AUTO, &got));
            free_answer(&got);
        }
        carag_predicate aged = predicate;
        aged.alive_at = 999;
        answer got;
        CHECK_OK(ask(view, vectors, &aged, K, CARAG_PLAN_AUTO, &got));
        free_answer(&got);
        aged.alive_at = 1000;
        behind(view, &aged);
        carag_predicate other = predicate;
        other.pairs[0] = one_mask(0, 2).pairs[0]; /* which admits what the view has, and more */
        behind(view, &other);
        other = predicate;
        other.pairs[1] = other.pairs[0];
        other.pair_count = 2;
        behind(view, &other);
        other = predicate;
        other.pair_count = 0;
        behind(view, &other);
        for (carag_entity_rule asked = CARAG_ANY_ENTITY; asked <= CARAG_NOT_ENTITIES; asked++) {
            other = some_predicate(asked);
            other.entity_count = predicate.entity_count;
            if (asked != rule)
                behind(view, &other);
        }
        other = some_predicate(rule);
        other.entities = others;
        if (rule != CARAG_ANY_ENTITY) {
            behind(view, &other);
            other.entities = some_entities;
            other.entity_count--;
            behind(view, &other);
        }
        const uint64_t more_audiences[] = {2 + 8 + 16};
        other = predicate;
        other.audiences = more_audiences;
        behind(view, &other);
        other = predicate;
        other.audience_rule = CARAG_ANY_AUDIENCE;
        behind(view, &other);
        other = predicate;
        other.audience_count = 2;
        behind(view, &other);
        other = predicate;
        other.pairs[0].mask = 0;
        CHECK(ask(view, vectors, &other, K, CARAG_PLAN_AUTO, &got) == CARAG_BAD_PREDICATE);
        free_answer(&got);
        carag_materialised_free(view);
    }
    carag_index_free(index);
}

static void a_view_is_refused(void)
{
    carag_index *index = make_index(CARAG_FLOAT32);
    carag_predicate predicate = some_predicate(CARAG_ANY_ENTITY);
    carag_materialised *view = NULL;
    const uint64_t bytes = carag_materialised_bytes(index, (uint32_t)count_of(index, &predicate));
    CHECK(carag_materialised_copy(index, &predicate, bytes - 1, &view, NULL) == CARAG_FULL && !view);
    const carag_predicate nothing = one_mask(1 << 20, 0);
    CHECK(carag_materialised_copy(index, &nothing, UINT64_MAX, &view, NULL) == CARAG_BEHIND && !view);
    carag_predicate open = predicate;
    open.pairs[0].mask = 0;
    CHECK(carag_materialised_copy(index, &open, UINT64_MAX, &view, NULL) == CARAG_BAD_PREDICATE && !view);
    CHECK_OK(carag_materialised_copy(index, &predicate, bytes, &view, NULL));
    behind(view, &predicate); /* it is not built */
    CHECK(carag_materialised_build(view, 0, NULL) == CARAG_BAD_ARGUMENT);
    CHECK_OK(carag_materialised_build(view, 1, NULL));
    CHECK(carag_materialised_build(view, 1, NULL) == CARAG_BAD_ARGUMENT);
    carag_materialised_free(view);
    carag_materialised_free(NULL);
    CHECK_OK(carag_materialised_copy(index, &predicate, bytes, &view, NULL));
    carag_materialised_free(view);
    carag_index_free(index);
}

/* ---------------------------------------------------------------- memory */

static atomic_size_t outstanding;

static void *counting_allocate(size_t size)
{
    void *memory = malloc(size);
    CHECK(memory);
    atomic_fetch_add(&outstanding, malloc_usable_size(memory));
    return memory;
}

static void counting_release(void *memory)
{
    if (memory)
        atomic_fetch_sub(&outstanding, malloc_usable_size(memory));
    free(memory);
}

/* Working memory of searches, and what is lost to the alignment of two dozen arrays, aside. */
static void a_view_takes_what_it_says(carag_dtype dtype)
{
    enum { WIDE = 256, ROWS = 2800 }; /* so that no array is aligned to a large page */
    float *wide = random_vectors(4, ROWS, WIDE);
    uint32_t *few = random_words(5, ROWS, 2);
    carag_set_allocator(counting_allocate, counting_release);
    carag_index *index = new_index_of(dtype, WIDE, 16, 5);
    const carag_rows rows = rows_of(wide, few, ROWS);
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    const carag_predicate predicate = one_mask(1, 0);
    const size_t before = atomic_load(&outstanding);
    carag_materialised *view = make_view(index, &predicate);
    carag_scratches_free(view->index);
    const double taken = (double)(atomic_load(&outstanding) - before);
    const double said = (double)carag_materialised_bytes(index, carag_materialised_rows(view));
    CHECK(taken < 1.05 * said + (1 << 16) && taken > 0.95 * said);
    carag_materialised_free(view);
    CHECK(atomic_load(&outstanding) <= before);
    carag_index_free(index);
    CHECK(atomic_load(&outstanding) == 0);
    carag_set_allocator(NULL, NULL);
    free(wide);
    free(few);
}

/* ---------------------------------------------------------------- changes */

enum { CLOSE_ONE, CLOSE_MANY, CLOSE_BY_CLASS, OPEN_ONE, DELETE, ADD_ONE, ADD_MANY, DELETE_AND_ADD, CONSOLIDATE, CLOSE_AND_CONSOLIDATE, CHANGES };

static void add(carag_index *index, int64_t first_key, size_t count, uint32_t word)
{
    int64_t *keys = room_for(count, sizeof *keys);
    uint32_t *given = room_for(count, sizeof *given);
    for (size_t i = 0; i < count; i++) {
        keys[i] = first_key + (int64_t)i;
        given[i] = word;
    }
    carag_rows rows = rows_of(vectors, given, count);
    rows.keys = keys;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    free(keys);
    free(given);
}

/* The nearest admissible row, which a change then closes. */
static int64_t nearest(carag_index *index, const carag_predicate *predicate)
{
    answer got;
    CHECK_OK(search_one(index, vectors, predicate, 1, 0, CARAG_PLAN_EXACT, &got));
    const int64_t key = got.keys[0];
    free_answer(&got);
    return key;
}

static void change(carag_index *index, int kind, const carag_predicate *predicate)
{
    const int64_t key = nearest(index, predicate);
    const uint32_t closed = WORD(2);
    const uint32_t opened = WORD(1);
    uint64_t changed;
    switch (kind) {
    case CLOSE_ONE: CHECK_OK(carag_index_relabel(index, &key, &closed, 1, 0, NULL)); return;
    case CLOSE_MANY: {
        int64_t *keys = room_for(N, sizeof *keys);
        uint32_t *given = room_for(N, sizeof *given);
        const size_t count = carag_index_keys(index, keys, N);
        for (size_t i = 0; i < count; i++)
            given[i] = closed;
        CHECK_OK(carag_index_relabel(index, keys, given, count, 0, NULL));
        free(keys);
        free(given);
        return;
    }
    case CLOSE_BY_CLASS: CHECK_OK(carag_index_relabel_where(index, predicate, 2, 0, &changed, NULL)); return;
    case OPEN_ONE: {
        int64_t *keys = room_for(N, sizeof *keys);
        const size_t count = carag_index_keys(index, keys, N);
        for (size_t i = 0; i < count; i++) {
            uint32_t word;
            const carag_columns columns = {.words = &word};
            CHECK_OK(carag_index_get(index, &keys[i], 1, &columns, NULL));
            if (word & 2) {
                CHECK_OK(carag_index_relabel(index, &keys[i], &opened, 1, 0, NULL));
                break;
            }
        }
        free(keys);
        return;
    }
    case DELETE: CHECK_OK(carag_index_delete(index, &key, 1, NULL)); return;
    case ADD_ONE: add(index, 3 * N, 1, opened); return;
    case ADD_MANY: add(index, 3 * N, N, opened); return;
    case DELETE_AND_ADD:
        CHECK_OK(carag_index_delete(index, &key, 1, NULL));
        add(index, key, 1, closed);
        return;
    case CLOSE_AND_CONSOLIDATE: {
        int64_t *keys = room_for(N, sizeof *keys);
        uint32_t *given = room_for(N, sizeof *given);
        const size_t count = carag_index_keys(index, keys, N) / 2;
        for (size_t i = 0; i < count; i++)
            given[i] = closed;
        CHECK_OK(carag_index_relabel(index, keys, given, count, 0, NULL));
        CHECK_OK(carag_index_consolidate(index, 1, NULL));
        free(keys);
        free(given);
        return;
    }
    case CONSOLIDATE:
        CHECK_OK(carag_index_delete(index, &key, 1, NULL));
        CHECK_OK(carag_index_consolidate(index, 1, NULL));
        return;
    default: CHECK(false);
    }
}

/* Nothing that is admissible now may be missing from an answer, and nothing else may be in it. */
static void is_admissible_now(const world *all, const carag_predicate *predicate, const answer *got)
{
    for (int64_t i = 0; i < got->count; i++) {
        size_t at = 0;
        while (at < all->count && all->keys[at] != got->keys[i])
            at++;
        CHECK(at < all->count && admits(predicate, all->words[at], all->public_at[at], all->expires_at[at],
                                        all->entities[at], all->audiences[at]));
    }
}

/* No change goes unnoticed; and where the view is made to believe that it is current, the rows that it finds are still
 * tested.
 */
static void a_view_that_is_behind_answers_and_leaks_nothing(void)
{
    const carag_predicate predicate = some_predicate(CARAG_NOT_ENTITIES);
    for (int kind = 0; kind < CHANGES; kind++) {
        carag_index *index = make_index(CARAG_FLOAT32);
        carag_materialised *view = make_view(index, &predicate);
        change(index, kind, &predicate);
        CHECK(!carag_materialised_is_current(view));
        behind(view, &predicate);
        view->from = atomic_load(&index->view);
        view->generation = atomic_load(&index->generation);
        CHECK(carag_materialised_is_current(view));
        world all = world_of(index);
        size_t answered = 0;
        for (carag_plan plan = CARAG_PLAN_AUTO; plan < CARAG_PLANS; plan++) {
            for (size_t q = 0; q < 40; q++) {
                answer got;
                const carag_status status = ask(view, vectors + q * DIM, &predicate, q % 2 ? 1 : K, plan, &got);
                CHECK(status == CARAG_OK || status == CARAG_BEHIND);
                CHECK(status == CARAG_BEHIND || q > 0 || kind == OPEN_ONE || kind == ADD_ONE || kind == ADD_MANY);
                if (status == CARAG_OK)
                    is_admissible_now(&all, &predicate, &got);
                answered += status == CARAG_OK;
                free_answer(&got);
            }
        }
        CHECK(answered > 0 || kind == CLOSE_MANY || kind == CLOSE_BY_CLASS ||
              kind == CONSOLIDATE || kind == CLOSE_AND_CONSOLIDATE);
        free_world(&all);
        carag_materialised_free(view);
        carag_index_free(index);
    }
}

/* The words are all open there, so it is the terms of the row in the index that close it. */
static void instants_are_asked_of_the_row_itself(void)
{
    carag_index *index = make_index(CARAG_FLOAT32);
    const carag_predicate predicate = some_predicate(CARAG_ANY_ENTITY);
    carag_materialised *view = make_view(index, &predicate);
    view->standing.window = (carag_window){0, UINT32_MAX, 0, UINT32_MAX};
    carag_predicate later = predicate;
    ask_at(&later, 5000); /* half of the rows have expired */
    world all = world_of(index);
    for (size_t q = 0; q < 40; q++) {
        answer got;
        if (ask(view, vectors + q * DIM, &later, 1, CARAG_PLAN_AUTO, &got) == CARAG_OK)
            is_admissible_now(&all, &later, &got);
        free_answer(&got);
        CHECK(ask(view, vectors + q * DIM, &later, N, CARAG_PLAN_AUTO, &got) == CARAG_BEHIND);
        free_answer(&got);
    }
    free_world(&all);
    carag_materialised_free(view);
    carag_index_free(index);
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    vectors = random_vectors(1, N, DIM);
    words = random_words(2, N, 3);
    for (size_t i = N / 2; i < N; i++) /* ties */
        memcpy(vectors + i * DIM, vectors + (i - N / 2) * DIM, DIM * sizeof *vectors);
    for (carag_dtype dtype = CARAG_FLOAT32; dtype <= CARAG_INT8; dtype++)
        a_view_answers_as_the_index_does(dtype);
    for (carag_dtype dtype = CARAG_FLOAT32; dtype <= CARAG_INT8; dtype++)
        a_view_takes_what_it_says(dtype);
    other_predicates_are_not_answered();
    a_view_is_refused();
    a_view_that_is_behind_answers_and_leaks_nothing();
    instants_are_asked_of_the_row_itself();
    free(vectors);
    free(words);
    return 0;
}
