/* test_guards.c - a row is tested twice, by the plan that finds it and as it is emitted; here each test is seen
 * without the other. What a plan leaves to be emitted is looked at before emission does; and emission is handed
 * kernels that let everything through, or that close a row while its vector is being read.
 *
 * Linked with --wrap=carag_kernel_get, so that the kernels are this file's.
 */
#define CARAG_ALLOW_LIBC
#include "search/search.h"
#include "write/write.h"

#include "oracle.h"

enum { N = 3000, DIM = 16, MARK = 1 << 20 };

static carag_view *view_of(carag_index *index)
{
    return atomic_load(&index->view);
}

static bool is_admissible_row(const carag_view *view, const carag_predicate *predicate, uint32_t row)
{
    const carag_terms terms = view->terms[row];
    return admits(predicate, atomic_load(&view->words[row]), terms.public_at, terms.expires_at, terms.entity,
                  terms.audience);
}

/* ---------------------------------------------------------------- kernels of this file's */

const carag_kernel *__real_carag_kernel_get(void);
const carag_kernel *__wrap_carag_kernel_get(void);

static carag_kernel ours;
static bool uses_ours;
static carag_index *watched;
static uint32_t closing = CARAG_NONE; /* the row to close at the next vector that is read */
static bool by_word;
static uint32_t added_from = CARAG_NONE; /* rows being added in the present view */
static uint64_t looks;

const carag_kernel *__wrap_carag_kernel_get(void)
{
    return uses_ours ? &ours : __real_carag_kernel_get();
}

static size_t admit_all(const _Atomic(uint32_t) *words, const uint32_t *rows, size_t count, const carag_pair *pairs,
                        size_t pair_count, uint32_t *out)
{
    (void)words;
    (void)pairs;
    (void)pair_count;
    memmove(out, rows, count * sizeof *out);
    return count;
}

static float dot_that_closes(const float *a, const float *b, size_t n)
{
    if (closing != CARAG_NONE) {
        carag_view *view = view_of(watched);
        if (by_word)
            atomic_store(&view->words[closing], WORD(0));
        else
            view->terms[closing].public_at = CARAG_NEVER_PUBLIC;
        closing = CARAG_NONE;
    }
    return __real_carag_kernel_get()->dot(a, b, n);
}

static void dot8_that_looks(const uint8_t *codes, size_t stride, const uint32_t *rows, size_t count,
                            const int8_t *query, size_t n, int32_t *out)
{
    const carag_view *view = view_of(watched);
    for (uint32_t row = added_from; row < added_from + 5; row++, looks++) {
        CHECK(carag_word_is_deleted(atomic_load(&view->words[row])));
        CHECK(!carag_index_contains(watched, view->keys[row]));
        CHECK(carag_map_find(watched, view->keys, added_from, view->keys[row]) == CARAG_NONE);
    }
    __real_carag_kernel_get()->dot8(codes, stride, rows, count, query, n, out);
}

static const carag_predicate *asked; /* the first predicate of two, and the count of its answer, -1 until that is written */
static const int64_t *written;

static void admissible_until_written(const uint32_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++, looks++)
        CHECK(*written >= 0 || is_admissible_row(view_of(watched), asked, rows[i]));
}

static void dot8_in_order(const uint8_t *codes, size_t stride, const uint32_t *rows, size_t count, const int8_t *query,
                          size_t n, int32_t *out)
{
    admissible_until_written(rows, count);
    __real_carag_kernel_get()->dot8(codes, stride, rows, count, query, n, out);
}

static float dot_in_order(const float *a, const float *b, size_t n)
{
    const float *vectors = view_of(watched)->vectors;
    for (int second = 0; second < 2; second++) { /* one of the two is a row's */
        const float *row = second ? b : a;
        if (row >= vectors && row < vectors + (size_t)view_of(watched)->capacity * watched->stride)
            admissible_until_written(&(uint32_t){(uint32_t)((size_t)(row - vectors) / watched->stride)}, 1);
    }
    return __real_carag_kernel_get()->dot(a, b, n);
}

