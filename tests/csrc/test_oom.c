/* test_oom.c - every single allocation fails once: the call says so, and the index is as before. */
#include <string.h>
#include <unistd.h>

#include "check.h"

static long countdown = -1; /* allocations until one fails; negative: never */
static long outstanding;

static void *failing_allocate(size_t size)
{
    if (countdown == 0)
        return NULL;
    if (countdown > 0)
        countdown--;
    outstanding++;
    return malloc(size);
}

static void counting_release(void *memory)
{
    outstanding -= memory != NULL;
    free(memory);
}

/* Run a call with the nth allocation failing, n = 0, 1, ... until it needs no more than n. */
#define WALK(call, after_failure)               \
    do {                                        \
        long allowed = 0;                       \
        carag_status status = CARAG_NO_MEMORY;  \
        while (status != CARAG_OK) {            \
            countdown = allowed++;              \
            status = (call);                    \
            countdown = -1;                     \
            if (status != CARAG_OK) {           \
                CHECK(status == CARAG_NO_MEMORY); \
                after_failure;                  \
            }                                   \
        }                                       \
        CHECK(allowed > 1);                     \
    } while (0)

static void unchanged(carag_index *index, uint32_t rows)
{
    carag_info info;
    carag_index_info(index, &info);
    CHECK(info.rows == rows && info.live == rows);
    CHECK(carag_index_check(index, NULL) == 0);
}

int main(int argc, char **argv)
{
    const uint32_t dim = 5;
    const carag_params params = {.dim = dim, .M = 4, .ef_construction = 20, .seed = 1};
    const carag_predicate open = one_mask(0, 0);
    float *vectors = random_vectors(1, 400, dim);
    uint32_t *words = random_words(1, 400, 2);
    carag_index *index = NULL;
    carag_index *loaded = NULL;
    char path[512];
    temporary(argc, argv, path, "test_oom.carag");
    carag_set_allocator(failing_allocate, counting_release);

    WALK(carag_index_new(&params, &index, NULL), CHECK(index == NULL));
    const carag_rows first = rows_of(vectors, words, 3);
    WALK(carag_index_add(index, &first, NULL, NULL), unchanged(index, 0));
    const carag_rows rest = rows_of(vectors + 3 * dim, words + 3, 397); /* every array grows */
    WALK(carag_index_add(index, &rest, NULL, NULL), unchanged(index, 3));
    unchanged(index, 400);
    for (int plan = CARAG_PLAN_EXACT; plan <= CARAG_PLAN_GRAPH; plan++) {
        answer got = {0};
        WALK(search_one(index, vectors, &open, 10, 20, (carag_plan)plan, &got), free_answer(&got));
        CHECK(got.count == 10);
        free_answer(&got);
    }
    WALK(carag_index_save(index, path, NULL), CHECK(access(path, F_OK) != 0));
    const long before = outstanding;
    WALK(carag_index_load(path, &loaded, NULL), CHECK(loaded == NULL && outstanding == before));
    unchanged(loaded, 400);

    carag_index_free(index);
    carag_index_free(loaded);
    carag_index_free(NULL);
    CHECK(outstanding == 0);
    carag_set_allocator(NULL, NULL);
    unlink(path);
    free(vectors);
    free(words);
    return 0;
}
