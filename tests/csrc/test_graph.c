/* test_graph.c - the graph from inside: every row reachable by walking, duplicates harmless, same rows same
 * bytes; the search through it carried by rows that fail, and complete even where the graph leads nowhere;
 * and the check that proves all this able to fail.
 */
#define CARAG_ALLOW_LIBC
#include "carag_internal.h"
#include "hnsw/candidates.h"
#include "row/row.h"

#include "oracle.h"

static carag_view *view_of(carag_index *index)
{
    return atomic_load(&index->view);
}

/* `batch` rows at a time: many at once are linked by a build, few by insertion. */
static carag_index *build(const float *vectors, size_t n, uint32_t dim, uint32_t M, size_t batch, uint32_t threads)
{
    carag_index *index = new_index(dim, M, 5);
    uint32_t *words = random_words(1, n, 2);
    for (size_t at = 0; at < n; at += batch) {
        carag_rows rows = rows_of(vectors + at * dim, words + at, batch < n - at ? batch : n - at);
        rows.threads = threads;
        CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    }
    free(words);
    return index;
}

/* ---------------------------------------------------------------- reachability */

/* Rows of a layer that a walk along its links from the entry point meets: the definition, not index_check.c's
 * proof. */
static uint32_t reachable(const carag_graph *graph, uint32_t rows, uint32_t layer)
{
    uint32_t *queue = room_for(rows, sizeof *queue);
    uint8_t *met = room_for(rows, 1);
    uint32_t count = 0;
    queue[count++] = atomic_load(&graph->entry_point);
    met[queue[0]] = 1;
    for (uint32_t done = 0; done < count; done++) {
        const _Atomic(uint32_t) *links = carag_graph_links(graph, queue[done], layer);
        for (uint32_t i = 0; i < carag_graph_limit(graph, layer); i++) {
            const uint32_t link = atomic_load(&links[i]);
            if (link == CARAG_NONE)
                break;
            if (!met[link]) {
                met[link] = 1;
                queue[count++] = link;
            }
        }
    }
    free(queue);
    free(met);
    return count;
}

static void every_row_is_reachable(carag_index *index)
{
    const carag_view *view = view_of(index);
    const uint32_t rows = atomic_load(&view->rows);
    carag_info info;
    CHECK(carag_index_check(index, NULL) == 0);
    carag_index_info(index, &info);
    for (uint32_t layer = 0; layer <= info.max_level; layer++) {
        uint32_t on_layer = 0;
        for (uint32_t row = 0; row < rows; row++)
            on_layer += view->graph.levels[row] >= layer;
        CHECK(reachable(&view->graph, rows, layer) == on_layer);
    }
}

static void every_row_is_reachable_on_hard_data(void)
{
    enum { N = 500, DIM = 6 };
    enum { RANDOM, SAME, HALF_SAME, TWO_FAR_CLUSTERS, LINE, OUTLIER, SHAPES };
    for (int shape = 0; shape < SHAPES; shape++)
        for (uint32_t M = 2; M <= 32; M *= 4) {
            float *vectors = random_vectors((uint64_t)shape + 1, N, DIM);
            for (size_t i = 0; i < N; i++) {
                float *row = vectors + i * DIM;
                for (uint32_t j = 0; j < DIM; j++) {
                    if (shape == SAME || (shape == HALF_SAME && i % 2 == 0))
                        row[j] = vectors[j];
                    else if (shape == TWO_FAR_CLUSTERS)
                        row[j] = (i % 2 ? 1000.0F : -1000.0F) + row[j];
                    else if (shape == LINE)
                        row[j] = j == 0 ? 1.0F : j == 1 ? (float)i : 0.0F;
                    else if (shape == OUTLIER)
                        row[j] = (i == N / 2 ? -1.0F : 1.0F) + row[j] * 0.001F;
                }
            }
            const size_t batches[] = {N, 1, 300};
            for (size_t b = 0; b < 3; b++) { /* a build, insertions alone, insertions after a build */
                carag_index *index = build(vectors, N, DIM, M, batches[b], 1);
                every_row_is_reachable(index);
                carag_index_free(index);
            }
            free(vectors);
        }
}

/* ---------------------------------------------------------------- recall */

