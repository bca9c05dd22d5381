/* search.c - one call, many queries: choose a plan, run it, emit.
 *
 * Planner. The admissible rows are counted exactly first, one pass over words and times. None: the answer is
 * empty and nothing is searched. Otherwise, for CARAG_PLAN_AUTO, the cheaper of
 *      scan    admissible
 *      graph   GRAPH_COST x (BASE + PER_EF x beam), at most the rows there are
 * in distance computations, where beam = ef / share admissible is what the graph would widen to. The constants
 * are measured (bench/ann/recall.py; csrc/README.md says on what): a graph distance costs more than a scanned
 * one, because it is a cache miss, and carries the heaps with it.
 *
 * Rules that hold for every plan
 *   all         a search that wants every admissible row is the scan: no graph can touch fewer rows
 *   budget      a graph search that has computed `admissible` distances becomes the scan
 *   fill        a graph search with fewer than min(k, admissible) rows becomes the scan
 *   emission    a row's word is read again, with acquire order, as the row is written to the answer; a row closed
 *               meanwhile is dropped, and a scan that dropped one is run again, so that no row that was
 *               admissible all along is missed for it
 * So the count is always min(k, admissible), and nothing inadmissible at emission is ever returned. Under a relabel
 * that runs beside the search `admissible` may grow after it was counted; a scan therefore keeps min(k, rows) rows,
 * lest a row that has just opened push out one that was open all along.
 */
#include "carag_internal.h"

#include <math.h>
#include <string.h>

#define GRAPH_COST 1.5
#define GRAPH_BASE 500.0
#define GRAPH_PER_EF 20.0

/* Scans repeated because a relabel closed a row under them. Each needs a fresh relabel in the few microseconds
 * before emission; the bound only keeps a hostile writer from holding a reader for ever. */
#define EMISSION_ROUNDS 64

/* What one call works with; query q writes row q of the results. */
typedef struct search_call {
    const carag_index *index;
    const carag_predicate *predicate;
    carag_scratch scratch;
    size_t k;      /* columns of the results */
    size_t wanted; /* min(k, admissible): what an answer must reach */
    size_t most;   /* min(k, rows): what it may hold */
    size_t ef;     /* for the graph: at least wanted, at most the rows there are */
    uint64_t admissible;
    carag_plan plan; /* EXACT or GRAPH */
    carag_results *out;
} search_call;

static carag_plan cheaper_plan(const carag_index *index, uint64_t admissible, size_t ef)
{
    const double rows = index->rows;
    const double widened = (double)ef * rows / (double)admissible;
    const double beam = fmin(widened, (double)ef * CARAG_WIDEST_BEAM);
    const double graph = GRAPH_COST * fmin(GRAPH_BASE + GRAPH_PER_EF * beam, rows);
    return graph < (double)admissible ? CARAG_PLAN_GRAPH : CARAG_PLAN_EXACT;
}

/* Write the nearest results that are still admissible; returns how many, out_dropped says if any was not. */
static size_t emit(const search_call *call, size_t q, bool *out_dropped)
{
    carag_heap results = call->scratch.results;
    int64_t *keys = call->out->keys + q * call->k;
    float *similarities = call->out->similarities + q * call->k;
    size_t count = 0;
    carag_heap_sort(&results);
    *out_dropped = false;
    for (size_t i = 0; i < results.count && count < call->most; i++) {
        const carag_near near = results.items[i];
        if (!carag_is_open(call->index, call->predicate, near.node, memory_order_acquire)) {
            *out_dropped = true;
            continue;
        }
        keys[count] = call->index->at.keys[near.node];
        similarities[count++] = near.similarity;
    }
    return count;
}

static size_t run_scan(search_call *call, size_t q, carag_effort *effort)
{
    bool dropped = true;
    size_t count = 0;
    for (int round = 0; dropped && round < EMISSION_ROUNDS; round++) {
        carag_scan(call->index, &call->scratch.results, call->scratch.query, call->predicate, call->most, effort);
        count = emit(call, q, &dropped);
    }
    return count;
}

static void blank(const search_call *call, size_t q, size_t count)
{
    for (size_t i = count; i < call->k; i++) {
        call->out->keys[q * call->k + i] = -1;
        call->out->similarities[q * call->k + i] = -INFINITY;
    }
}

