/* test_catalog.c - the dictionary of classes from inside: the count before a search is the number of rows
 * that pass one by one, and a walk yields each of those rows once and no other, whatever was relabelled,
 * added and deleted since the catalog was made.
 */
#define CARAG_ALLOW_LIBC
#include "row/row.h"
#include "write/write.h"

#include "oracle.h"

enum { DIM = 8, ENTITIES = 2000, LISTED = 1000, AUDIENCES = 70 };

static const uint64_t some_audiences[3] = {UINT64_C(0xA5C3F00F0FF05A3C), UINT64_MAX, 0};

/* ---------------------------------------------------------------- predicates */

static void draw_pairs(uint64_t *state, carag_predicate *predicate)
{
    predicate->pair_count = below(state, CARAG_MAX_PAIRS + 1);
    for (uint32_t i = 0; i < predicate->pair_count; i++) {
        const uint32_t mask = below(state, 64) & below(state, 64);
        predicate->pairs[i] = (carag_pair){CONTROL | mask, WORD(below(state, 64) & mask)};
    }
}

/* Lists of none, few and a thousand; dates around the edges of the windows below. */
static carag_predicate draw_predicate(uint64_t *state, uint32_t listed[LISTED])
{
    carag_predicate predicate = {.pair_count = 0};
    if (below(state, 4))
        ask_aged(&predicate, below(state, 45), below(state, 2) * below(state, 25));
    else
        ask_at(&predicate, CARAG_NEVER_PUBLIC - 1);
    draw_pairs(state, &predicate);
    predicate.entity_rule = (carag_entity_rule)below(state, 3);
    const uint32_t size = below(state, 4);
    const size_t count = size == 0 ? 0 : size == 1 ? 1 + below(state, 3) : size == 2 ? below(state, 100) : LISTED;
    for (size_t i = 0; i < count; i++)
        listed[i] = below(state, ENTITIES);
    predicate.entities = listed;
    predicate.entity_count = ascending(listed, count);
    share_with(&predicate, some_audiences, below(state, 8) == 0);
    predicate.audience_count = below(state, 2 * AUDIENCES);
    return predicate;
}

/* ---------------------------------------------------------------- rows */

/* `entities` of them: few make few and large classes, many one of nearly each row's own. */
static void add_rows(carag_index *index, uint64_t *state, size_t count, uint32_t entities)
{
    float *vectors = random_vectors(draw(state), count, DIM);
    uint32_t *words = room_for(count, sizeof *words);
    uint32_t *public_at = room_for(count, sizeof *words);
    uint32_t *expires_at = room_for(count, sizeof *words);
    uint32_t *about = room_for(count, sizeof *words);
    uint32_t *audiences = room_for(count, sizeof *words);
    for (size_t i = 0; i < count; i++) {
        words[i] = below(state, 30) ? WORD(below(state, 64)) : below(state, 64);
        public_at[i] = below(state, 10) ? below(state, 4) * 10 : CARAG_NEVER_PUBLIC;
        expires_at[i] = below(state, 3) ? CARAG_NEVER_EXPIRES : 20 + below(state, 2) * 20;
        about[i] = below(state, entities);
        audiences[i] = below(state, 2) ? below(state, AUDIENCES) : CARAG_EVERYBODY;
    }
    const carag_rows rows = {vectors, words, public_at, expires_at, about, audiences, NULL, count, 0, 1};
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    free(vectors);
    free(words);
    free(public_at);
    free(expires_at);
    free(about);
    free(audiences);
}

/* Some keys of the index, as they come: the same one may be among them again. */
static int64_t *draw_keys(carag_index *index, uint64_t *state, size_t count)
{
    world all = world_of(index);
    int64_t *keys = room_for(count, sizeof *keys);
    for (size_t i = 0; i < count; i++)
        keys[i] = all.keys[below(state, (uint32_t)all.count)];
    free_world(&all);
    return keys;
}

static void relabel(carag_index *index, uint64_t *state, size_t count)
{
    int64_t *keys = draw_keys(index, state, count);
    uint32_t *words = room_for(count, sizeof *words);
    for (size_t i = 0; i < count; i++)
        words[i] = below(state, 30) ? WORD(below(state, 64)) : WORD(below(state, 64)) | QUARANTINE;
    CHECK_OK(carag_index_relabel(index, keys, words, count, 1, NULL));
    free(keys);
    free(words);
}

static void delete(carag_index *index, uint64_t *state, size_t count)
{
    int64_t *keys = draw_keys(index, state, count);
    CHECK_OK(carag_index_delete(index, keys, count, NULL));
    free(keys);
}

/* ---------------------------------------------------------------- the claims */