/* When the first answer is written, the row to close becomes one that the first predicate admits. */
static void dot8_that_moves(const uint8_t *codes, size_t stride, const uint32_t *rows, size_t count,
                            const int8_t *query, size_t n, int32_t *out)
{
    if (*written >= 0 && closing != CARAG_NONE) {
        carag_relabel_begin(watched);
        atomic_store(&view_of(watched)->words[closing], WORD(1));
        carag_relabel_end(watched);
        closing = CARAG_NONE;
    }
    __real_carag_kernel_get()->dot8(codes, stride, rows, count, query, n, out);
}

static void take_ours(carag_index *index)
{
    const char *name;
    CHECK_OK(carag_kernel_active(&name, NULL));
    ours = *__real_carag_kernel_get();
    watched = index;
    uses_ours = true;
}

/* ---------------------------------------------------------------- rows */

static void add_piece(carag_index *index, const float *vectors, const uint32_t *words, const uint32_t *public_at,
                      size_t begin, size_t end)
{
    carag_rows rows = rows_of(vectors + begin * DIM, words + begin, end - begin);
    rows.public_at = public_at + begin;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
}

/* A graph, cells, and since they were made rows relabelled, deleted and added: half of all admissible by word, and four
 * in five of those by their terms. */
static carag_index *make_index(void)
{
    carag_index *index = new_index(DIM, 8, 1);
    uint64_t state = 4;
    float *vectors = random_vectors(2, N, DIM);
    uint32_t *words = random_words(3, N, 2);
    uint32_t *public_at = room_for(N, sizeof *public_at);
    for (size_t i = 0; i < N; i++)
        public_at[i] = below(&state, 5) ? 0 : 20;
    const size_t pieces[] = {0, N - 100, N - 50, N}; /* a build; one that grows, to have room; and a tail */
    for (int i = 0; i < 2; i++)
        add_piece(index, vectors, words, public_at, pieces[i], pieces[i + 1]);
    for (int64_t key = 0; key < 200; key++) {
        const uint32_t word = WORD(below(&state, 4)) | (key % 9 ? 0 : QUARANTINE);
        CHECK_OK(carag_index_relabel(index, &key, &word, 1, 1, NULL));
    }
    for (int64_t key = 200; key < 300; key++)
        CHECK_OK(carag_index_delete(index, &key, 1, NULL));
    add_piece(index, vectors, words, public_at, pieces[2], pieces[3]);
    CHECK(view_of(index)->cells && view_of(index)->catalog->rows < N);
    free(vectors);
    free(words);
    free(public_at);
    return index;
}

static carag_predicate marked(uint32_t required, uint32_t as_of)
{
    carag_predicate predicate = one_mask(required, 0);
    ask_at(&predicate, as_of);
    return predicate;
}

/* ---------------------------------------------------------------- before emission */

static void leaves_admissible_rows(const carag_reader *reader, const carag_selection *selection, size_t limit,
                                   carag_plan plan, const float *query)
{
    const carag_view *view = reader->view;
    const carag_room room = {.pool = view->capacity, .found = carag_sketch_room(limit), .classes = 64,
                             .cells = view->cells->count};
    const carag_limits limits = {.ef = 40, .slack = INFINITY, .budget = UINT64_MAX};
    carag_scratch *scratch = carag_scratch_take(reader->index, view, &room);
    carag_effort effort = {0};
    CHECK(scratch);
    carag_normalise(query, DIM, scratch->query.unit, 0, NULL);
    carag_query_renew(&scratch->query);
    carag_query_encode(reader->index, &view->codes, &scratch->query);
    if (plan == CARAG_PLAN_EXACT) {
        carag_scan_exact(reader, selection, scratch, limit, &effort);
    } else {
        carag_scan scan = carag_scan_begin(reader, selection, scratch, limit, &effort);
        carag_scan_cells(&scan, carag_probed(view->cells, limits.ef));
        if (plan == CARAG_PLAN_GRAPH)
            CHECK(carag_search_graph(&scan, limit, &limits));
        else
            carag_scan_finish(&scan, limit);
    }
    CHECK(scratch->found.count > 0);
    for (size_t i = 0; i < scratch->found.count; i++)
        CHECK(is_admissible_row(view, selection->test.predicate, scratch->found.items[i].node));
    CHECK(plan == CARAG_PLAN_GRAPH || effort.estimates <= reader->rows);
    CHECK(plan != CARAG_PLAN_EXACT || effort.distance_computations <= 2 * selection->admissible);
    carag_scratch_give(reader->index, scratch);
}

