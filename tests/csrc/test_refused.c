/* test_refused.c - all or nothing: whatever is wrong with a call, wherever in the batch, the call says what
 * and where, its outputs are untouched, and the index is as before.
 */
#include "oracle.h"

#define TOMBSTONE ((uint32_t)1 << 31)

/* What an index holds, and that afterwards it holds the same. */
typedef struct snapshot {
    world rows;
    carag_info info;
} snapshot;

static snapshot take(carag_index *index)
{
    snapshot before = {.rows = world_of(index)};
    carag_index_info(index, &before.info);
    return before;
}

static void is_unchanged(carag_index *index, snapshot before)
{
    snapshot after = take(index);
    CHECK(same_worlds(&before.rows, &after.rows));
    CHECK(before.info.rows == after.info.rows && before.info.live == after.info.live);
    CHECK(carag_index_check(index, NULL) == 0);
    free_world(&before.rows);
    free_world(&after.rows);
}

/* ---------------------------------------------------------------- adding */

static void refuses(carag_index *index, carag_rows rows, carag_status wanted, uint64_t row)
{
    carag_fault fault = {0};
    int64_t out_keys[8] = {-5, -5, -5, -5, -5, -5, -5, -5};
    const snapshot before = take(index);
    CHECK(carag_index_add(index, &rows, out_keys, &fault) == wanted);
    CHECK(fault.row == row);
    for (int i = 0; i < 8; i++)
        CHECK(out_keys[i] == -5);
    for (int64_t key = 1000; key < 1004; key++)
        CHECK(!carag_index_contains(index, key));
    is_unchanged(index, before);
}

static void a_bad_row_changes_nothing(void)
{
    enum { N = 4, DIM = 3 };
    carag_index *index = new_index(DIM, 4, 0);
    float *vectors = random_vectors(3, N, DIM);
    uint32_t *words = random_words(3, N, 2);
    const int64_t good[] = {7, 8, 9, 10};
    const int64_t fresh[] = {1000, 1001, 1002, 1003};
    carag_rows rows = rows_of(vectors, words, N);
    rows.keys = good;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    for (size_t at = 0; at < N; at++) { /* wherever in the batch it stands */
        int64_t keys[N];
        memcpy(keys, fresh, sizeof keys);
        rows.keys = keys;
        keys[at] = 9;
        refuses(index, rows, CARAG_DUPLICATE_KEY, at);
        keys[at] = -1;
        refuses(index, rows, CARAG_BAD_KEY, at);
        memcpy(keys, fresh, sizeof keys);
        if (at > 0) {
            keys[at] = keys[at - 1];
            refuses(index, rows, CARAG_DUPLICATE_KEY, at);
            keys[at] = fresh[at];
        }
        float *row = vectors + at * DIM;
        float kept[DIM];
        memcpy(kept, row, sizeof kept);
        const float not_finite[] = {NAN, INFINITY, -INFINITY};
        for (size_t i = 0; i < 3; i++) {
            row[i] = not_finite[i];
            refuses(index, rows, CARAG_NOT_FINITE, at);
            memcpy(row, kept, sizeof kept);
        }
        memset(row, 0, sizeof kept);
        refuses(index, rows, CARAG_ZERO_VECTOR, at);
        memcpy(row, kept, sizeof kept);
        const uint32_t word = words[at];
        const uint32_t bad[] = {(uint32_t)2 << 27, (uint32_t)3 << 27, (uint32_t)7 << 27, WORD(0) | TOMBSTONE,
                                WORD(0) | QUARANTINE, QUARANTINE};
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            words[at] = bad[i];
            refuses(index, rows, CARAG_BAD_WORD, at);
        }
        words[at] = word;
    }
    rows.keys = fresh;
    for (uint32_t threads = 0; threads <= CARAG_MAX_THREADS + 1; threads += CARAG_MAX_THREADS + 1) {
        rows.threads = threads;
        refuses(index, rows, CARAG_BAD_ARGUMENT, 0);
    }
    rows.threads = 1;
    for (size_t i = 0; i < DIM; i++)
        vectors[DIM + i] = i == 1 ? 1e-38F : 0.0F; /* its square underflows a float, but not a double */
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    CHECK(carag_index_check(index, NULL) == 0);
    carag_index_free(index);
    free(vectors);
    free(words);
}