static size_t graph_hits(carag_index *index, const float *query, const carag_predicate *predicate, size_t k,
                         uint32_t ef)
{
    answer exact;
    int64_t keys[64], numbers[5];
    float similarities[64];
    uint8_t ran, why;
    size_t hits = 0;
    carag_results out = {.keys = keys, .similarities = similarities, .counts = numbers, .estimates = numbers + 1,
                         .distance_computations = numbers + 2, .hops = numbers + 3, .ef = numbers + 4, .plans = &ran,
                         .whys = &why};
    const carag_search_params params = {.k = k, .ef_search = ef, .plan = CARAG_PLAN_GRAPH, .threads = 1,
                                        .no_fallback = 1};
    CHECK_OK(search_one(index, query, predicate, k, ef, CARAG_PLAN_EXACT, &exact));
    CHECK_OK(carag_index_search(index, query, 1, predicate, &params, &out, NULL));
    CHECK(ran == CARAG_PLAN_GRAPH && numbers[0] <= exact.count);
    for (int64_t i = 0; i < numbers[0]; i++)
        hits += similarities[i] >= exact.similarities[exact.count - 1];
    free_answer(&exact);
    return hits;
}

/* The graph alone, no fallback, on all rows and on a half. */
static void the_graph_finds_nearly_all(size_t batch)
{
    enum { N = 1500, DIM = 24, QUERIES = 50, K = 10 };
    float *vectors = random_vectors(9, N, DIM);
    float *queries = random_vectors(10, QUERIES, DIM);
    carag_index *index = build(vectors, N, DIM, 16, batch, 1);
    for (uint32_t required = 0; required < 2; required++) {
        const carag_predicate predicate = one_mask(required, 0);
        size_t hits = 0;
        for (size_t q = 0; q < QUERIES; q++)
            hits += graph_hits(index, queries + q * DIM, &predicate, K, 100);
        CHECK(hits * 100 >= 98 * (size_t)QUERIES * K);
    }
    carag_index_free(index);
    free(vectors);
    free(queries);
}

/* Hundreds of copies of one row: searches for the other rows are as good as without them. */
static void duplicates_do_not_sink_the_graph(size_t batch)
{
    enum { N = 1000, COPIES = 500, DIM = 16, QUERIES = 50, K = 10 };
    float *vectors = random_vectors(9, N + COPIES, DIM);
    for (size_t i = 0; i < COPIES; i++)
        memcpy(vectors + (N + i) * DIM, vectors, DIM * sizeof *vectors);
    carag_index *index = build(vectors, N + COPIES, DIM, 16, batch, 1);
    float *queries = random_vectors(10, QUERIES, DIM);
    const carag_predicate open = one_mask(0, 0);
    size_t hits = 0;
    every_row_is_reachable(index);
    for (size_t q = 0; q < QUERIES; q++)
        hits += graph_hits(index, queries + q * DIM, &open, K, 100);
    CHECK(hits * 100 >= 98 * (size_t)QUERIES * K);
    carag_index_free(index);
    free(vectors);
    free(queries);
}

/* One row in eight passes, the entry point does not: rows that fail must carry the search. */
static void failing_rows_carry_the_search(void)
{
    enum { N = 1500, DIM = 8, QUERIES = 50, K = 5 };
    float *vectors = random_vectors(13, N, DIM);
    carag_index *index = build(vectors, N, DIM, 8, N, 1);
    const int64_t entry = view_of(index)->keys[atomic_load(&view_of(index)->graph.entry_point)];
    int64_t keys[N];
    uint32_t words[N];
    for (int64_t key = 0; key < N; key++) {
        keys[key] = key;
        words[key] = WORD(key % 8 == 3 && key != entry);
    }
    CHECK_OK(carag_index_relabel(index, keys, words, N, 0, NULL));
    const carag_predicate predicate = one_mask(1, 0);
    size_t hits = 0;
    for (size_t q = 0; q < QUERIES; q++)
        hits += graph_hits(index, vectors + q * DIM, &predicate, K, 32);
    CHECK(hits * 100 >= 95 * (size_t)QUERIES * K);
    carag_index_free(index);
    free(vectors);
}

/* ---------------------------------------------------------------- where the graph leads */