/* On every plan, before anything is tested again: by class, by pack and by link, words alone and with terms. */
static void what_a_plan_finds_is_admissible_already(carag_index *index)
{
    static carag_selection selection;
    float *queries = random_vectors(7, 12, DIM);
    uint32_t classes[64];
    const uint32_t required[] = {0, 1, 3, MARK};
    for (size_t r = 0; r < sizeof required / sizeof *required; r++)
        for (uint32_t as_of = 10; as_of <= 20; as_of += 10)
            for (size_t q = 0; q < 12; q++) {
                const carag_predicate predicate = marked(required[r], as_of);
                const carag_reader reader = carag_read_begin(index);
                carag_test_init(&selection.test, &predicate);
                selection.classes = classes;
                selection.room = 64;
                carag_select(&reader, &selection);
                CHECK(selection.is_exact && selection.test_terms == (as_of == 10));
                for (carag_plan plan = CARAG_PLAN_EXACT; plan <= CARAG_PLAN_SCAN; plan++)
                    leaves_admissible_rows(&reader, &selection, 1 + q % 3 * 30, plan, queries + q * DIM);
                carag_read_end(&reader);
            }
    free(queries);
}

/* A walk is given up as soon as it has begun; the scan that goes on from it keeps what it found, finds the rest, and
 * each row once. */
static void a_scan_goes_on_from_a_walk(carag_index *index)
{
    enum { Q = 12, LIMIT = 20 };
    static carag_selection selection;
    float *queries = random_vectors(13, Q, DIM);
    uint32_t classes[64];
    uint64_t alone = 0;
    uint64_t after = 0;
    for (size_t q = 0; q < Q; q++) {
        const carag_predicate predicate = marked(q % 2, 10);
        const carag_reader reader = carag_read_begin(index);
        const carag_view *view = reader.view;
        carag_test_init(&selection.test, &predicate);
        selection.classes = classes;
        selection.room = 64;
        carag_select(&reader, &selection);
        const carag_room room = {.pool = view->capacity, .found = carag_sketch_room(LIMIT), .classes = 64,
                                 .cells = view->cells->count};
        carag_scratch *scratch = carag_scratch_take(index, view, &room);
        CHECK(scratch);
        carag_normalise(queries + q * DIM, DIM, scratch->query.unit, 0, NULL);
        carag_query_renew(&scratch->query);
        carag_query_encode(index, &view->codes, &scratch->query);
        carag_effort efforts[2] = {{0}, {0}};
        carag_scan scan = carag_scan_begin(&reader, &selection, scratch, LIMIT, &efforts[0]);
        carag_scan_finish(&scan, LIMIT);
        uint32_t expected[LIMIT];
        CHECK(scratch->found.count == LIMIT);
        for (size_t i = 0; i < LIMIT; i++)
            expected[i] = scratch->found.items[i].node;
        const carag_limits limits = {.ef = 400, .slack = INFINITY, .budget = 1};
        scan = carag_scan_begin(&reader, &selection, scratch, LIMIT, &efforts[1]);
        carag_scan_cells(&scan, 1);
        CHECK(scan.scored == efforts[1].distance_computations);
        CHECK(!carag_search_graph(&scan, LIMIT, &limits));
        CHECK(scratch->found.count > 0 && scratch->visited.touched_count > 0);
        const uint64_t walked = efforts[1].distance_computations;
        CHECK(walked > scan.scored);
        carag_scan_finish(&scan, LIMIT);
        CHECK(scratch->found.count == LIMIT && scratch->visited.touched_count == 0);
        size_t hits = 0;
        for (size_t i = 0; i < LIMIT; i++) {
            const uint32_t row = scratch->found.items[i].node;
            CHECK(is_admissible_row(view, &predicate, row));
            for (size_t j = 0; j < LIMIT; j++) {
                CHECK(j == i || scratch->found.items[j].node != row);
                hits += expected[j] == row;
            }
        }
        CHECK(hits + 1 >= LIMIT);
        alone += efforts[0].distance_computations;
        after += efforts[1].distance_computations - walked;
        carag_scratch_give(index, scratch);
        carag_read_end(&reader);
    }
    CHECK(after < alone); /* the floor is there from the beginning, and rows that were met are not scored again */
    free(queries);
}