/* The second, the bulk and the growing add refuse as the first does. */
static void a_bad_row_late_in_a_bulk_changes_nothing(void)
{
    enum { N = 700, DIM = 4 };
    carag_index *index = new_index(DIM, 4, 0);
    float *vectors = random_vectors(60, N, DIM);
    uint32_t *words = random_words(60, N, 2);
    int64_t keys[N];
    for (int64_t i = 0; i < N; i++)
        keys[i] = i % 600 + 2000; /* the last hundred come twice */
    carag_rows rows = rows_of(vectors, words, 10);
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    rows.count = N;
    rows.keys = keys;
    refuses(index, rows, CARAG_DUPLICATE_KEY, 600);
    rows.count = 600;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    refuses(index, rows, CARAG_DUPLICATE_KEY, 0);
    carag_index_free(index);
    free(vectors);
    free(words);
}

/* ---------------------------------------------------------------- changing */

static void a_bad_change_changes_nothing(void)
{
    enum { N = 20 };
    carag_index *index = new_index(4, 4, 1);
    float *vectors = random_vectors(6, N, 4);
    uint32_t words[N];
    for (int i = 0; i < N; i++)
        words[i] = WORD(1);
    const carag_rows rows = rows_of(vectors, words, N);
    const int64_t keys[] = {3, 99, 4};
    const int64_t negative[] = {3, -1};
    const uint32_t closed[] = {WORD(3), WORD(3), WORD(3)};
    const uint32_t bad[] = {WORD(3), WORD(1) | QUARANTINE, WORD(1)};
    const carag_predicate open = one_mask(1, 0);
    carag_fault fault = {0};
    uint64_t number = 99;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    const snapshot before = take(index);
    CHECK(carag_index_relabel(index, keys, closed, 3, 0, &fault) == CARAG_UNKNOWN_KEY && fault.row == 1);
    CHECK(carag_index_relabel(index, negative, closed, 2, 0, &fault) == CARAG_UNKNOWN_KEY && fault.row == 1);
    CHECK(carag_index_relabel(index, keys, bad, 3, 0, &fault) == CARAG_BAD_WORD && fault.row == 1);
    CHECK(carag_index_delete(index, keys, 3, &fault) == CARAG_UNKNOWN_KEY && fault.row == 1);
    CHECK(carag_index_relabel_where(index, &open, 2, 2, &number, NULL) == CARAG_BAD_ARGUMENT);
    CHECK(carag_index_relabel_where(index, &open, WORD(0), 0, &number, NULL) == CARAG_BAD_ARGUMENT);
    CHECK(carag_index_relabel_where(index, &open, 0, QUARANTINE, &number, NULL) == CARAG_BAD_ARGUMENT);
    CHECK(carag_index_relabel_where(index, &open, TOMBSTONE, 0, &number, NULL) == CARAG_BAD_ARGUMENT);
    CHECK(number == 99);
    CHECK(carag_index_reserve(index, (size_t)UINT32_MAX - 63, &fault) == CARAG_FULL);
    CHECK(carag_index_consolidate(index, 0, NULL) == CARAG_BAD_ARGUMENT);
    CHECK(carag_index_consolidate(index, CARAG_MAX_THREADS + 1, NULL) == CARAG_BAD_ARGUMENT);
    is_unchanged(index, before);
    carag_index_free(index);
    free(vectors);
}

/* ---------------------------------------------------------------- asking */

