/* test_words_oom.c - every single allocation of every call on an index of words fails once, alone and with all that
 * follow it: the call says so, the index is as before, nothing leaks; and the same call made again does what it would
 * have done at once.
 */
#include "words.h"

#include "failing.h"

static char path[512];
static account all; /* of what every index here is made from */
static carag_text *loaded;

/* ---------------------------------------------------------------- what an index is */

static uint64_t mixed(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211); /* FNV-1a */
    return hash;
}

/* Keys, and the answers to some questions. */
static uint64_t fingerprint(carag_text *text)
{
    int64_t keys[MOST_LABELS];
    uint64_t hash = UINT64_C(14695981039346656037);
    uint64_t state = 3;
    hash = mixed(hash, keys, carag_text_chunks(text, keys, MOST_LABELS) * sizeof *keys);
    hash = mixed(hash, keys, carag_text_label_keys(text, keys, MOST_LABELS) * sizeof *keys);
    for (int i = 0; i < 12; i++) {
        question asked;
        carag_text_found *found = NULL;
        draw_question(&asked, &state);
        CHECK_OK(carag_text_search(text, &asked.query, asked.predicates, asked.predicate_count, &found, NULL));
        hash = mixed(hash, found->keys, found->count * sizeof *found->keys);
        hash = mixed(hash, found->scores, found->count * sizeof *found->scores);
        hash = mixed(hash, &found->stats.admissible, 3 * sizeof(uint64_t));
        carag_text_found_free(found);
    }
    CHECK_OK(carag_text_verify(text, NULL));
    return hash;
}

/* ---------------------------------------------------------------- calls */

static carag_status add(carag_text *text)
{
    drawn_batch some;
    uint64_t state = 21;
    draw_batch(&some, &state, &all);
    return carag_text_add(text, &some.given, NULL);
}

/* Of classes that there are not yet, on chunks that have labels of other windows. */
static carag_status open_labels(carag_text *text, size_t count)
{
    int64_t keys[100], on[100];
    uint32_t words[100], begins[100], ends[100];
    size_t at = 0;
    for (size_t i = 0; at < count; i = (i + 1) % all.chunk_count) {
        if (all.chunks[i].key < 0)
            continue;
        keys[at] = 2000000 + (int64_t)at;
        on[at] = all.chunks[i].key;
        words[at] = WORD(at);
        begins[at] = 1000 + 10 * (uint32_t)at;
        ends[at] = begins[at] + 10;
        at++;
    }
    const int64_t *closes = NULL;
    size_t closed = 0;
    for (size_t i = 0; closed == 0 && i < all.label_count; i++)
        if (all.labels[i].key >= 0) {
            closes = &all.labels[i].key;
            closed = 1;
        }
    const carag_text_labels labels = {.keys = keys, .chunks = on, .words = words, .public_at = begins,
                                      .expires_at = ends, .count = count, .closes = closes, .close_count = closed};
    return carag_text_label(text, &labels, NULL);
}

static carag_status open_few(carag_text *text) { return open_labels(text, 2); }
static carag_status open_many(carag_text *text) { return open_labels(text, 100); }

static carag_status delete_few(carag_text *text)
{
    int64_t keys[2];
    size_t count = 0;
    for (size_t i = 0; count < 2; i++)
        if (all.chunks[i].key >= 0)
            keys[count++] = all.chunks[i].key;
    return carag_text_delete(text, keys, 2, NULL);
}

static carag_status compact(carag_text *text) { return carag_text_compact(text, NULL); }
static carag_status verify(carag_text *text) { return carag_text_verify(text, NULL); }

static carag_status search(carag_text *text, size_t k)
{
    uint64_t state = 4;
    question asked;
    carag_text_found *found = NULL;
    draw_question(&asked, &state);
    while (asked.query.terms < 3)
        draw_question(&asked, &state);
    asked.predicates[0] = one_mask(0, 0);
    asked.query.k = k;
    const carag_status status = carag_text_search(text, &asked.query, asked.predicates, 1, &found, NULL);
    CHECK((status == CARAG_OK) == (found != NULL));
    carag_text_found_free(found);
    return status;
}

static carag_status search_all(carag_text *text) { return search(text, 0); }
static carag_status search_best(carag_text *text) { return search(text, 3); }

static carag_status count(carag_text *text)
{
    uint64_t state = 4;
    uint64_t frequencies[24];
    question asked;
    carag_text_stats stats = {0};
    draw_question(&asked, &state);
    return carag_text_count(text, &asked.query, asked.predicates, 1, frequencies, &stats, NULL);
}

static carag_status documents(carag_text *text)
{
    const carag_predicate open = one_mask(0, 0);
    carag_text_found *found = NULL;
    const carag_status status = carag_text_documents(text, &open, 1, &found, NULL);
    CHECK((status == CARAG_OK) == (found != NULL));
    carag_text_found_free(found);
    return status;
}