/* While a relabel is under way a class's terms tell nothing of which rows are to be asked about theirs. */
static void an_inexact_selection_asks_about_terms(carag_index *index)
{
    static carag_selection selection;
    const carag_predicate predicate = marked(1, 20);
    const carag_reader reader = carag_read_begin(index);
    carag_test_init(&selection.test, &predicate);
    selection.classes = NULL;
    carag_select(&reader, &selection);
    CHECK(selection.is_exact && !selection.test_terms);
    carag_relabel_begin(index);
    carag_select(&reader, &selection);
    carag_relabel_end(index);
    CHECK(!selection.is_exact && selection.test_terms);
    carag_read_end(&reader);
}

/* Nor is it known then how many there are to find: nothing but a full look will do, whatever plan was asked for. */
static void an_inexact_selection_is_searched_exactly(carag_index *index)
{
    float *query = random_vectors(14, 1, DIM);
    const carag_predicate predicate = marked(1, 10);
    for (size_t p = 0; p < PLANS; p++) {
        answer got;
        carag_relabel_begin(index);
        CHECK_OK(search_one(index, query, &predicate, 1, 0, plans[p], &got));
        carag_relabel_end(index);
        CHECK(is_exact(got.plan) && got.why == CARAG_WHY_ASKED && got.count == 1);
        free_answer(&got);
    }
    free(query);
}

/* ---------------------------------------------------------------- at emission */

/* Nothing inadmissible comes out, and nothing admissible is missing for what was dropped. */
static void what_a_plan_lets_through_is_not_emitted(carag_index *index)
{
    float *query = random_vectors(8, 1, DIM);
    take_ours(index);
    ours.admit = admit_all;
    for (uint32_t required = 0; required < 4; required++)
        for (size_t p = 0; p < PLANS; p++) {
            const carag_predicate predicate = marked(required, 10);
            const carag_view *view = view_of(index);
            answer got;
            CHECK_OK(search_one(index, query, &predicate, N, 0, plans[p], &got));
            CHECK((uint64_t)got.count == got.admissible);
            for (int64_t i = 0; i < got.count; i++) {
                uint32_t row = 0;
                while (view->keys[row] != got.keys[i] || carag_word_is_deleted(atomic_load(&view->words[row])))
                    row++;
                CHECK(is_admissible_row(view, &predicate, row));
            }
            free_answer(&got);
        }
    uses_ours = false;
    free(query);
}

/* Closed while a vector is read: by its word, and the next nearest takes its place; or by its terms, which do
 * not change, so that its place stays empty where its class still names it. */
static void a_row_closed_under_a_search_is_not_emitted(carag_index *index)
{
    enum { K = 10 };
    float *queries = random_vectors(9, 4, DIM);
    const carag_predicate predicate = marked(1, 10);
    carag_view *view = view_of(index);
    take_ours(index);
    ours.dot = dot_that_closes;
    for (size_t p = 0; p < PLANS; p++)
        for (int word = 0; word < 2; word++)
            for (size_t q = 0; q < 4; q++) {
                answer before;
                answer got;
                uint32_t row = 0;
                CHECK_OK(search_one(index, queries + q * DIM, &predicate, K + 1, 0, CARAG_PLAN_EXACT, &before));
                while (view->keys[row] != before.keys[0])
                    row++;
                const uint32_t kept = atomic_load(&view->words[row]);
                const uint32_t public_at = view->terms[row].public_at;
                by_word = word;
                closing = row;
                CHECK_OK(search_one(index, queries + q * DIM, &predicate, K, 0, plans[p], &got));
                CHECK(closing == CARAG_NONE);
                CHECK(got.count == K || (!word && got.count == K - 1));
                for (int64_t i = 0; i < got.count; i++)
                    CHECK(is_exact(got.plan) ? got.keys[i] == before.keys[i + 1] : got.keys[i] != before.keys[0]);
                atomic_store(&view->words[row], kept);
                view->terms[row].public_at = public_at;
                free_answer(&before);
                free_answer(&got);
            }
    uses_ours = false;
    free(queries);
}