static void a_predicate_must_be_closed(void)
{
    static const uint32_t descending[] = {5, 4};
    static const uint32_t twice[] = {4, 4};
    carag_index *index = new_index(2, 4, 0);
    const float query[2] = {1, 0};
    enum { BAD = 14 };
    carag_predicate bad[BAD];
    for (int i = 0; i < BAD; i++)
        bad[i] = one_mask(0, 0);
    bad[0].pairs[0].mask &= ~TOMBSTONE;    /* would admit deleted rows */
    bad[1].pairs[0].value |= QUARANTINE;   /* would ask for quarantined ones */
    bad[2].pairs[0].value = 0;             /* would ask for unlabelled ones */
    bad[3].pair_count = CARAG_MAX_PAIRS + 1; /* reads past the pairs */
    ask_at(&bad[4], CARAG_NEVER_PUBLIC);   /* would admit what is never public */
    bad[5].pairs[0].value |= 1;            /* asks for a bit it does not look at */
    bad[6].entity_rule = (carag_entity_rule)3;
    bad[7].entities = descending;          /* would not be found by halving */
    bad[8].entities = twice;
    bad[9].pairs[bad[9].pair_count++] = (carag_pair){1, 1}; /* the second pair counts, too */
    bad[10].as_of = 10;                    /* would admit what has expired by then */
    ask_aged(&bad[11], 0, CARAG_NEVER_PUBLIC); /* no instant */
    bad[12].audience_count = 1;            /* would read bits that are not there */
    bad[13].audience_rule = (carag_audience_rule)2;
    for (int i = 7; i < 9; i++) {
        bad[i].entity_rule = CARAG_NOT_ENTITIES;
        bad[i].entity_count = 2;
    }
    for (int i = 0; i < BAD; i++) {
        answer got;
        uint64_t number = 99;
        for (size_t p = 0; p < PLANS; p++) {
            CHECK(search_one(index, query, &bad[i], 1, 10, plans[p], &got) == CARAG_BAD_PREDICATE);
            free_answer(&got);
        }
        CHECK(carag_index_count(index, &bad[i], &number, NULL) == CARAG_BAD_PREDICATE);
        CHECK(carag_index_relabel_where(index, &bad[i], 1, 0, &number, NULL) == CARAG_BAD_PREDICATE);
        CHECK(number == 99);
    }
    carag_index_free(index);
}

static void a_bad_search_is_refused(void)
{
    carag_index *index = new_index(2, 4, 1);
    const carag_predicate open = one_mask(0, 0);
    const float queries[] = {1, 0, 0, 0, 1, NAN};
    int64_t numbers[8];
    float similarity = 5.0F;
    uint8_t byte;
    carag_results out = {.keys = numbers, .similarities = &similarity, .counts = numbers, .estimates = numbers,
                         .distance_computations = numbers, .hops = numbers, .ef = numbers, .plans = &byte,
                         .whys = &byte};
    const carag_search_params bad[] = {{.k = 0, .ef_search = 1, .threads = 1},
                                       {.k = 1, .ef_search = CARAG_MAX_EF + 1, .threads = 1},
                                       {.k = 1, .ef_search = 1, .threads = 0},
                                       {.k = 1, .ef_search = 1, .threads = CARAG_MAX_THREADS + 1},
                                       {.k = 1, .ef_search = 1, .threads = 1, .plan = (carag_plan)CARAG_PLANS}};
    const carag_search_params good = {.k = 1, .ef_search = 1, .threads = 1};
    carag_fault fault = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(carag_index_search(index, queries, 1, &open, &bad[i], &out, NULL) == CARAG_BAD_ARGUMENT);
    CHECK(carag_index_search(index, queries, 2, &open, &good, &out, &fault) == CARAG_ZERO_VECTOR);
    CHECK(fault.row == 1);
    CHECK(carag_index_search(index, queries + 4, 1, &open, &good, &out, &fault) == CARAG_NOT_FINITE);
    CHECK(similarity > 4.0F);
    CHECK_OK(carag_index_search(index, queries, 0, &open, &good, &out, NULL)); /* no queries, no answers */
    CHECK(similarity > 4.0F);
    carag_index_free(index);
}

static void parameters_out_of_range_are_refused(void)
{
    const carag_params good = {.dim = 8, .M = 32, .ef_construction = 200};
    carag_params bad[] = {good, good, good, good, good, good, good, good};
    bad[0].dim = 0;
    bad[1].dim = CARAG_MAX_DIM + 1;
    bad[2].M = CARAG_MIN_M - 1;
    bad[3].M = CARAG_MAX_M + 1;
    bad[4].ef_construction = 0;
    bad[5].ef_construction = CARAG_MAX_EF + 1;
    bad[6].dtype = (carag_dtype)3;
    bad[7].dtype = (carag_dtype)-1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        carag_index *index = NULL;
        CHECK(carag_index_new(&bad[i], &index, NULL) == CARAG_BAD_ARGUMENT && index == NULL);
    }
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    a_bad_row_changes_nothing();
    a_bad_row_late_in_a_bulk_changes_nothing();
    a_bad_change_changes_nothing();
    a_predicate_must_be_closed();
    a_bad_search_is_refused();
    parameters_out_of_range_are_refused();
    return 0;
}