static carag_status admissible(carag_text *text)
{
    const carag_predicate open = one_mask(0, 0);
    const int64_t of[] = {0, 1, 2, 3, 4};
    carag_text_found *found = NULL;
    const carag_status status = carag_text_admissible(text, &open, 1, of, 5, &found, NULL);
    CHECK((status == CARAG_OK) == (found != NULL));
    carag_text_found_free(found);
    return status;
}

static carag_status save(carag_text *text)
{
    unlink(path);
    const carag_status status = carag_text_save(text, path, NULL);
    CHECK((status == CARAG_OK) == (access(path, F_OK) == 0));
    return status;
}

static carag_status load(carag_text *text)
{
    (void)text;
    return carag_text_load(path, 0, &loaded, NULL);
}

static carag_status load_mapped(carag_text *text)
{
    (void)text;
    return carag_text_load(path, 1, &loaded, NULL);
}

/* ---------------------------------------------------------------- indexes */

static carag_text *make(void) { return some_text(&all, 11, 4); }

static carag_text *make_saved(void)
{
    carag_text *text = make();
    CHECK_OK(carag_text_save(text, path, NULL));
    return text;
}

static carag_text *make_mapped(void)
{
    carag_text *text = NULL;
    carag_text_free(make_saved());
    CHECK_OK(carag_text_load(path, 1, &text, NULL));
    return text;
}

/* ---------------------------------------------------------------- the walk */

typedef carag_text *(*make_fn)(void);
typedef carag_status (*act_fn)(carag_text *text);

static void settle_loaded(carag_text *text)
{
    if (loaded)
        CHECK(fingerprint(loaded) == fingerprint(text));
    carag_text_free(loaded);
    loaded = NULL;
}

/* The nth allocation fails, alone or with all that follow; true when there were as many. */
static bool nth_fails(make_fn made, act_fn act, long nth, bool and_all_after, uint64_t before, uint64_t after)
{
    carag_text *text = made();
    arm(nth, and_all_after);
    carag_status status = act(text);
    const bool failed = disarm();
    if (status != CARAG_OK) {
        CHECK(failed && status == CARAG_NO_MEMORY && loaded == NULL);
        CHECK(fingerprint(text) == before);
        if (!and_all_after)
            CHECK_OK(act(text));
    }
    CHECK((status != CARAG_OK && and_all_after) || fingerprint(text) == after);
    settle_loaded(text);
    carag_text_free(text);
    CHECK(atomic_load(&outstanding) == 0);
    return failed;
}

static long every_allocation_fails_once(make_fn made, act_fn act)
{
    carag_text *text = made();
    const uint64_t before = fingerprint(text);
    carag_text_free(text);
    text = made(); /* a fingerprint leaves memory for searches behind */
    CHECK_OK(act(text));
    const uint64_t after = fingerprint(text);
    settle_loaded(text);
    carag_text_free(text);
    long allocations = 0;
    for (int on = 0; on < 2; on++)
        for (allocations = 0; nth_fails(made, act, allocations, on != 0, before, after); allocations++)
            ;
    return allocations;
}

static void making_one_fails(void)
{
    carag_text *text = NULL;
    carag_status status = CARAG_NO_MEMORY;
    for (long nth = 0; status != CARAG_OK; nth++) {
        arm(nth, false);
        status = carag_text_new(&text, NULL);
        CHECK(disarm() == (status == CARAG_NO_MEMORY) && (text == NULL) == (status != CARAG_OK));
    }
    carag_text_free(text);
    carag_text_free(NULL);
    CHECK(atomic_load(&outstanding) == 0);
}

int main(int argc, char **argv)
{
    static const struct {
        make_fn make;
        act_fn act;
    } walks[] = {
        {make, add},           {make_mapped, add},       {make, open_few},        {make, open_many},
        {make, delete_few},    {make, compact},          {make, search_all},      {make, search_best},
        {make, count},         {make, save},             {make_saved, load},      {make_saved, load_mapped},
        {make, verify},        {make_mapped, verify},    {make_mapped, compact},  {make_mapped, save},
        {make_mapped, search_best}, {make_mapped, delete_few}, {make_mapped, open_many},
        {make, documents},     {make, admissible},
    };
    temporary(argc, argv, path, "test_words_oom.carag");
    carag_set_allocator(failing_allocate, counting_release);
    making_one_fails();
    long allocations = 0;
    for (size_t i = 0; i < sizeof walks / sizeof *walks; i++)
        allocations += every_allocation_fails_once(walks[i].make, walks[i].act);
    CHECK(allocations > 100);
    carag_set_allocator(NULL, NULL);
    unlink(path);
    return 0;
}