/* The query is in scratch.query. */
static void answer(search_call *call, size_t q)
{
    carag_effort effort = {0};
    carag_plan ran = call->plan;
    size_t count = 0;
    if (call->plan == CARAG_PLAN_GRAPH) {
        bool dropped;
        if (call->wanted < call->admissible &&
            carag_search_graph(call->index, &call->scratch, call->scratch.query, call->predicate, call->ef,
                               call->admissible, &effort))
            count = emit(call, q, &dropped);
        if (count < call->wanted)
            ran = CARAG_PLAN_EXACT;
    }
    if (call->wanted > 0 && ran == CARAG_PLAN_EXACT)
        count = run_scan(call, q, &effort);
    blank(call, q, count);
    call->out->counts[q] = (int64_t)count;
    call->out->distance_computations[q] = (int64_t)effort.distance_computations;
    call->out->hops[q] = (int64_t)effort.hops;
    call->out->ef[q] = (int64_t)effort.ef;
    call->out->plans[q] = (uint8_t)ran;
    call->out->fallbacks[q] = ran != call->plan;
}

static carag_status verify(const carag_index *index, const float *queries, size_t nq,
                           const carag_predicate *predicate, const carag_search_params *params,
                           carag_fault *out_fault)
{
    if (!carag_predicate_is_closed(predicate))
        return carag_fail(out_fault, CARAG_BAD_PREDICATE, 0, "every pair must test the five control bits");
    if (params->k < 1)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "k must be 1 or more");
    if (params->ef_search < 1 || params->ef_search > CARAG_MAX_EF)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "ef_search must be 1 to 1048576");
    if (params->plan != CARAG_PLAN_AUTO && params->plan != CARAG_PLAN_EXACT && params->plan != CARAG_PLAN_GRAPH)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "no such plan");
    for (size_t q = 0; q < nq; q++) {
        const carag_status status = carag_normalise(queries + q * index->params.dim, index->params.dim, NULL, q,
                                                    out_fault);
        if (status != CARAG_OK)
            return status;
    }
    return CARAG_OK;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

carag_status carag_index_search(carag_index *index, const float *queries, size_t nq,
                                const carag_predicate *predicate, const carag_search_params *params,
                                carag_results *results, carag_fault *out_fault)
{
    carag_status status = verify(index, queries, nq, predicate, params, out_fault);
    if (status != CARAG_OK)
        return status;
    pthread_rwlock_rdlock(&index->lock);
    search_call call = {.index = index, .predicate = predicate, .k = params->k, .out = results};
    call.admissible = carag_count_admissible(index, predicate);
    call.wanted = smaller(params->k, (size_t)call.admissible);
    call.most = smaller(params->k, index->rows);
    call.ef = smaller(call.wanted > params->ef_search ? call.wanted : params->ef_search, index->rows);
    call.plan = params->plan;
    if (call.wanted == 0)
        call.plan = CARAG_PLAN_EXACT;
    else if (call.plan == CARAG_PLAN_AUTO)
        call.plan = cheaper_plan(index, call.admissible, call.ef);

    const size_t beam = call.plan == CARAG_PLAN_GRAPH ? smaller(call.ef * CARAG_WIDEST_BEAM, index->rows) : 0;
    const size_t room = call.plan == CARAG_PLAN_GRAPH && call.ef > call.most ? call.ef : call.most;
    status = carag_scratch_init(&call.scratch, index, call.plan == CARAG_PLAN_GRAPH ? index->rows : 0, beam, room);
    if (status != CARAG_OK) {
        carag_fail(out_fault, status, 0, "");
        goto done;
    }
    results->admissible = call.admissible;
    results->rows = index->live;
    for (size_t q = 0; q < nq; q++) {
        carag_normalise(queries + q * index->params.dim, index->params.dim, call.scratch.query, q, NULL);
        answer(&call, q);
    }
    carag_scratch_destroy(&call.scratch);
done:
    pthread_rwlock_unlock(&index->lock);
    return status;
}

carag_status carag_index_count(carag_index *index, const carag_predicate *predicate, uint64_t *out_admissible,
                               carag_fault *out_fault)
{
    if (!carag_predicate_is_closed(predicate))
        return carag_fail(out_fault, CARAG_BAD_PREDICATE, 0, "every pair must test the five control bits");
    pthread_rwlock_rdlock(&index->lock);
    *out_admissible = carag_count_admissible(index, predicate);
    pthread_rwlock_unlock(&index->lock);
    return CARAG_OK;
}