/* Every link but these cut: the answer is complete by the fill rule and the budget, not by the graph. */
static void link_by_hand(carag_view *view, bool as_path)
{
    carag_graph *graph = &view->graph;
    const uint32_t rows = atomic_load(&view->rows);
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t layer = 0; layer <= graph->levels[row]; layer++) {
            _Atomic(uint32_t) *links = carag_graph_links(graph, row, layer);
            for (uint32_t i = 0; i < carag_graph_limit(graph, layer); i++)
                atomic_store(&links[i], CARAG_NONE);
            if (!as_path || layer > 0)
                continue;
            uint32_t at = 0;
            if (row > 0)
                atomic_store(&links[at++], row - 1);
            if (row + 1 < rows)
                atomic_store(&links[at], row + 1);
        }
}

static void a_graph_that_leads_nowhere_answers_in_full(void)
{
    enum { N = 400, DIM = 4 };
    float *vectors = random_vectors(14, N, DIM);
    carag_index *index = build(vectors, N, DIM, 4, N, 1);
    for (int as_path = 0; as_path < 2; as_path++) {
        link_by_hand(view_of(index), as_path);
        world all = world_of(index);
        for (uint32_t q = 0; q < 12; q++) {
            const carag_predicate predicate = one_mask(q & 3, 0);
            search_obeys(index, &all, vectors + q * DIM, &predicate, 1 + 20 * q, 8);
        }
        free_world(&all);
    }
    carag_index_free(index);
    free(vectors);
}

/* A path by hand, one passing row at its far end, and a beam as wide as the path: the search walks all the
 * way. */
static void a_path_is_walked_to_its_end(void)
{
    enum { N = 300, DIM = 2 };
    float vectors[N * DIM];
    for (size_t i = 0; i < N; i++) { /* along an arc */
        vectors[i * DIM] = cosf((float)i * 0.005F);
        vectors[i * DIM + 1] = sinf((float)i * 0.005F);
    }
    carag_index *index = build(vectors, N, DIM, 4, N, 1);
    link_by_hand(view_of(index), true);
    for (uint32_t end = 0; end < 2; end++) {
        const uint32_t row = end ? N - 1 : 0;
        const int64_t key = view_of(index)->keys[row];
        const uint32_t word = WORD(8 << end);
        CHECK_OK(carag_index_relabel(index, &key, &word, 1, 0, NULL));
        const carag_predicate predicate = one_mask(8U << end, 0);
        CHECK(graph_hits(index, vectors, &predicate, 1, N) == 1);
    }
    carag_index_free(index);
}

/* ---------------------------------------------------------------- determinism */

static void same_graph(carag_index *a, carag_index *b)
{
    const carag_view *x = view_of(a);
    const carag_view *y = view_of(b);
    const carag_graph *g = &x->graph;
    const carag_graph *h = &y->graph;
    const size_t rows = atomic_load(&x->rows);
    CHECK(rows == atomic_load(&y->rows) && atomic_load(&g->entry_point) == atomic_load(&h->entry_point));
    CHECK(g->upper_count == h->upper_count && x->costs.ef == y->costs.ef);
    CHECK(memcmp(x->vectors, y->vectors, rows * a->vector_bytes) == 0);
    CHECK(memcmp(x->codes.bytes, y->codes.bytes, rows * x->codes.stride) == 0);
    CHECK(memcmp(x->bits.packs, y->bits.packs, carag_packs((uint32_t)rows) * carag_pack_bytes(8 * x->bits.words)) == 0);
    CHECK(memcmp(g->levels, h->levels, rows) == 0);
    CHECK(memcmp(g->parents, h->parents, rows * sizeof *g->parents) == 0);
    CHECK(memcmp((const void *)g->links, (const void *)h->links, rows * g->M0 * sizeof *g->links) == 0);
    CHECK(memcmp((const void *)g->upper_links, (const void *)h->upper_links,
                 g->upper_count * g->M * sizeof *g->upper_links) == 0);
    CHECK(memcmp(g->upper_parents, h->upper_parents, g->upper_count * sizeof *g->upper_parents) == 0);
}

/* On any kernel and number of threads, built at once, piece by piece, and consolidated. */
static void same_calls_make_the_same_graph(void)
{
    enum { N = 700, DIM = 20 };
    const size_t batches[] = {N, 13, 300};
    float *vectors = random_vectors(11, N, DIM);
    const char *before;
    CHECK_OK(carag_kernel_active(&before, NULL));
    for (size_t b = 0; b < 3; b++) {
        carag_index *first = build(vectors, N, DIM, 8, batches[b], 1);
        carag_index *tidy = build(vectors, N, DIM, 8, batches[b], 1);
        CHECK_OK(carag_index_consolidate(tidy, 1, NULL));
        uint32_t threads = 1;
        for (size_t i = 0; i < carag_kernel_count(); i++)
            if (carag_kernel_is_available(i)) {
                CHECK_OK(carag_set_kernel(carag_kernel_name(i), NULL));
                carag_index *other = build(vectors, N, DIM, 8, batches[b], ++threads);
                same_graph(first, other);
                CHECK_OK(carag_index_consolidate(other, threads, NULL));
                same_graph(tidy, other);
                every_row_is_reachable(other);
                carag_index_free(other);
            }
        CHECK_OK(carag_set_kernel(before, NULL));
        carag_index_free(first);
        carag_index_free(tidy);
    }
    free(vectors);
}