/* The plain pass: each row by its own word and terms, deleted ones included. */
static uint64_t plain_pass(const carag_reader *reader, const carag_predicate *predicate, uint8_t *out_admitted)
{
    uint64_t count = 0;
    for (uint32_t row = 0; row < reader->rows; row++) {
        const carag_terms terms = reader->view->terms[row];
        out_admitted[row] = (uint8_t)admits(predicate, atomic_load(&reader->view->words[row]), terms.public_at,
                                            terms.expires_at, terms.entity, terms.audience);
        count += out_admitted[row];
    }
    return count;
}

/* Each admissible row once, no other, with the kernel in use. */
static void walks(const carag_reader *reader, const carag_selection *selection, const uint8_t *admitted)
{
    uint8_t *seen = room_for(reader->rows, 1);
    carag_walk walk = carag_walk_begin(reader, selection);
    uint32_t rows[CARAG_BLOCK];
    uint64_t yielded = 0;
    for (size_t count; (count = carag_walk_next(&walk, carag_kernel_get(), rows)) > 0; yielded += count)
        for (size_t i = 0; i < count; i++) {
            CHECK(rows[i] < reader->rows && admitted[rows[i]] && !seen[rows[i]]);
            seen[rows[i]] = 1;
        }
    CHECK(yielded == selection->admissible);
    free(seen);
}

static void counts_and_walks(carag_index *index, const carag_predicate *predicate)
{
    static carag_selection selection;
    const carag_reader reader = carag_read_begin(index);
    uint8_t *admitted = room_for(reader.rows, 1);
    const uint64_t admissible = plain_pass(&reader, predicate, admitted);
    CHECK(count_of(index, predicate) == admissible);

    carag_test_init(&selection.test, predicate);
    selection.room = reader.view->catalog->homes; /* the least a call may have: others are made while it begins */
    selection.classes = room_for(selection.room, sizeof *selection.classes);
    carag_select(&reader, &selection);
    CHECK(selection.is_exact && selection.admissible == admissible);
    for (size_t i = 0; i < carag_kernel_count(); i++)
        if (carag_kernel_is_available(i)) {
            CHECK_OK(carag_set_kernel(carag_kernel_name(i), NULL));
            walks(&reader, &selection, admitted);
        }
    free(selection.classes);
    free(admitted);
    carag_read_end(&reader);
}

static void any_predicate_counts_and_walks(carag_index *index, uint64_t *state, int predicates)
{
    static uint32_t listed[LISTED];
    for (int i = 0; i < predicates; i++) {
        const carag_predicate predicate = draw_predicate(state, listed);
        counts_and_walks(index, &predicate);
    }
}

/* The catalog's own books: every live row stands under its class, and the live counts add up. */
static void books_balance(carag_index *index)
{
    const carag_reader reader = carag_read_begin(index);
    const carag_catalog *catalog = reader.view->catalog;
    const uint32_t classes = atomic_load(&catalog->count);
    uint32_t *live = room_for(classes, sizeof *live);
    for (uint32_t row = 0; row < reader.rows; row++) {
        const uint32_t word = atomic_load(&reader.view->words[row]);
        const uint32_t class = catalog->classes[row];
        CHECK((class == CARAG_NONE) == carag_word_is_deleted(word));
        if (class == CARAG_NONE)
            continue;
        CHECK(class < classes && atomic_load(&catalog->words[class]) == word);
        CHECK(memcmp(&catalog->terms[class], &reader.view->terms[row], sizeof(carag_terms)) == 0);
        CHECK(carag_catalog_find(catalog, word, reader.view->terms[row]) == class);
        live[class]++;
    }
    for (uint32_t class = 0; class < classes; class ++)
        CHECK(live[class] == atomic_load(&catalog->live[class]));
    CHECK(atomic_load(&catalog->moved_count) <= catalog->moved_capacity);
    free(live);
    carag_read_end(&reader);
}

static void after_any_changes(uint32_t entities)
{
    uint64_t state = entities;
    carag_index *index = new_index(DIM, 2, 1);
    any_predicate_counts_and_walks(index, &state, 10);
    add_rows(index, &state, 1200, entities);
    for (int step = 0; step < 40; step++) {
        const uint32_t what = below(&state, 8);
        if (what == 0)
            add_rows(index, &state, 1 + below(&state, 400), entities);
        else if (what < 4)
            relabel(index, &state, 1 + below(&state, 30));
        else if (what == 4)
            relabel(index, &state, 1 + below(&state, 2500));
        else if (what < 7)
            delete (index, &state, 1 + below(&state, 40));
        else if (step % 4 == 0)
            CHECK_OK(carag_index_consolidate(index, 1, NULL));
        books_balance(index);
        any_predicate_counts_and_walks(index, &state, 6);
    }
    carag_index_free(index);
}