/* Exact plans read no code and no vector of a row that the first predicate refuses before its answer is written. */
static void what_is_hidden_is_looked_for_last(carag_index *index)
{
    enum { K = 10 };
    float *queries = random_vectors(12, 4, DIM);
    const carag_predicate first = marked(1, 10);
    const carag_predicate wider = marked(0, 20);
    take_ours(index);
    ours.dot8 = dot8_in_order;
    ours.dot = dot_in_order;
    asked = &first;
    looks = 0;
    for (size_t q = 0; q < 4; q++)
        for (carag_plan plan = CARAG_PLAN_EXACT; plan < CARAG_PLANS; plan++) {
            const carag_search_params params = {.k = K, .plan = plan, .threads = 1};
            answers got;
            if (!is_exact((uint8_t)plan))
                continue;
            got.first.count = -1;
            written = &got.first.count;
            CHECK_OK(search_both(index, queries + q * DIM, &first, &params, &wider, K, &got));
            CHECK(got.first.count == K && got.second.count == K);
            free_answers(&got);
        }
    CHECK(looks > N);
    looks = 0;
    uses_ours = false;
    free(queries);
}

/* Hidden when the first pass looked at rows, admissible when the second does: looked at by neither, and found. */
static void a_row_that_opens_between_two_passes_is_found(carag_index *index)
{
    enum { K = 10 };
    const carag_predicate first = marked(1, 20);
    const carag_predicate wider = marked(0, 20);
    carag_view *view = view_of(index);
    uint32_t row = N - 200; /* in its class's list, and far from its beginning */
    while ((atomic_load(&view->words[row]) & 7) != 2)
        row--;
    const uint32_t kept = atomic_load(&view->words[row]);
    const uint32_t other = atomic_load(&view->words[400]) ^ 1;
    CHECK_OK(carag_index_relabel(index, &view->keys[400], &other, 1, 0, NULL));
    CHECK(atomic_load(&view->catalog->moved_count) > 0 && view == view_of(index));
    take_ours(index);
    ours.dot8 = dot8_that_moves;
    for (carag_plan plan = CARAG_PLAN_EXACT; plan < CARAG_PLANS; plan++) {
        const carag_search_params params = {.k = K, .plan = plan, .threads = 1};
        answers got;
        if (!is_exact((uint8_t)plan))
            continue;
        got.first.count = -1;
        written = &got.first.count;
        closing = row;
        CHECK_OK(search_both(index, (const float *)view->vectors + (size_t)row * index->stride, &first, &params,
                             &wider, K, &got));
        CHECK(closing == CARAG_NONE && got.first.keys[0] != view->keys[row]);
        CHECK(got.second.keys[0] == view->keys[row] && got.words[0] == WORD(1) && !got.refused[0]);
        atomic_store(&view->words[row], kept);
        free_answers(&got);
    }
    uses_ours = false;
}

/* ---------------------------------------------------------------- adding */

/* While links to new rows are made, searches may meet them: until all are there, they are closed and have no key. */
static void rows_are_closed_until_they_are_published(carag_index *index)
{
    float *vectors = random_vectors(10, 5, DIM);
    const uint32_t words[] = {WORD(1), WORD(1), WORD(1), WORD(1), WORD(1)};
    const carag_rows rows = rows_of(vectors, words, 5);
    const carag_predicate predicate = marked(1, 10);
    const uint64_t before = count_of(index, &predicate);
    CHECK(view_of(index)->capacity >= N + 5);
    take_ours(index);
    ours.dot8 = dot8_that_looks;
    added_from = N;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    uses_ours = false;
    CHECK(looks > 0 && count_of(index, &predicate) == before + 5);
    free(vectors);
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    carag_index *index = make_index();
    const carag_predicate few = marked(3, 20);
    uint64_t relabelled;
    CHECK_OK(carag_index_relabel_where(index, &few, MARK, 0, &relabelled, NULL));
    what_a_plan_finds_is_admissible_already(index);
    a_scan_goes_on_from_a_walk(index);
    an_inexact_selection_asks_about_terms(index);
    an_inexact_selection_is_searched_exactly(index);
    what_a_plan_lets_through_is_not_emitted(index);
    a_row_closed_under_a_search_is_not_emitted(index);
    what_is_hidden_is_looked_for_last(index);
    a_row_that_opens_between_two_passes_is_found(index);
    rows_are_closed_until_they_are_published(index);
    carag_index_free(index);
    return 0;
}
