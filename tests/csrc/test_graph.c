/* test_graph.c - the graph from inside: every row reachable by walking, duplicates harmless, same rows same bytes. */
#define CARAG_ALLOW_LIBC
#include "carag_internal.h"

#include <string.h>

#include "check.h"

/* Rows of a layer that a walk along its links from the entry point meets: the definition, not check.c's proof. */
static uint32_t reachable(const carag_index *index, uint32_t layer)
{
    uint32_t *queue = malloc((index->rows + 1) * sizeof *queue);
    uint8_t *met = calloc(index->rows + 1, 1);
    CHECK(queue && met);
    uint32_t count = 0;
    queue[count++] = index->entry_point;
    met[index->entry_point] = 1;
    for (uint32_t done = 0; done < count; done++) {
        const uint32_t *links = carag_links(index, queue[done], layer);
        for (uint32_t i = 0; i < carag_degree_limit(index, layer) && links[i] != CARAG_NONE; i++)
            if (!met[links[i]]) {
                met[links[i]] = 1;
                queue[count++] = links[i];
            }
    }
    free(queue);
    free(met);
    return count;
}

static void every_row_is_reachable(const carag_index *index)
{
    CHECK(carag_check_unlocked(index, NULL) == 0);
    for (uint32_t layer = 0; layer <= index->max_level; layer++) {
        uint32_t rows = 0;
        for (uint32_t node = 0; node < index->rows; node++)
            rows += index->at.levels[node] >= layer;
        CHECK(reachable(index, layer) == rows);
    }
}

static carag_index *build(const float *vectors, size_t n, uint32_t dim, uint32_t M, size_t batch)
{
    carag_index *index = new_index(dim, M, 5);
    uint32_t *words = random_words(1, n, 2);
    for (size_t at = 0; at < n; at += batch) {
        const carag_rows rows = rows_of(vectors + at * dim, words + at, batch < n - at ? batch : n - at);
        CHECK_OK(carag_index_add(index, &rows, NULL, NULL));
    }
    free(words);
    return index;
}

static void every_row_is_reachable_on_hard_data(void)
{
    const size_t n = 1200;
    const uint32_t dim = 6;
    enum { RANDOM, SAME, HALF_SAME, TWO_FAR_CLUSTERS, LINE, OUTLIER, SHAPES };
    for (int shape = 0; shape < SHAPES; shape++)
        for (uint32_t M = 2; M <= 32; M += shape == SAME ? 15 : 10) {
            float *vectors = random_vectors((uint64_t)shape + 1, n, dim);
            for (size_t i = 0; i < n; i++) {
                float *row = vectors + i * dim;
                for (uint32_t j = 0; j < dim; j++) {
                    if (shape == SAME || (shape == HALF_SAME && i % 2 == 0))
                        row[j] = vectors[j];
                    else if (shape == TWO_FAR_CLUSTERS)
                        row[j] = (i % 2 ? 1000.0F : -1000.0F) + row[j];
                    else if (shape == LINE)
                        row[j] = j == 0 ? 1.0F : j == 1 ? (float)i : 0.0F;
                    else if (shape == OUTLIER)
                        row[j] = (i == n / 2 ? -1.0F : 1.0F) + row[j] * 0.001F;
                }
            }
            carag_index *index = build(vectors, n, dim, M, n);
            every_row_is_reachable(index);
            carag_index_free(index);
            free(vectors);
        }
}

/* A thousand copies of one row: searches for the other rows are as good as without them. */
static void duplicates_do_not_sink_the_graph(void)
{
    const size_t n = 2000;
    const size_t copies = 1000;
    const uint32_t dim = 16;
    float *vectors = random_vectors(9, n + copies, dim);
    for (size_t i = 0; i < copies; i++)
        memcpy(vectors + (n + i) * dim, vectors, dim * sizeof *vectors);
    carag_index *index = build(vectors, n + copies, dim, 16, n + copies);
    float *queries = random_vectors(10, 100, dim);
    const carag_predicate open = one_mask(0, 0);
    int found = 0;
    every_row_is_reachable(index);
    for (size_t q = 0; q < 100; q++) {
        answer exact;
        answer graph;
        CHECK_OK(search_one(index, queries + q * dim, &open, 10, 100, CARAG_PLAN_EXACT, &exact));
        CHECK_OK(search_one(index, queries + q * dim, &open, 10, 100, CARAG_PLAN_GRAPH, &graph));
        for (int i = 0; i < 10; i++)
            for (int j = 0; j < 10; j++)
                found += exact.keys[i] == graph.keys[j];
        free_answer(&exact);
        free_answer(&graph);
    }
    CHECK(found >= 980);
    carag_index_free(index);
    free(vectors);
    free(queries);
}

