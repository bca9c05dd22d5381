/* test_cells.c - cells hold every row once, whatever threads and kernels made them; a scan in their order answers
 * as if there were none, reads what is near, and sees relabels and rows that are in no cell.
 *
 * The core is compiled with few rows to a cell here (CARAG_CELL_ROWS), or indexes would have to be large.
 */
#define CARAG_ALLOW_LIBC
#include "row/row.h"
#include "search/search.h"

#include "oracle.h"

enum { N = 3000, DIM = 24, K = 10, QUERIES = 20, GROUPS = 12 };

static carag_view *view_of(carag_index *index)
{
    return atomic_load(&index->view);
}

/* Rows around a few directions, some of them copies. */
static float *grouped_vectors(uint64_t seed, size_t count)
{
    float *centres = random_vectors(seed, GROUPS, DIM);
    float *vectors = random_vectors(seed + 1, count, DIM);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < DIM; j++)
            vectors[i * DIM + j] = i % 10 == 9 ? vectors[(i - 1) * DIM + j]
                                               : 0.5F * vectors[i * DIM + j] + centres[i * 7 % GROUPS * DIM + j];
    free(centres);
    return vectors;
}

static carag_index *built(const float *vectors, size_t count, uint32_t threads)
{
    carag_index *index = new_index(DIM, 4, 3);
    uint32_t *words = random_words(5, count, 3);
    carag_rows rows = rows_of(vectors, words, count);
    rows.threads = threads;
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    free(words);
    return index;
}

/* index_check.c proves that each row is in one cell; here, that it is in the nearest, by plain arithmetic. */
static void rows_are_with_the_nearest_centre(carag_index *index)
{
    const carag_view *view = view_of(index);
    const carag_cells *cells = view->cells;
    uint32_t strays = 0;
    for (uint32_t c = 0, at = 0; c < cells->count; c++)
        for (; at < cells->cells[c].end; at++) {
            double best = INFINITY;
            double own = 0.0;
            for (uint32_t other = 0; other < cells->count; other++) {
                double gap = 0.0;
                for (size_t j = 0; j < DIM; j++) {
                    const size_t row = cells->members[at];
                    const double x = view->codes.bytes[row * cells->stride + j] - 128.0;
                    const double y = cells->centres[other * cells->stride + j] - 128.0;
                    const double off =
                        (double)view->codes.scales[row] * x - (double)cells->cells[other].scale * y;
                    gap += off * off;
                }
                best = gap < best ? gap : best;
                own = other == c ? gap : own;
            }
            strays += own > best + 1e-5;
        }
    CHECK(strays == 0);
}

static int same_cells(const carag_cells *a, const carag_cells *b)
{
    return a->count == b->count && a->rows == b->rows && !memcmp(a->cells, b->cells, a->count * sizeof *a->cells) &&
           !memcmp(a->centres, b->centres, a->count * a->stride) &&
           !memcmp(a->members, b->members, a->rows * sizeof *a->members);
}

static void cells_do_not_depend_on_threads_or_kernel(const float *vectors)
{
    const char *active;
    carag_index *one = built(vectors, N, 1);
    CHECK_OK(carag_kernel_active(&active, NULL));
    CHECK(view_of(one)->cells && carag_index_check(one, NULL) == 0);
    rows_are_with_the_nearest_centre(one);
    for (size_t kernel = 0; kernel < carag_kernel_count(); kernel++) {
        if (!carag_kernel_is_available(kernel))
            continue;
        CHECK_OK(carag_set_kernel(carag_kernel_name(kernel), NULL));
        carag_index *other = built(vectors, N, 3);
        CHECK(same_cells(view_of(one)->cells, view_of(other)->cells));
        carag_index_free(other);
    }
    CHECK_OK(carag_set_kernel(active, NULL));
    carag_index_free(one);
}

/* With a reach that leaves no cell out, the floor at the end decides alone: the order of cells does not show. */
static void the_order_of_a_scan_does_not_show(const float *vectors)
{
    carag_index *index = built(vectors, N, 2);
    carag_cells *cells = view_of(index)->cells;
    for (uint32_t required = 0; required < 2; required++)
        for (size_t q = 0; q < QUERIES; q++) {
            const carag_predicate predicate = one_mask(required, 0);
            answer exact;
            answer by_cells;
            cells->reach = 2.0F;
            CHECK_OK(search_one(index, vectors + q * 61 * DIM, &predicate, K, 0, CARAG_PLAN_SCAN, &by_cells));
            CHECK_OK(search_one(index, vectors + q * 61 * DIM, &predicate, K, 0, CARAG_PLAN_EXACT, &exact));
            CHECK(by_cells.count == exact.count);
            CHECK(!memcmp(by_cells.keys, exact.keys, (size_t)exact.count * sizeof *exact.keys));
            free_answer(&by_cells);
            free_answer(&exact);
        }
    carag_index_free(index);
}

