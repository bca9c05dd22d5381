/* search/call.c - answer the queries of a call: choose a plan, run it, emit.
 *
 * The classes are asked first, so the number of admissible rows is known exactly before anything is searched. None: the
 * answer is empty. Otherwise the plan asked for, or for CARAG_PLAN_AUTO the certified one where no more rows than
 * params->exact_limit are admissible, and the cheapest (search/plan.c) where more are.
 *
 * Rules that hold for every plan
 *   all         a search that wants every admissible row is exact: no graph can touch fewer rows
 *   budget      a graph search that has computed `admissible` distances becomes the exact one; where the graph was
 *               chosen as the cheapest, what it may spend is the cost of the scan, and that is what it becomes
 *   fill        a search that ends with fewer than min(k, admissible) rows becomes the exact one
 *   emission    a row's word is read again, with acquire order, as the row is written to the answer; a row closed
 *               meanwhile is dropped, and a scan that dropped one is run again, so that no row that was
 *               admissible all along is missed for it
 * So the count is always min(k, admissible), and nothing inadmissible at emission is ever returned. Under a relabel
 * that runs beside the search `admissible` may grow after it was counted; a scan therefore keeps min(k, rows) rows,
 * lest a row that has just opened push out one that was open all along.
 */
#include "carag_internal.h"
#include "parallel.h"
#include "row/row.h"
#include "search/search.h"

#include <math.h>

/* Times that a scan is repeated because a relabel closed a row under it. Each needs a fresh relabel in the few
 * microseconds before emission; the bound only keeps a hostile writer from holding a reader for ever. */
#define EMISSION_ROUNDS 64

/* Times the admissible share of all rows: the pass rate near the query below which a graph search gives up. */
#define MIN_RATE_FACTOR 0.5

/* What one call works with; query q writes row q of the results. */
typedef struct search_call {
    carag_reader reader;
    carag_selection selection;
    const float *queries;
    const carag_search_params *params;
    size_t wanted; /* min(k, admissible): what an answer must reach */
    size_t limit;   /* min(k, rows): what it may hold */
    size_t ef;     /* for the graph: at least wanted, at most the rows there are */
    carag_plan plan;
    carag_why why;
    carag_scratch **scratches; /* one a worker */
    carag_results *out;
} search_call;

/* Write the nearest results that are still admissible; returns how many, out_dropped says if any was not. */
static size_t emit(const search_call *call, carag_scratch *scratch, size_t q, bool *out_dropped)
{
    carag_heap *found = &scratch->found;
    int64_t *keys = call->out->keys + q * call->params->k;
    float *similarities = call->out->similarities + q * call->params->k;
    size_t count = 0;
    carag_heap_sort(found);
    *out_dropped = false;
    for (size_t i = 0; i < found->count && count < call->limit; i++) {
        const carag_near near = found->items[i];
        if (!carag_is_open(&call->reader, &call->selection.test, near.node, memory_order_acquire)) {
            *out_dropped = true;
            continue;
        }
        keys[count] = call->reader.view->keys[near.node];
        similarities[count++] = near.similarity;
    }
    return count;
}

static size_t run_scan(const search_call *call, carag_scratch *scratch, size_t q, carag_plan plan, carag_effort *effort)
{
    bool dropped = true;
    size_t count = 0;
    for (int round = 0; dropped && round < EMISSION_ROUNDS; round++) {
        if (plan == CARAG_PLAN_SCAN)
            carag_scan_sketch(&call->reader, &call->selection, scratch, call->limit, effort);
        else
            carag_scan_exact(&call->reader, &call->selection, scratch, call->limit, effort);
        count = emit(call, scratch, q, &dropped);
    }
    return count;
}

static size_t run_graph(const search_call *call, carag_scratch *scratch, size_t q, carag_effort *effort,
                        carag_why *out_why)
{
    const bool may_fall_back = !call->params->no_fallback;
    if (call->wanted == call->selection.admissible && may_fall_back) {
        *out_why = CARAG_WHY_ALL;
        return 0;
    }
    const bool is_chosen = call->why == CARAG_WHY_CHEAPEST;
    const uint64_t cost = is_chosen ? carag_plan_budget(call->reader.view, call->out->nanoseconds)
                                    : call->selection.admissible;
    const double share = (double)call->selection.admissible / (double)call->reader.rows;
    carag_limits limits = carag_limits_of(&call->reader.view->costs, may_fall_back ? cost : UINT64_MAX);
    limits.ef = call->ef;
    limits.least_rate = may_fall_back ? MIN_RATE_FACTOR * share : 0.0;
    if (call->params->ef_search) /* who names a width wants it spent */
        limits.slack = INFINITY;
    if (!carag_search_graph(&call->reader, &call->selection, scratch, call->limit, &limits, effort)) {
        *out_why = CARAG_WHY_BUDGET;
        return 0;
    }
    bool dropped;
    const size_t count = emit(call, scratch, q, &dropped);
    if (count < call->wanted && may_fall_back)
        *out_why = CARAG_WHY_FILL;
    return count;
}

