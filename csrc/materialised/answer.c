/* materialised/answer.c - answer over a materialised view, if it is current.
 *
 * The reader that the call enters as holds the arrays of the index, as in any search; its generation is read after it
 * entered. A change that begins later runs beside the search, and what it closes is found closed at emission: every row
 * is tested where it is now, under its key, with acquire order. One that is not open voids the whole answer, because
 * a row that the view lacks may be nearer than its next one: the index is asked instead.
 */
#include "carag_internal.h"
#include "materialised/materialised.h"

#include <string.h>

static bool is_of_now(const carag_materialised *view, const carag_reader *reader)
{
    return reader->view == view->from && atomic_load(&view->of->generation) == view->generation;
}

/* Give the rows their keys back; false if one may not be emitted. */
static bool emit(const carag_materialised *view, const carag_reader *reader, const carag_test *test, size_t nq,
                 size_t k, const carag_results *results)
{
    for (size_t q = 0; q < nq; q++)
        for (size_t i = 0; i < (size_t)results->counts[q]; i++) {
            int64_t *key = &results->keys[q * k + i];
            const carag_origin origin = view->origins[*key];
            if (origin.row >= reader->rows || reader->view->keys[origin.row] != origin.key ||
                !carag_is_open(reader, test, origin.row, memory_order_acquire))
                return false;
            *key = origin.key;
        }
    return true;
}

carag_status carag_materialised_search(carag_materialised *view, const float *queries, size_t nq,
                                       const carag_predicate *predicate, const carag_search_params *params,
                                       carag_results *results, carag_fault *out_fault)
{
    static const carag_predicate everything = {.pairs = {{CARAG_CONTROL, CARAG_VERSION_WORD}}, .pair_count = 1};
    if (!carag_predicate_is_closed(predicate))
        return carag_fail(out_fault, CARAG_BAD_PREDICATE, 0, CARAG_CLOSED_PREDICATE);
    carag_status status = carag_fail(out_fault, CARAG_BEHIND, 0, "the view is not of the rows that are admissible now");
    const carag_reader reader = carag_read_begin(view->of);
    if (!view->rows && is_of_now(view, &reader) && carag_stands_for(&view->standing, predicate)) {
        carag_test test = view->test;
        test.predicate = predicate;
        status = carag_index_search(view->index, queries, nq, &everything, params, results, out_fault);
        if (status == CARAG_OK && !emit(view, &reader, &test, nq, params->k, results))
            status = carag_fail(out_fault, CARAG_BEHIND, 0, "a row that the view found is no longer admissible");
    }
    if (status == CARAG_OK) {
        results->rows = atomic_load_explicit(&view->of->live, memory_order_relaxed);
        results->classes = view->classes;
        results->materialised = 1;
    }
    carag_read_end(&reader);
    return status;
}

/* Whether it has the rows that are admissible now, for its own predicate and span of instants. */
int carag_materialised_is_current(const carag_materialised *view)
{
    return atomic_load(&view->of->view) == view->from && atomic_load(&view->of->generation) == view->generation;
}
