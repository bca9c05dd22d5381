/* test_changes.c - any order of adds, relabels, deletes and consolidations leaves exactly what was put in:
 * the index is compared, row by row and answer by answer, with arrays that the same changes were made to.
 */
#include "oracle.h"

enum { KEYS = 6000, CHURN_DIM = 12 };

/* What the index should hold, by key. */
typedef struct mirror {
    carag_index *index;
    uint64_t state;
    size_t live;
    uint8_t is_live[KEYS];
    uint32_t words[KEYS], public_at[KEYS], expires_at[KEYS], entities[KEYS], audiences[KEYS];
    float vectors[KEYS * CHURN_DIM];
} mirror;

static uint32_t draw_word(uint64_t *state)
{
    const uint32_t kind = below(state, 20);
    const uint32_t bits = below(state, 8);
    return kind == 0 ? bits : kind == 1 ? WORD(bits) | QUARANTINE : WORD(bits);
}

static int64_t live_key(mirror *is)
{
    int64_t key = below(&is->state, KEYS);
    while (!is->is_live[key])
        key = (key + 1) % KEYS;
    return key;
}

static void add_some(mirror *is, size_t count, int chooses_keys)
{
    carag_info info;
    carag_index_info(is->index, &info);
    float *vectors = random_vectors(draw(&is->state), count, CHURN_DIM);
    uint32_t *words = room_for(count, sizeof *words);
    uint32_t *public_at = room_for(count, sizeof *words);
    uint32_t *expires_at = room_for(count, sizeof *words);
    uint32_t *audiences = room_for(count, sizeof *words);
    uint32_t *entities = room_for(count, sizeof *words);
    int64_t *keys = room_for(count, sizeof *keys);
    int64_t *got = room_for(count, sizeof *got);
    int64_t next = chooses_keys ? below(&is->state, KEYS) : info.rows;
    CHECK(is->live + count <= KEYS && (chooses_keys || info.rows + count < KEYS));
    for (size_t i = 0; i < count; i++) {
        while (is->is_live[next])
            next = (next + 1) % KEYS;
        keys[i] = next;
        words[i] = is->words[next] = draw_word(&is->state);
        public_at[i] = is->public_at[next] = below(&is->state, 3) * 10;
        expires_at[i] = is->expires_at[next] = below(&is->state, 2) ? CARAG_NEVER_EXPIRES : 25;
        entities[i] = is->entities[next] = below(&is->state, 4);
        audiences[i] = is->audiences[next] = below(&is->state, 4);
        memcpy(is->vectors + next * CHURN_DIM, vectors + i * CHURN_DIM, CHURN_DIM * sizeof *vectors);
        is->is_live[next] = 1;
    }
    const carag_rows rows = {vectors, words, public_at, expires_at, entities, audiences, chooses_keys ? keys : NULL,
                             count,   1,     1 + below(&is->state, 3)};
    CHECK_OK(carag_index_add(is->index, &rows, got, NULL));
    CHECK(same_bytes(got, keys, count * sizeof *keys));
    is->live += count;
    free(vectors);
    free(words);
    free(public_at);
    free(expires_at);
    free(entities);
    free(audiences);
    free(keys);
    free(got);
}

static void relabel_some(mirror *is, size_t count)
{
    int64_t *keys = room_for(count, sizeof *keys);
    uint32_t *words = room_for(count, sizeof *words);
    for (size_t i = 0; i < count; i++) {
        keys[i] = live_key(is);
        words[i] = is->words[keys[i]] = draw_word(&is->state);
    }
    CHECK_OK(carag_index_relabel(is->index, keys, words, count, 1, NULL));
    free(keys);
    free(words);
}

static void delete_some(mirror *is, size_t count)
{
    int64_t *keys = room_for(count, sizeof *keys);
    for (size_t i = 0; i < count; i++) {
        keys[i] = live_key(is);
        is->is_live[keys[i]] = 0;
    }
    is->live -= count;
    CHECK_OK(carag_index_delete(is->index, keys, count, NULL));
    for (size_t i = 0; i < count; i++)
        CHECK(!carag_index_contains(is->index, keys[i]));
    free(keys);
}