/* Same vectors, links, levels and parents; words and keys are the caller's anyway. */
static void same_graph(const carag_index *a, const carag_index *b)
{
    CHECK(a->rows == b->rows && a->entry_point == b->entry_point && a->upper_count == b->upper_count);
    CHECK(memcmp(a->at.vectors, b->at.vectors, a->rows * a->stride * sizeof(float)) == 0);
    CHECK(memcmp(a->at.links0, b->at.links0, (size_t)a->rows * a->M0 * sizeof(uint32_t)) == 0);
    CHECK(memcmp(a->at.parents0, b->at.parents0, a->rows * sizeof(uint32_t)) == 0);
    CHECK(memcmp(a->upper_links, b->upper_links, (size_t)a->upper_count * a->params.M * sizeof(uint32_t)) == 0);
}

static void the_graph_depends_on_rows_and_seed_alone(void)
{
    const size_t n = 700;
    const uint32_t dim = 20;
    float *vectors = random_vectors(11, n, dim);
    const char *before;
    CHECK_OK(carag_kernel_active(&before, NULL));
    carag_index *whole = build(vectors, n, dim, 8, n);
    carag_index *pieces = build(vectors, n, dim, 8, 13);
    same_graph(whole, pieces);
    carag_index_free(pieces);
    for (size_t i = 0; i < carag_kernel_count(); i++)
        if (carag_kernel_is_available(i)) {
            CHECK_OK(carag_set_kernel(carag_kernel_name(i), NULL));
            carag_index *other = build(vectors, n, dim, 8, n);
            same_graph(whole, other);
            carag_index_free(other);
        }
    CHECK_OK(carag_set_kernel(before, NULL));
    carag_index_free(whole);
    free(vectors);
}

/* The check can fail: break one thing at a time and it says which. */
static void the_check_sees_what_is_broken(void)
{
    const size_t n = 200;
    float *vectors = random_vectors(12, n, 4);
    carag_index *index = build(vectors, n, 4, 4, n);
    CHECK(carag_check_unlocked(index, NULL) == 0);

#define BREAKS(bit, place, wrong)                              \
    do {                                                       \
        const __typeof__(place) right = (place);               \
        (place) = (wrong);                                     \
        CHECK(carag_check_unlocked(index, NULL) & 1U << (bit)); \
        (place) = right;                                       \
        CHECK(carag_check_unlocked(index, NULL) == 0);         \
    } while (0)

    BREAKS(0, index->live, index->live - 1);
    BREAKS(1, index->at.words[5], (uint32_t)3 << 27);
    BREAKS(2, index->at.vectors[7 * index->stride], 2.0F);
    BREAKS(2, index->at.vectors[7 * index->stride + 5], 1.0F);
    BREAKS(3, index->at.keys[9], -9);
    BREAKS(3, index->at.keys[9], 10);
    BREAKS(4, index->at.levels[3], (uint8_t)(index->at.levels[3] + 1));
    BREAKS(5, index->max_level, index->max_level + 1);
    BREAKS(6, index->at.links0[8 * index->M0], 8);
    BREAKS(6, index->at.links0[8 * index->M0], (uint32_t)n);
    BREAKS(6, index->at.links0[8 * index->M0 + 1], index->at.links0[8 * index->M0]);
    BREAKS(7, index->at.parents0[8], 9);
    BREAKS(7, index->at.parents0[0], 1);
    carag_index_free(index);
    free(vectors);
}

/* A path whose only way leads through rows that fail: they must carry the search. */
static void failing_rows_carry_the_search(void)
{
    const size_t n = 2000;
    const uint32_t dim = 8;
    float *vectors = random_vectors(13, n, dim);
    carag_index *index = build(vectors, n, dim, 8, n);
    for (uint32_t node = 0; node < n; node++) /* one row in eight passes, the entry point does not */
        index->at.words[node] = WORD(node % 8 == 3 && node != index->entry_point);
    const carag_predicate predicate = one_mask(1, 0);
    int found = 0;
    for (size_t q = 0; q < 50; q++) {
        answer exact;
        answer graph;
        CHECK_OK(search_one(index, vectors + q * dim, &predicate, 5, 8, CARAG_PLAN_EXACT, &exact));
        CHECK_OK(search_one(index, vectors + q * dim, &predicate, 5, 8, CARAG_PLAN_GRAPH, &graph));
        CHECK(graph.count == 5);
        for (int i = 0; i < 5; i++)
            for (int j = 0; j < 5; j++)
                found += exact.keys[i] == graph.keys[j];
        free_answer(&exact);
        free_answer(&graph);
    }
    CHECK(found >= 240);
    carag_index_free(index);
    free(vectors);
}

int main(void)
{
    every_row_is_reachable_on_hard_data();
    duplicates_do_not_sink_the_graph();
    the_graph_depends_on_rows_and_seed_alone();
    the_check_sees_what_is_broken();
    failing_rows_carry_the_search();
    return 0;
}