static void fill_empty(const search_call *call, size_t q, size_t count)
{
    for (size_t i = count; i < call->params->k; i++) {
        call->out->keys[q * call->params->k + i] = -1;
        call->out->similarities[q * call->params->k + i] = -INFINITY;
    }
}

static void answer(void *context, size_t q, uint32_t worker)
{
    const search_call *call = context;
    carag_scratch *scratch = call->scratches[worker];
    const carag_index *index = call->reader.index;
    carag_effort effort = {0};
    carag_plan ran = call->plan;
    carag_why why = call->why;
    size_t count = 0;
    if (why != CARAG_WHY_NOTHING) {
        carag_normalise(call->queries + q * index->params.dim, index->params.dim, scratch->query.unit, q, NULL);
        carag_query_encode(index, &call->reader.view->codes, &scratch->query);
        if (ran == CARAG_PLAN_GRAPH) {
            count = run_graph(call, scratch, q, &effort, &why);
            if (why != call->why)
                ran = why == CARAG_WHY_BUDGET && call->why == CARAG_WHY_CHEAPEST ? CARAG_PLAN_SCAN : CARAG_PLAN_EXACT;
        }
        if (ran == CARAG_PLAN_SCAN) {
            count = run_scan(call, scratch, q, ran, &effort);
            if (count < call->wanted) {
                why = CARAG_WHY_FILL;
                ran = CARAG_PLAN_EXACT;
            }
        }
        if (ran == CARAG_PLAN_EXACT || ran == CARAG_PLAN_CERTIFIED)
            count = run_scan(call, scratch, q, ran, &effort);
    }
    fill_empty(call, q, count);
    call->out->counts[q] = (int64_t)count;
    call->out->estimates[q] = (int64_t)effort.estimates;
    call->out->distance_computations[q] = (int64_t)effort.distance_computations;
    call->out->hops[q] = (int64_t)effort.hops;
    call->out->ef[q] = (int64_t)effort.ef;
    call->out->plans[q] = (uint8_t)ran;
    call->out->whys[q] = (uint8_t)why;
}

/* ---------------------------------------------------------------- verifying */

static carag_status verify(const carag_index *index, const float *queries, size_t nq,
                           const carag_predicate *predicate, const carag_search_params *params,
                           carag_fault *out_fault)
{
    if (!carag_predicate_is_closed(predicate))
        return carag_fail(out_fault, CARAG_BAD_PREDICATE, 0, CARAG_CLOSED_PREDICATE);
    if (params->k < 1)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "k must be 1 or more");
    if (params->ef_search > CARAG_MAX_EF)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "ef_search must be 0 to 1048576");
    if ((unsigned)params->plan >= CARAG_PLANS)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "no such plan");
    if (params->threads < 1 || params->threads > CARAG_MAX_THREADS)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "threads must be 1 to 1024");
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

/* By classes; or row by row, where relabels ran all the while: a word changes at once, so no row is missed on its way
 * from one admissible class to another. */
static uint64_t count_admissible(const carag_reader *reader, const carag_selection *selection)
{
    if (selection->is_exact)
        return selection->admissible;
    uint64_t count = 0;
    for (uint32_t row = 0; row < reader->rows; row++)
        count += carag_is_open(reader, &selection->test, row, memory_order_relaxed);
    return count;
}