static const uint64_t some_audiences[] = {2 + 8};

static carag_predicate draw_predicate(uint64_t *state, const uint32_t listed[2])
{
    const uint32_t bits = below(state, 8);
    const uint32_t required = bits & below(state, 8);
    carag_predicate predicate = one_mask(required, bits & ~required);
    if (below(state, 2))
        predicate.pairs[predicate.pair_count++] = (carag_pair){CONTROL | 7, WORD(below(state, 8))};
    ask_aged(&predicate, below(state, 30), below(state, 2) * below(state, 15));
    predicate.entity_rule = (carag_entity_rule)below(state, 3);
    predicate.entities = listed;
    predicate.entity_count = 2;
    share_with(&predicate, some_audiences, below(state, 8) == 0);
    return predicate;
}

static void relabel_some_where(mirror *is)
{
    static const uint32_t listed[] = {1, 2};
    const carag_predicate predicate = draw_predicate(&is->state, listed);
    const uint32_t set = below(&is->state, 8);
    const uint32_t clear = below(&is->state, 8) & ~set;
    uint64_t changed;
    uint64_t expected = 0;
    CHECK_OK(carag_index_relabel_where(is->index, &predicate, set, clear, &changed, NULL));
    for (size_t i = 0; i < KEYS; i++)
        if (is->is_live[i] &&
            admits(&predicate, is->words[i], is->public_at[i], is->expires_at[i], is->entities[i],
                   is->audiences[i])) {
            is->words[i] = (is->words[i] & ~clear) | set;
            expected++;
        }
    CHECK(changed == expected);
}

/* Every row, its terms and its vector, are what was put in. */
static void holds(const mirror *is, const world *all)
{
    CHECK(all->count == is->live);
    for (size_t i = 0; i < all->count; i++) {
        const int64_t key = all->keys[i];
        const float *given = is->vectors + key * CHURN_DIM;
        const float *kept = all->vectors + i * CHURN_DIM;
        double squares = 0.0;
        CHECK(is->is_live[key] && all->words[i] == is->words[key] && all->public_at[i] == is->public_at[key] &&
              all->expires_at[i] == is->expires_at[key] && all->entities[i] == is->entities[key] &&
              all->audiences[i] == is->audiences[key]);
        for (size_t j = 0; j < CHURN_DIM; j++)
            squares += (double)given[j] * (double)given[j];
        for (size_t j = 0; j < CHURN_DIM; j++)
            CHECK(fabs((double)given[j] / sqrt(squares) - (double)kept[j]) < 1e-6);
    }
}

static void agrees(mirror *is)
{
    static const uint32_t listed[] = {0, 3};
    const float *query = is->vectors + below(&is->state, KEYS) * CHURN_DIM;
    const carag_predicate predicate = draw_predicate(&is->state, listed);
    world all = world_of(is->index);
    holds(is, &all);
    CHECK(carag_index_check(is->index, NULL) == 0);
    if (query[0] > 0.0F || query[0] < 0.0F)
        search_obeys(is->index, &all, query, &predicate, 1 + below(&is->state, 40), 20);
    free_world(&all);
}

/* Adds by one, by few and in bulk; relabels by one, by hundreds and by class; deletes; consolidations. */
static void any_order_of_changes_leaves_what_was_put_in(void)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        mirror *is = room_for(1, sizeof *is);
        is->index = new_index(CHURN_DIM, 6, seed);
        is->state = seed;
        for (int step = 0; step < 150; step++) {
            carag_info info;
            carag_index_info(is->index, &info);
            const uint32_t what = below(&is->state, 16);
            const uint32_t bulk = 256 + below(&is->state, 600);
            if (is->live < 20 || what < 4)
                add_some(is, 1 + below(&is->state, 5), info.rows > KEYS / 2 || what % 2);
            else if (what == 4 && is->live + bulk < KEYS / 2)
                add_some(is, bulk, 1);
            else if (what < 8)
                relabel_some(is, 1 + below(&is->state, what == 7 ? 2000 : 5));
            else if (what < 10)
                relabel_some_where(is);
            else if (what < 13)
                delete_some(is, 1 + below(&is->state, what == 12 ? (uint32_t)is->live / 2 : 4));
            else if (what == 13 || info.rows > KEYS / 2)
                CHECK_OK(carag_index_consolidate(is->index, 1 + below(&is->state, 3), NULL));
            carag_index_info(is->index, &info);
            CHECK(info.live == is->live && info.rows >= info.live);
            agrees(is);
        }
        carag_index_free(is->index);
        free(is);
    }
}