/* The tuned reach looks at a part of the rows, and finds nearly all it should; a policy that closes the query's own
 * group makes it look on. */
static void a_scan_stops_where_nothing_nearer_is_left(const float *vectors)
{
    carag_index *index = built(vectors, N, 2);
    world all = world_of(index);
    const carag_predicate anything = one_mask(0, 0);
    uint64_t looked_at = 0;
    size_t hits = 0;
    for (size_t q = 0; q < QUERIES; q++) {
        float unit[MOST_DIM];
        scored *expected;
        answer got;
        unit_of(vectors + q * 61 * DIM, DIM, unit);
        const size_t admissible = oracle(&all, unit, &anything, &expected);
        CHECK_OK(search_one(index, vectors + q * 61 * DIM, &anything, K, 0, CARAG_PLAN_SCAN, &got));
        hits += obeys(&got, K, expected, admissible);
        looked_at += (uint64_t)got.estimates;
        free_answer(&got);
        free(expected);
    }
    CHECK(hits * 100 >= 98 * (size_t)QUERIES * K);
    CHECK(looked_at < (uint64_t)QUERIES * N / 2);
    free_world(&all);
    carag_index_free(index);
}

/* Without the copy of codes by words, which a scan for few rows would read. */
static void leave_the_cells_alone(carag_index *index)
{
    carag_view *view = view_of(index);
    carag_sorted_free(view->sorted);
    view->sorted = NULL;
}

/* Nearly all of what the exact plan finds, for the first of the groups and far from them; and no other row. */
static void few_are_found(carag_index *index, const float *vectors, const carag_predicate *few)
{
    size_t hits = 0;
    leave_the_cells_alone(index);
    for (size_t q = 0; q < QUERIES; q++) {
        answer exact;
        answer got;
        CHECK_OK(search_one(index, vectors + q * 61 * DIM, few, K, 0, CARAG_PLAN_EXACT, &exact));
        CHECK_OK(search_one(index, vectors + q * 61 * DIM, few, K, 0, CARAG_PLAN_SCAN, &got));
        CHECK(got.plan == CARAG_PLAN_SCAN && got.estimates > 0 && got.admissible * 8 <= got.rows);
        CHECK(got.count == K && exact.count == K);
        for (size_t i = 0; i < K; i++)
            hits += got.similarities[i] >= exact.similarities[K - 1];
        free_answer(&exact);
        free_answer(&got);
    }
    CHECK(hits * 100 >= 98 * (size_t)QUERIES * K);
}

/* Where few rows are admissible they are marked: those that were so when the catalog was made, those relabelled since, and
 * those added since; in an index whose rows are in the order of their cells, and in one whose rows are not. */
static void few_rows_are_marked_wherever_they_are(const float *vectors)
{
    const size_t begun = N - 300; /* enough that some rows join cells before the catalog is made again */
    carag_index *index = new_index(DIM, 4, 3);
    uint32_t *words = random_words(5, N, 3);
    for (size_t i = 0; i < N; i++)
        words[i] |= i % 30 == 0 ? 1U << 20 : 0;
    const carag_rows rows = rows_of(vectors, words, begun);
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    CHECK(view_of(index)->cells->is_ordered);
    const carag_predicate few = one_mask(1U << 20, 0);
    few_are_found(index, vectors, &few);
    for (size_t i = begun; i < N; i++) {
        words[i] |= i % 3 == 0 ? 1U << 20 : 0;
        const carag_rows one = rows_of(vectors + i * DIM, words + i, 1);
        CHECK_OK(carag_index_add(index, &one, NULL, NULL));
        for (int64_t key = 7; i == begun && key < (int64_t)begun; key += 30) { /* the first has made the catalog again */
            const uint32_t word = words[key] | 1U << 20;
            CHECK_OK(carag_index_relabel(index, &key, &word, 1, 0, NULL));
        }
    }
    const carag_view *view = view_of(index);
    CHECK(atomic_load(&view->catalog->moved_count) > 0 && view->catalog->rows < view->cells->rows);
    few_are_found(index, vectors, &few);
    CHECK_OK(carag_index_consolidate(index, 2, NULL));
    view = view_of(index);
    CHECK(view->cells && !view->cells->is_ordered);
    few_are_found(index, vectors, &few);
    free(words);
    carag_index_free(index);
}