/* The plan of the call, and why. */
static void decide(search_call *call)
{
    const carag_selection *selection = &call->selection;
    const carag_view *view = call->reader.view;
    const size_t asked = call->params->ef_search ? call->params->ef_search : view->costs.ef;
    call->wanted = selection->is_exact ? smaller(call->params->k, (size_t)selection->admissible) : 0;
    call->limit = smaller(call->params->k, call->reader.rows);
    call->ef = smaller(call->wanted > asked ? call->wanted : asked, call->reader.rows);
    call->plan = call->params->plan;
    call->why = CARAG_WHY_ASKED;
    if (call->plan == CARAG_PLAN_AUTO && call->params->exact_limit > 0 &&
        count_admissible(&call->reader, selection) <= call->params->exact_limit)
        call->plan = CARAG_PLAN_CERTIFIED;
    if (selection->is_exact && selection->admissible == 0) {
        call->why = CARAG_WHY_NOTHING;
        call->plan = call->plan == CARAG_PLAN_CERTIFIED ? CARAG_PLAN_CERTIFIED : CARAG_PLAN_EXACT;
    } else if (!selection->is_exact && call->plan != CARAG_PLAN_CERTIFIED) {
        call->plan = CARAG_PLAN_EXACT; /* how much there is to find is not known: nothing but a full look will do */
    } else if (call->plan == CARAG_PLAN_AUTO) {
        call->plan = carag_plan_choose(&call->reader, selection, call->limit, call->ef,
                                       call->out->nanoseconds);
        call->why = CARAG_WHY_CHEAPEST;
    } else if (call->plan == CARAG_PLAN_SCAN &&
               carag_is_direct(selection->admissible, carag_sketch_room(call->limit))) {
        call->plan = CARAG_PLAN_EXACT; /* an estimate would keep them all */
        call->why = CARAG_WHY_ALL;
    }
}

static carag_status take_scratches(search_call *call, const carag_room *room, uint32_t threads)
{
    for (uint32_t worker = 1; worker < threads; worker++) {
        call->scratches[worker] = carag_scratch_take(call->reader.index, call->reader.view, room);
        if (!call->scratches[worker])
            return CARAG_NO_MEMORY;
    }
    return CARAG_OK;
}

carag_status carag_index_search(carag_index *index, const float *queries, size_t nq,
                                const carag_predicate *predicate, const carag_search_params *params,
                                carag_results *results, carag_fault *out_fault)
{
    carag_status status = verify(index, queries, nq, predicate, params, out_fault);
    if (status != CARAG_OK)
        return status;
    const uint32_t threads = nq < params->threads ? (nq ? (uint32_t)nq : 1) : params->threads;
    carag_scratch *alone[1] = {NULL};
    search_call call = {.reader = carag_read_begin(index), .queries = queries, .params = params, .out = results};
    const carag_view *view = call.reader.view;
    const size_t limit = smaller(params->k, call.reader.rows);
    const size_t ef = smaller(params->k > params->ef_search ? params->k : params->ef_search, call.reader.rows);
    const size_t widest = ef > view->costs.ef ? ef : view->costs.ef;
    const bool may_walk = params->plan == CARAG_PLAN_AUTO || params->plan == CARAG_PLAN_GRAPH;
    const carag_room room = {
        .pool = may_walk ? smaller(widest * CARAG_MAX_WIDENING, view->capacity) : 0,
        .found = carag_sketch_room(limit),
        .classes = atomic_load_explicit(&view->catalog->count, memory_order_acquire) + CARAG_SPARE_CLASSES,
        .cells = view->cells ? view->cells->count : 0,
    };
    call.scratches = threads == 1 ? alone : carag_allocate_zeroed(threads, sizeof *call.scratches);
    if (call.scratches)
        call.scratches[0] = carag_scratch_take(index, view, &room);
    if (!call.scratches || !call.scratches[0] || take_scratches(&call, &room, threads) != CARAG_OK) {
        status = carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
        goto done;
    }
    carag_test_init(&call.selection.test, predicate);
    call.selection.classes = call.scratches[0]->classes;
    call.selection.room = call.scratches[0]->room.classes;
    carag_select(&call.reader, &call.selection);
    for (int plan = 0; plan < CARAG_PLANS; plan++)
        results->nanoseconds[plan] = 0.0;
    decide(&call);
    results->admissible = call.selection.admissible;
    results->classes = call.selection.count;
    results->rows = atomic_load_explicit(&index->live, memory_order_relaxed);
    if (threads == 1)
        for (size_t q = 0; q < nq; q++)
            answer(&call, q, 0);
    else
        carag_parallel(threads, nq, answer, &call);
done:
    for (uint32_t worker = 0; call.scratches && worker < threads; worker++)
        carag_scratch_give(index, call.scratches[worker]);
    if (call.scratches != alone)
        carag_release(call.scratches);
    carag_read_end(&call.reader);
    return status;
}

carag_status carag_index_count(carag_index *index, const carag_predicate *predicate, uint64_t *out_admissible,
                               carag_fault *out_fault)
{
    if (!carag_predicate_is_closed(predicate))
        return carag_fail(out_fault, CARAG_BAD_PREDICATE, 0, CARAG_CLOSED_PREDICATE);
    const carag_reader reader = carag_read_begin(index);
    carag_selection selection = {.classes = NULL};
    carag_test_init(&selection.test, predicate);
    carag_select(&reader, &selection);
    *out_admissible = count_admissible(&reader, &selection);
    carag_read_end(&reader);
    return CARAG_OK;
}