/* One row at a time, through every growth, every new centre, and a tail too long for its catalog. */
static void rows_added_one_by_one_are_all_there(void)
{
    mirror *is = room_for(1, sizeof *is);
    is->index = new_index(CHURN_DIM, 6, 5);
    is->state = 5;
    for (size_t n = 1; n <= 2400; n++) {
        add_some(is, 1, 0);
        if (n % 100 == 0 || n == 1 || n == 64 || n == 65)
            agrees(is);
    }
    carag_index_free(is->index);
    free(is);
}

/* One relabel at a time, past what a catalog lists as moved; every row moves several times. */
static void rows_relabelled_one_by_one_are_all_there(void)
{
    mirror *is = room_for(1, sizeof *is);
    is->index = new_index(CHURN_DIM, 6, 6);
    is->state = 6;
    add_some(is, 1500, 0);
    for (size_t n = 1; n <= 4000; n++) {
        relabel_some(is, 1);
        if (n % 200 == 0)
            agrees(is);
    }
    carag_index_free(is->index);
    free(is);
}

/* ---------------------------------------------------------------- consolidating */

/* The same rows and the same exact answers, no gaps; nothing left is an index that can be filled again. */
static void consolidating_drops_only_what_is_deleted(void)
{
    for (int dtype = CARAG_FLOAT32; dtype <= CARAG_INT8; dtype++) {
        enum { N = 900, DIM = 30 };
        carag_index *index = new_index_of((carag_dtype)dtype, DIM, 8, 3);
        float *vectors = random_vectors(80, N, DIM);
        uint32_t *words = random_words(81, N, 3);
        int64_t keys[N];
        carag_rows rows = rows_of(vectors, words, N);
        const carag_predicate some = one_mask(1, 2);
        CHECK_OK(carag_index_add(index, &rows, keys, NULL));
        CHECK_OK(carag_index_delete(index, keys + 100, 500, NULL));
        CHECK_OK(carag_index_relabel(index, keys, words + 1, 90, 0, NULL));
        for (uint32_t threads = 1; threads <= 3; threads++) {
            world before = world_of(index);
            CHECK_OK(carag_index_consolidate(index, threads, NULL));
            world after = world_of(index);
            carag_info info;
            carag_index_info(index, &info);
            CHECK(same_worlds(&before, &after) && info.rows == 400 && info.live == 400);
            CHECK(carag_index_check(index, NULL) == 0);
            for (int q = 0; q < 5; q++)
                search_obeys(index, &after, vectors + q * DIM, &some, 10, 30);
            free_world(&before);
            free_world(&after);
        }
        CHECK_OK(carag_index_delete(index, keys, 100, NULL));
        CHECK_OK(carag_index_delete(index, keys + 600, 300, NULL));
        CHECK_OK(carag_index_consolidate(index, 2, NULL));
        CHECK_OK(carag_index_consolidate(index, 2, NULL));
        carag_info info;
        carag_index_info(index, &info);
        CHECK(info.rows == 0 && info.live == 0 && info.max_level == 0);
        CHECK_OK(carag_index_add(index, &rows, keys, NULL));
        CHECK(keys[0] == 0 && keys[N - 1] == N - 1);
        world all = world_of(index);
        search_obeys(index, &all, vectors, &some, 10, 30);
        carag_index_free(index);
        free_world(&all);
        free(vectors);
        free(words);
    }
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    any_order_of_changes_leaves_what_was_put_in();
    rows_added_one_by_one_are_all_there();
    rows_relabelled_one_by_one_are_all_there();
    consolidating_drops_only_what_is_deleted();
    return 0;
}