static void relabelled_rows_are_seen_at_once(const float *vectors)
{
    carag_index *index = built(vectors, N, 2);
    const carag_predicate marked = one_mask(1U << 20, 0);
    uint64_t relabelled;
    answer got;
    CHECK_OK(search_one(index, vectors, &marked, K, 0, CARAG_PLAN_SCAN, &got));
    CHECK(got.count == 0);
    free_answer(&got);
    const carag_predicate half = one_mask(1, 0);
    CHECK_OK(carag_index_relabel_where(index, &half, 1U << 20, 0, &relabelled, NULL));
    CHECK_OK(search_one(index, vectors, &marked, K, 0, CARAG_PLAN_SCAN, &got));
    CHECK(got.count == K && got.estimates > 0);
    free_answer(&got);
    carag_index_free(index);
}

/* Rows added singly are found before they are in a cell, join the nearest when there are many, and lead to new
 * centres when their number has doubled. */
static void added_rows_are_found_and_join(const float *vectors)
{
    const size_t begun = N / 3;
    carag_index *index = built(vectors, begun, 1);
    uint32_t *words = random_words(6, N, 3);
    uint32_t extended = 0; /* how often rows joined, and how often centres were chosen again */
    uint32_t renewed = 0;
    for (size_t at = begun; at < N; at += 50) {
        const carag_cells *before = view_of(index)->cells;
        const uint32_t centred = before->centred;
        const uint32_t listed = before->rows;
        const carag_rows rows = rows_of(vectors + at * DIM, words + at, 50);
        CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
        const carag_cells *after = view_of(index)->cells;
        extended += after->rows > listed && after->centred == centred;
        renewed += after->centred != centred;
        const carag_predicate anything = one_mask(0, 0);
        answer got;
        CHECK_OK(search_one(index, vectors + (at + 49) * DIM, &anything, 1, 0, CARAG_PLAN_SCAN, &got));
        CHECK(got.count == 1 && got.similarities[0] > 0.9999F);
        free_answer(&got);
    }
    CHECK(carag_index_check(index, NULL) == 0);
    CHECK(extended > 0 && renewed > 0);
    free(words);
    carag_index_free(index);
}

static void broken_cells_are_noticed(const float *vectors)
{
    carag_index *index = built(vectors, N, 1);
    carag_cells *cells = view_of(index)->cells;
    const uint32_t member = cells->members[7];
    cells->members[7] = cells->members[8];
    CHECK(carag_index_check(index, NULL) != 0);
    cells->members[7] = member;
    const uint32_t end = cells->cells[3].end;
    cells->cells[3].end = N + 1;
    CHECK(carag_index_check(index, NULL) != 0);
    cells->cells[3].end = end;
    cells->cells[2].spread = NAN;
    CHECK(carag_index_check(index, NULL) != 0);
    cells->cells[2].spread = 0.5F;
    cells->cells[2].length = -0.5F;
    CHECK(carag_index_check(index, NULL) != 0);
    cells->cells[2].length = 0.5F;
    CHECK(carag_index_check(index, NULL) == 0);
    carag_index_free(index);
}

/* Distances that a walk may compute from where a scan stands, under costs written by hand. */
static uint64_t budget_at(const carag_scan *scan, carag_view *view, double distance, size_t ef)
{
    view->costs = (carag_costs){.ef = 64, .distances = 100, .seeds = 10, .word = 1.0, .pack = 32.0, .scan_factor = 1.0,
                                .graph_distance = distance};
    return carag_plan_budget(scan, ef);
}