/* Room made before changes nothing but that no row is copied: a build, one over it, insertions, and rows more than
 * there is room for. */
static void reserved_room_changes_nothing(void)
{
    enum { N = 700, DIM = 20, WAYS = 5 };
    const size_t ends[] = {0, 300, 650, 690, N};
    const uint32_t rooms[WAYS] = {0, 200, 650, 690, 2 * N};
    float *vectors = random_vectors(16, N, DIM);
    uint32_t *words = random_words(1, N, 2);
    carag_index *plain = new_index(DIM, 8, 5);
    carag_index *roomy[WAYS];
    for (size_t r = 0; r < WAYS; r++) {
        roomy[r] = new_index(DIM, 8, 5);
        CHECK_OK(carag_index_reserve(roomy[r], rooms[r], NULL));
    }
    for (size_t b = 1; b < sizeof ends / sizeof *ends; b++) {
        const carag_rows rows = rows_of(vectors + ends[b - 1] * DIM, words + ends[b - 1], ends[b] - ends[b - 1]);
        CHECK_OK(carag_index_add(plain, &rows, NULL, NULL));
        for (size_t r = 0; r < WAYS; r++) {
            const void *before = view_of(roomy[r])->vectors;
            const bool has_room = view_of(roomy[r])->capacity >= ends[b];
            CHECK(has_room || rooms[r] < ends[b]);
            CHECK_OK(carag_index_add(roomy[r], &rows, NULL, NULL));
            CHECK((view_of(roomy[r])->vectors == before) == has_room);
            same_graph(plain, roomy[r]);
        }
    }
    for (size_t r = 0; r < WAYS; r++) { /* with rows there */
        CHECK_OK(carag_index_reserve(roomy[r], 5 * N, NULL));
        CHECK_OK(carag_index_reserve(roomy[r], N, NULL));
        CHECK(view_of(roomy[r])->capacity == 5 * N);
        same_graph(plain, roomy[r]);
        every_row_is_reachable(roomy[r]);
        carag_index_free(roomy[r]);
    }
    carag_index_free(plain);
    free(vectors);
    free(words);
}

/* The near rows of all rows, found `stripe` rows at a time. */
static uint32_t *near_rows(const carag_codes *codes, uint32_t rows, uint32_t stripe, size_t *out_slots)
{
    carag_cover cover;
    uint32_t stripes = 0;
    CHECK_OK(carag_cover_init(&cover, codes, NULL, rows, 40, 3, 2));
    const size_t slots = *out_slots = (size_t)cover.fanout * cover.per_leaf;
    uint32_t *all = room_for(rows * slots, sizeof *all);
    cover.stripe = stripe;
    for (bool more = true; more;) {
        CHECK_OK(carag_cover_next(&cover, 2, &more));
        for (uint32_t row = cover.first; row < cover.end; row++)
            memcpy(all + row * slots, carag_cover_slots(&cover, row), slots * sizeof *all);
        stripes += more;
    }
    CHECK(stripes == (rows + stripe - 1) / stripe);
    carag_cover_destroy(&cover);
    return all;
}

/* Of one leaf, and of leaves that overlap. */
static void stripes_find_what_all_at_once_finds(void)
{
    enum { N = 5000, DIM = 8 };
    float *vectors = random_vectors(15, N, DIM);
    carag_index *index = build(vectors, N, DIM, 4, N, 2);
    const uint32_t counts[] = {700, N};
    for (size_t i = 0; i < 2; i++) {
        size_t slots;
        uint32_t *expected = near_rows(&view_of(index)->codes, counts[i], counts[i], &slots);
        const uint32_t stripes[] = {77, counts[i] - 1};
        for (size_t j = 0; j < 2; j++) {
            uint32_t *actual = near_rows(&view_of(index)->codes, counts[i], stripes[j], &slots);
            CHECK(memcmp(expected, actual, counts[i] * slots * sizeof *expected) == 0);
            free(actual);
        }
        free(expected);
    }
    carag_index_free(index);
    free(vectors);
}

