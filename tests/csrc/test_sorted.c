/* test_sorted.c - the copy of the one-bit codes in the order of words and classes holds what the cells hold,
 * whatever made it; a scan that reads it answers as one by cells, and no relabel makes it say more or less than words do.
 *
 * The core is compiled with few rows to a cell here (CARAG_CELL_ROWS), and to a word (CARAG_WORD_ROWS), or indexes would
 * have to be large.
 */
#define CARAG_ALLOW_LIBC
#include "row/row.h"
#include "search/search.h"

#include "oracle.h"

enum { N = 3000, DIM = 24, K = 10, QUERIES = 20, WORD_BITS = 3 };

#define SOME (1U << 20) /* a bit that no word has at first */

static const carag_view *view_of(carag_index *index)
{
    return atomic_load(&index->view);
}

/* With audiences 1 to 60 if it is `shared`, or every row for everybody. */
static carag_index *built_for(const float *vectors, size_t count, int shared)
{
    carag_index *index = new_index(DIM, 4, 3);
    uint32_t *words = random_words(5, count, WORD_BITS);
    uint32_t *audiences = random_words(6, count, 30);
    for (size_t i = 0; i < count; i++)
        audiences[i] = 1 + audiences[i] % 60;
    carag_rows rows = rows_of(vectors, words, count);
    rows.threads = 2;
    rows.audiences = shared ? audiences : NULL;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    free(audiences);
    free(words);
    return index;
}

static carag_index *built(const float *vectors, size_t count)
{
    return built_for(vectors, count, 0);
}

/* ---------------------------------------------------------------- what it holds */

static int same_code(const carag_bits *a, uint32_t at, const carag_bits *b, uint32_t other)
{
    const size_t size = 8 * a->words;
    const uint8_t *x = a->packs + at / CARAG_PACK * carag_pack_bytes(size);
    const uint8_t *y = b->packs + other / CARAG_PACK * carag_pack_bytes(size);
    int same = 1;
    for (size_t g = 0; g < size; g++)
        same &= x[g * CARAG_PACK + at % CARAG_PACK] == y[g * CARAG_PACK + other % CARAG_PACK];
    for (size_t part = 0; part < 3; part++)
        same &= !memcmp(x + size * CARAG_PACK + 2 * (part * CARAG_PACK + at % CARAG_PACK),
                        y + size * CARAG_PACK + 2 * (part * CARAG_PACK + other % CARAG_PACK), 2);
    return same;
}

/* Each live row that it covers once, at its word and class, with the code it has in its cell; words in whole packs, the
 * cells of a class together. True only while no row was relabelled since it was made. */
static int is_sound(const carag_view *view)
{
    const carag_sorted *sorted = view->sorted;
    const carag_cells *cells = view->cells;
    uint32_t *position_of = room_for(cells->rows, sizeof *position_of);
    uint32_t *cell_of = room_for(cells->rows, sizeof *cell_of);
    uint32_t *seen = room_for(cells->rows, sizeof *seen);
    int sound = sorted->covered <= cells->rows;
    for (uint32_t cell = 0, at = 0; cell < cells->count; cell++)
        for (; at < cells->cells[cell].end; at++) {
            position_of[cells->members[at]] = at;
            cell_of[cells->members[at]] = cell;
        }
    for (uint32_t w = 0; w < sorted->count; w++) {
        sound &= sorted->firsts[w] % CARAG_PACK == 0;
        for (uint32_t i = 0; i < sorted->sizes[w]; i++) {
            const uint32_t place = sorted->firsts[w] + i;
            const uint32_t row = sorted->rows[place];
            sound &= row < sorted->covered && seen[row]++ == 0;
            sound &= atomic_load(&view->words[row]) == sorted->words[w] && sorted->cells[place] == cell_of[row];
            sound &= same_code(&sorted->bits, place, &view->bits, position_of[row]);
        }
    }
    uint32_t listed = 0;
    for (uint32_t class = 0; class < sorted->classes; class++)
        for (uint32_t place = sorted->starts[class]; place < sorted->ends[class]; place++, listed++) {
            sound &= view->catalog->classes[sorted->rows[place]] == class;
            sound &= place == sorted->starts[class] || sorted->cells[place - 1] <= sorted->cells[place];
        }
    for (uint32_t w = 0; w < sorted->count; w++)
        listed -= sorted->sizes[w];
    sound &= listed == 0;
    for (uint32_t row = 0; row < sorted->covered; row++)
        sound &= seen[row] == !carag_word_is_deleted(atomic_load(&view->words[row]));
    free(position_of);
    free(cell_of);
    free(seen);
    return sound;
}