/* Begun after two cells: where it is less dear than the rows in reach, likely to fit its pool, and while it has one. */
static void a_walk_takes_over_where_it_is_cheaper(const float *vectors)
{
    enum { LIMIT = 5 };
    carag_index *index = built(vectors, N, 1);
    carag_view *view = view_of(index);
    const carag_costs costs = view->costs;
    const carag_predicate predicate = one_mask(1, 0);
    const carag_reader reader = carag_read_begin(index);
    uint32_t classes[64];
    carag_selection selection = {.classes = classes, .room = 64};
    carag_test_init(&selection.test, &predicate);
    carag_select(&reader, &selection);
    const carag_room room = {.pool = view->capacity, .found = carag_sketch_room(LIMIT), .classes = 64,
                             .cells = view->cells->count};
    carag_scratch *scratch = carag_scratch_take(index, view, &room);
    CHECK(scratch);
    CHECK_OK(carag_normalise(vectors, DIM, scratch->query.unit, 0, NULL));
    carag_query_renew(&scratch->query);
    carag_query_encode(index, &view->codes, &scratch->query);
    carag_effort effort = {0};
    carag_scan scan = carag_scan_begin(&reader, &selection, scratch, LIMIT, &effort);
    scan.stops = false; /* all cells are in reach */
    CHECK(!carag_scan_cells(&scan, 2) && scan.next >= 2 && scan.scored >= scan.room);
    CHECK(scan.opened <= scan.tested && scan.opened == effort.estimates);
    double rest = 0.0;
    for (uint32_t i = scan.next; i < view->cells->count; i++) {
        const uint32_t cell = scratch->cells[i];
        rest += view->cells->cells[cell].end - (cell ? view->cells->cells[cell - 1].end : 0);
    }
    const double share = (double)selection.labelled / N;
    rest *= 1.0 + (1.0 - pow(1.0 - share, 6.0));
    CHECK(view->sorted && 2.0 * (double)selection.labelled < rest);
    rest = 2.0 * (double)selection.labelled; /* by words */
    const double passing = (double)scan.opened / (double)scan.tested;
    const double even = rest * passing / (100.0 * sqrt((double)scan.scored / 10.0)); /* a distance: both cost the same */
    const double met = (double)scan.scored / sqrt(passing);
    CHECK(budget_at(&scan, view, 0.9 * even, N) == (uint64_t)(rest / (0.9 * even)));
    CHECK(budget_at(&scan, view, 1.1 * even, N) == 0);
    CHECK(budget_at(&scan, view, 0.9 * even, (size_t)(met / 2.1)) == 0);
    carag_limits limits = {.ef = 8, .slack = INFINITY, .budget = UINT64_MAX, .is_sure = true};
    CHECK(!carag_search_graph(&scan, LIMIT, &limits)); /* rows beyond a pool that was spent */
    limits.is_sure = false;
    CHECK(carag_search_graph(&scan, LIMIT, &limits) && scratch->found.count == LIMIT);
    view->costs = costs;
    carag_scratch_give(index, scratch);
    carag_read_end(&reader);
    carag_index_free(index);
}

/* The plan of a query from this row, where a row costs so much in an exact search, and a tested word one; and whether it was
 * chosen by the rows near it. */
static carag_plan chosen(carag_index *index, const float *vectors, size_t row, double exact_row, int by_near)
{
    const carag_predicate open = one_mask(1U << 20, 0);
    answer got;
    carag_view *view = view_of(index);
    view->costs = (carag_costs){.ef = 8, .reached = {1000, 2000}, .scan_factor = 1.0, .word = 1.0,
                                .ranking = 0.1 * view->cells->count, .exact_row = exact_row};
    CHECK_OK(search_one(index, vectors + row * DIM, &open, K, 0, CARAG_PLAN_AUTO, &got));
    CHECK(got.count == K && got.why == (by_near ? CARAG_WHY_NEAR : CARAG_WHY_CHEAPEST));
    const carag_plan plan = got.plan;
    free_answer(&got);
    return plan;
}

/* Of the rows of one group all are admissible, of the others few. Where neither plan is the cheaper one for sure, the
 * exact one is for queries far from that group, and a scan for those in it. */
static void a_query_chooses_by_the_rows_near_it(const float *vectors)
{
    carag_index *index = new_index(DIM, 4, 3);
    uint32_t *words = random_words(5, N, 3);
    for (size_t i = 0; i < N; i++)
        words[i] |= (i * 7 % GROUPS == 0 && i % 10 != 9) || i % 30 == 1 ? 1U << 20 : 0;
    const carag_rows rows = rows_of(vectors, words, N);
    CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    leave_the_cells_alone(index);
    for (size_t near = 0; near < N; near += 60 * GROUPS) { /* multiples of GROUPS are in the first of the groups */
        CHECK(chosen(index, vectors, near, 1.0, 1) == CARAG_PLAN_SCAN);
        CHECK(chosen(index, vectors, near + 5, 1.0, 1) == CARAG_PLAN_EXACT);
        CHECK(chosen(index, vectors, near, 0.1, 0) == CARAG_PLAN_EXACT);
        CHECK(chosen(index, vectors, near + 5, 30.0, 0) == CARAG_PLAN_SCAN);
    }
    free(words);
    carag_index_free(index);
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    float *vectors = grouped_vectors(9, N);
    cells_do_not_depend_on_threads_or_kernel(vectors);
    the_order_of_a_scan_does_not_show(vectors);
    a_scan_stops_where_nothing_nearer_is_left(vectors);
    few_rows_are_marked_wherever_they_are(vectors);
    relabelled_rows_are_seen_at_once(vectors);
    added_rows_are_found_and_join(vectors);
    a_walk_takes_over_where_it_is_cheaper(vectors);
    a_query_chooses_by_the_rows_near_it(vectors);
    broken_cells_are_noticed(vectors);
    free(vectors);
    return 0;
}