/* Moved rows and the tail fill up row by row until a new catalog is made; nothing is lost on the way. */
static void across_a_new_catalog(void)
{
    uint64_t state = 9;
    carag_index *index = new_index(DIM, 2, 1);
    add_rows(index, &state, 1100, 5);
    CHECK(atomic_load(&index->view)->catalog->rows == 1100);
    for (int i = 0; i < 1100; i++) {
        add_rows(index, &state, 1, 5);
        if (i % 50 == 0)
            any_predicate_counts_and_walks(index, &state, 5);
    }
    CHECK(atomic_load(&index->view)->catalog->rows > 1100);
    for (int i = 0; i < 3000; i++) {
        relabel(index, &state, 1);
        if (i % 100 == 0)
            any_predicate_counts_and_walks(index, &state, 5);
    }
    books_balance(index);
    carag_index_free(index);
}

/* While rows are on their way from class to class the class counts are worth nothing; nothing is missed all
 * the same. */
static void beside_a_relabel_that_never_ends(uint32_t counted)
{
    static uint32_t listed[LISTED];
    uint64_t state = 13;
    carag_index *index = new_index(DIM, 2, 1);
    add_rows(index, &state, 1000, 3);
    relabel(index, &state, 50);
    carag_catalog *catalog = atomic_load(&index->view)->catalog;
    const uint32_t classes = atomic_load(&catalog->count);
    uint32_t *live = room_for(classes, sizeof *live);
    carag_relabel_begin(index);
    for (uint32_t class = 0; class < classes; class ++)
        live[class] = atomic_exchange(&catalog->live[class], counted);
    const carag_reader reader = carag_read_begin(index);
    uint8_t *admitted = room_for(reader.rows, 1);
    for (int i = 0; i < 100; i++) {
        const carag_predicate predicate = draw_predicate(&state, listed);
        const uint64_t admissible = plain_pass(&reader, &predicate, admitted);
        CHECK(count_of(index, &predicate) == admissible);
        for (size_t p = 0; p < PLANS; p++) {
            answer got;
            CHECK_OK(search_one(index, (const float[DIM]){1.0F}, &predicate, 1000, 10, plans[p], &got));
            CHECK((uint64_t)got.count == admissible);
            free_answer(&got);
        }
    }
    for (uint32_t class = 0; class < classes; class ++)
        atomic_store(&catalog->live[class], live[class]);
    carag_relabel_end(index);
    books_balance(index);
    carag_read_end(&reader);
    carag_index_free(index);
    free(live);
    free(admitted);
}

/* A class of every row's own, more than a dictionary starts with; and classes that come by relabelling
 * alone. */
static void a_class_of_each_rows_own(void)
{
    enum { N = 1500 };
    uint64_t state = 11;
    carag_index *index = new_index(DIM, 2, 1);
    float *vectors = random_vectors(1, N, DIM);
    uint32_t *words = room_for(N, sizeof *words);
    int64_t *keys = room_for(N, sizeof *keys);
    for (uint32_t i = 0; i < N; i++)
        words[i] = WORD(64 * i);
    const carag_rows rows = rows_of(vectors, words, N);
    CHECK_OK(carag_index_add(index, &rows, keys, NULL));
    books_balance(index);
    for (int round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < N; i++)
            words[i] = WORD(below(&state, 1 << 27));
        const size_t count = 1 + below(&state, round % 2 ? 50 : N);
        CHECK_OK(carag_index_relabel(index, keys + below(&state, (uint32_t)(N - count + 1)), words, count, 0, NULL));
        books_balance(index);
        any_predicate_counts_and_walks(index, &state, 5);
    }
    carag_index_free(index);
    free(vectors);
    free(words);
    free(keys);
}

/* Rows that differ in one of the five things that make a class, enough of them that their slots in the dictionary
 * collide: none takes another's class. */
static void one_difference_makes_a_class(void)
{
    enum { N = 4000 };
    _Atomic(uint32_t) *words = room_for(N, sizeof *words);
    carag_terms *terms = room_for(N, sizeof *terms);
    for (int differs = 0; differs < 5; differs++) {
        for (uint32_t row = 0; row < N; row++) {
            atomic_init(&words[row], WORD(differs == 0 ? row : 0));
            terms[row] = (carag_terms){differs == 1 ? row : 0, differs == 2 ? row : 7, differs == 3 ? row : 0,
                                       differs == 4 ? row : 0};
        }
        carag_catalog *catalog = carag_catalog_new(words, terms, N, N, 0, 0);
        CHECK(catalog && atomic_load(&catalog->count) == N);
        for (uint32_t row = 0; row < N; row++)
            CHECK(carag_catalog_find(catalog, atomic_load(&words[row]), terms[row]) == row);
        carag_catalog_free(catalog);
    }
    free((void *)words);
    free(terms);
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    after_any_changes(1);
    after_any_changes(20);
    after_any_changes(ENTITIES);
    across_a_new_catalog();
    beside_a_relabel_that_never_ends(0);
    beside_a_relabel_that_never_ends(3); /* rows of each class, which is fewer than the entities */
    a_class_of_each_rows_own();
    one_difference_makes_a_class();
    return 0;
}