/* One by one until the catalog is made again: the last of them is in the new one. */
static void relabel_until_made_again(carag_index *index)
{
    const carag_catalog *before = view_of(index)->catalog;
    for (int64_t key = N / 3; view_of(index)->catalog == before; key++) {
        const carag_columns columns = {.words = &(uint32_t){0}};
        CHECK_OK(carag_index_get(index, &key, 1, &columns, NULL));
        const uint32_t word = columns.words[0] ^ SOME;
        CHECK_OK(carag_index_relabel(index, &key, &word, 1, 0, NULL));
    }
}

static void it_holds_what_the_cells_hold(const float *vectors, const char *path)
{
    carag_index *index = built(vectors, N);
    CHECK(view_of(index)->sorted && is_sound(view_of(index)));
    CHECK(view_of(index)->sorted->count == 1 << WORD_BITS && view_of(index)->sorted->covered == N);
    const int64_t gone[] = {3, 700, N - 1};
    CHECK_OK(carag_index_delete(index, gone, 3, NULL));
    CHECK(!is_sound(view_of(index))); /* the check can fail: the rows are where they were */
    relabel_until_made_again(index);
    CHECK_OK(carag_index_consolidate(index, 2, NULL));
    CHECK(view_of(index)->sorted && is_sound(view_of(index)) && view_of(index)->sorted->count > 1 << WORD_BITS);
    CHECK_OK(carag_index_reserve(index, 2 * N, NULL));
    CHECK(view_of(index)->sorted && is_sound(view_of(index)));
    const carag_cells *cells = view_of(index)->cells;
    uint32_t *words = random_words(8, N, WORD_BITS);
    for (size_t at = 0; at < N / 2; at += 50) {
        const carag_rows rows = rows_of(vectors + at * DIM, words + at, 50);
        CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
        CHECK(view_of(index)->sorted && is_sound(view_of(index)));
    }
    CHECK(view_of(index)->cells != cells);
    carag_index *loaded;
    CHECK_OK(carag_index_save(index, path, NULL));
    CHECK_OK(carag_index_load(path, 0, &loaded, NULL));
    CHECK(view_of(loaded)->sorted && is_sound(view_of(loaded)));
    carag_index_free(loaded);
    CHECK_OK(carag_index_load(path, 1, &loaded, NULL));
    CHECK(!view_of(loaded)->sorted); /* opening reads no codes; */
    relabel_until_made_again(loaded);
    CHECK(!view_of(loaded)->sorted); /* nor does this; */
    CHECK_OK(carag_index_preload(loaded, NULL));
    CHECK(view_of(loaded)->sorted && is_sound(view_of(loaded))); /* this does */
    carag_index_free(loaded);
    free(words);
    carag_index_free(index);
}

static void it_is_not_made_where_words_have_few_rows(const float *vectors)
{
    carag_index *index = new_index(DIM, 4, 3);
    uint32_t *words = random_words(5, N, 9); /* five hundred, of six rows each */
    const carag_rows rows = rows_of(vectors, words, N);
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    CHECK(view_of(index)->cells && !view_of(index)->sorted);
    free(words);
    carag_index_free(index);
    index = built(vectors, 200);
    CHECK(!view_of(index)->cells && !view_of(index)->sorted);
    carag_index_free(index);
}

/* ---------------------------------------------------------------- what a scan makes of it */

/* Every plan under a policy, of which the scan reads all rows of the words that pass, and finds nearly all. */
static void scans_read_words(carag_index *index, const float *vectors, const carag_predicate *predicate)
{
    world all = world_of(index);
    size_t hits = 0;
    for (size_t q = 0; q < QUERIES; q++) {
        float unit[MOST_DIM];
        scored *expected;
        answer got;
        unit_of(vectors + q * 61 * DIM, DIM, unit);
        const size_t admissible = oracle(&all, unit, predicate, &expected);
        CHECK_OK(search_one(index, vectors + q * 61 * DIM, predicate, K, 0, CARAG_PLAN_SCAN, &got));
        hits += obeys(&got, K, expected, admissible);
        CHECK(got.plan == CARAG_PLAN_SCAN && got.estimates > 0);
        free_answer(&got);
        free(expected);
        search_obeys(index, &all, vectors + q * 61 * DIM, predicate, K, 0);
    }
    CHECK(hits * 100 >= 98 * (size_t)QUERIES * K);
    free_world(&all);
}