/* ---------------------------------------------------------------- the check */

/* The bit of an invariant, by the word its name begins with. */
static uint32_t invariant(const char *name)
{
    uint32_t bit = 0;
    while (strncmp(carag_invariant_name(bit), name, strlen(name)) != 0)
        CHECK(*carag_invariant_name(bit++));
    return 1U << bit;
}

/* Break one thing at a time and it says which. */
static void the_check_sees_what_is_broken(void)
{
    enum { N = 300 };
    float *vectors = random_vectors(12, N, 4);
    carag_index *index = build(vectors, N, 4, 4, N, 1);
    carag_view *view = view_of(index);
    carag_graph *graph = &view->graph;
    carag_catalog *catalog = view->catalog;
    float *kept = (float *)view->vectors + 7 * index->stride;
    _Atomic(uint32_t) *links = carag_graph_links(graph, 8, 0);
    uint32_t upper = 0;
    while (graph->levels[upper] == 0)
        upper++;
    CHECK(carag_index_check(index, NULL) == 0);

#define BREAKS(name, place, wrong)                                  \
    do {                                                            \
        const __typeof__(place) right = (place);              \
        (place) = (__typeof__(place))(wrong);                 \
        CHECK(carag_index_check(index, NULL) & invariant(name));    \
        (place) = right;                                            \
        CHECK(carag_index_check(index, NULL) == 0);                 \
    } while (0)

    BREAKS("counts", index->live, right - 1);
    BREAKS("words", view->words[5], (uint32_t)3 << 27);
    BREAKS("vectors", kept[0], 2.0F);
    BREAKS("vectors", kept[5], 1.0F);
    BREAKS("vectors", kept[1], NAN);
    BREAKS("keys", view->keys[9], -9);
    BREAKS("keys", view->keys[9], view->keys[10]);
    BREAKS("codes", view->codes.scales[3], right * 2);
    BREAKS("codes", view->codes.errors[3], 0.0F);
    BREAKS("codes", view->codes.bytes[3 * view->codes.stride + 5], 129);
    uint16_t *halves = (uint16_t *)(void *)(view->bits.packs + CARAG_PACK * 8 * view->bits.words);
    uint8_t *last = view->bits.packs + (carag_packs(N) - 1) * carag_pack_bytes(8 * view->bits.words);
    BREAKS("bits", halves[4], 0x7C00); /* infinity */
    BREAKS("bits", halves[CARAG_PACK + 4], 0x7E00);
    BREAKS("bits", halves[2 * CARAG_PACK + 4], 0xFC00);
    BREAKS("bits", last[N % CARAG_PACK], 1);
    BREAKS("bits", last[CARAG_PACK * 8 * view->bits.words + 2 * (N % CARAG_PACK)], 1);
    BREAKS("bits", view->bits.centre[4], 2.0F);
    BREAKS("levels", graph->levels[3], right + 1);
    BREAKS("levels", graph->upper_first[upper], right + 1);
    BREAKS("entry", graph->entry_point, N);
    BREAKS("links", links[0], 8);
    BREAKS("links", links[0], N);
    BREAKS("links", links[1], links[0]);
    BREAKS("tree", graph->parents[8], 9);
    BREAKS("tree", graph->parents[0], 1);
    BREAKS("classes", catalog->classes[6], right + 1);
    BREAKS("classes", catalog->live[0], right - 1);
    BREAKS("classes", catalog->postings[0], catalog->postings[1]);
    BREAKS("classes", catalog->words[1], right + 1);
#undef BREAKS
    carag_index_free(index);
    free(vectors);
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    every_row_is_reachable_on_hard_data();
    the_graph_finds_nearly_all(1500);
    the_graph_finds_nearly_all(250);
    duplicates_do_not_sink_the_graph(1500);
    duplicates_do_not_sink_the_graph(250);
    failing_rows_carry_the_search();
    a_graph_that_leads_nowhere_answers_in_full();
    a_path_is_walked_to_its_end();
    same_calls_make_the_same_graph();
    reserved_room_changes_nothing();
    stripes_find_what_all_at_once_finds();
    the_check_sees_what_is_broken();
    return 0;
}