/* A scan under way of which the nearest cells are done; by words or not. */
static int goes_by_words(carag_index *index, const float *query, const carag_predicate *predicate)
{
    enum { ROOM = 1024 };
    const carag_reader reader = carag_read_begin(index);
    const carag_view *view = reader.view;
    uint32_t classes[ROOM];
    carag_selection selection = {.classes = classes, .room = ROOM};
    carag_test_init(&selection.test, predicate);
    carag_select(&reader, &selection);
    const carag_room room = {.found = carag_sketch_room(K), .classes = ROOM, .cells = view->cells->count};
    carag_scratch *scratch = carag_scratch_take(index, view, &room);
    CHECK(scratch);
    CHECK_OK(carag_normalise(query, DIM, scratch->query.unit, 0, NULL));
    carag_query_renew(&scratch->query);
    carag_query_encode(index, &view->codes, &scratch->query);
    carag_effort effort = {0};
    carag_scan scan = carag_scan_begin(&reader, &selection, scratch, K, &effort);
    carag_scan_cells(&scan, 1);
    const int by_words = carag_plan_by_words(&scan);
    carag_scan_leave(&scan);
    carag_scratch_give(index, scratch);
    carag_read_end(&reader);
    return by_words;
}

static void a_scan_goes_by_words_where_they_have_fewer_rows(const float *vectors)
{
    carag_index *index = built(vectors, N);
    const carag_predicate few = one_mask(7, 0);
    const carag_predicate most = one_mask(0, 0);
    CHECK(goes_by_words(index, vectors, &few));
    CHECK(!goes_by_words(index, vectors, &most));
    carag_view *view = atomic_load(&index->view);
    carag_sorted *sorted = view->sorted;
    view->sorted = NULL;
    CHECK(!goes_by_words(index, vectors, &few));
    view->sorted = sorted;
    scans_read_words(index, vectors, &few);
    scans_read_words(index, vectors, &most);
    carag_index_free(index);
}

/* Where audiences close most of what words open, the open classes are read, also after some of their rows were moved. */
static void a_scan_reads_the_classes_that_are_open(const float *vectors)
{
    const uint64_t listed[] = {(1ULL << 7) | (1ULL << 21) | (1ULL << 33)};
    carag_index *index = built_for(vectors, N, 1);
    carag_predicate few = one_mask(0, 0);
    share_with(&few, listed, 0);
    CHECK(is_sound(view_of(index)) && view_of(index)->sorted->classes > 300);
    CHECK(goes_by_words(index, vectors, &few));
    scans_read_words(index, vectors, &few);
    for (int64_t key = 0; key < N; key += 40) {
        const carag_columns columns = {.words = &(uint32_t){0}};
        CHECK_OK(carag_index_get(index, &key, 1, &columns, NULL));
        const uint32_t word = columns.words[0] ^ SOME;
        CHECK_OK(carag_index_relabel(index, &key, &word, 1, 0, NULL));
    }
    CHECK(atomic_load(&view_of(index)->catalog->moved_count) > 0);
    scans_read_words(index, vectors, &few);
    carag_index_free(index);
}

/* Rows that left the word are not answered, those that came are; those added, too, before and after they join a cell. */
static void a_relabel_is_seen_at_once(const float *vectors)
{
    carag_index *index = built(vectors, N - 300);
    const carag_predicate few = one_mask(7, 0);
    uint32_t *words = random_words(5, N, WORD_BITS); /* as built() drew them */
    size_t left = 0;
    for (int64_t key = 0; key < N - 300; key += 5) {
        const uint32_t word = key % 2 ? WORD(7) : WORD(6);
        left += words[key] == WORD(7) && word == WORD(6);
        CHECK_OK(carag_index_relabel(index, &key, &word, 1, 0, NULL));
    }
    CHECK(left > 0 && atomic_load(&view_of(index)->catalog->moved_count) > 0 && !is_sound(view_of(index)));
    CHECK(goes_by_words(index, vectors, &few));
    scans_read_words(index, vectors, &few);
    for (size_t i = N - 300; i < N; i++) {
        const uint32_t word = WORD(7);
        const carag_rows one = rows_of(vectors + i * DIM, &word, 1);
        CHECK_OK(carag_index_add(index, &one, NULL, NULL));
        answer got;
        CHECK_OK(search_one(index, vectors + i * DIM, &few, K, 0, CARAG_PLAN_SCAN, &got));
        CHECK(got.keys[0] == (int64_t)i && got.plan == CARAG_PLAN_SCAN);
        free_answer(&got);
    }
    const carag_view *view = view_of(index);
    CHECK(view->sorted && view->sorted->covered < view->cells->rows); /* some have joined, and are not in it */
    CHECK(goes_by_words(index, vectors, &few));
    scans_read_words(index, vectors, &few);
    free(words);
    carag_index_free(index);
}

int main(int argc, char **argv)
{
    char path[512];
    float *vectors = random_vectors(9, N, DIM);
    it_holds_what_the_cells_hold(vectors, temporary(argc, argv, path, "test_sorted.carag"));
    it_is_not_made_where_words_have_few_rows(vectors);
    a_scan_goes_by_words_where_they_have_fewer_rows(vectors);
    a_scan_reads_the_classes_that_are_open(vectors);
    a_relabel_is_seen_at_once(vectors);
    free(vectors);
    return 0;
}
