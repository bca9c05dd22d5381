/* search/call.c - answer the queries of a call: choose a plan, run it, emit.
 *
 * The classes are asked first, so the number of admissible rows is known exactly before anything is searched. None: the
 * answer is empty. Otherwise the plan asked for, or for CARAG_PLAN_AUTO the certified one where no more rows than
 * params->exact_limit are admissible, and the cheaper of exact and scan (search/plan.c) where more are: chosen once for
 * all queries, or by each where its near rows decide. Such a scan may end as a walk over the graph: that is decided a
 * query, when the nearest cells are scanned, and the walk begins with what they gave. A walk that is given up, asked for or
 * not, hands what it found back to the scan.
 *
 * Rules that hold for every plan
 *   all         a search that wants every admissible row is exact: no graph can touch fewer rows
 *   budget      a graph search that was asked for and has computed `admissible` distances goes on as a scan
 *   fill        a search that ends with fewer than min(k, admissible) rows becomes the exact one
 *   emission    a row's word is read again, with acquire order, as the row is written to the answer; a row closed
 *               meanwhile is dropped; a scan that dropped one becomes the exact search, and an exact search that did is
 *               run again, so that no row that was admissible all along is missed for it
 * So the count is always min(k, admissible), and nothing inadmissible at emission is ever returned. Under a relabel
 * that runs beside the search `admissible` may grow after it was counted; a scan therefore keeps min(k, rows) rows,
 * lest a row that has just opened push out one that was open all along.
 *
 * A wider predicate is asked of the same query when its first answer is written, and under the same rules. Its answer is
 * that of a search of its own; what the first search knows by then is not worked out again:
 *   exact       the rows of classes that the first did not look at, beside those that it found (search/exact.c); unless
 *               a relabel came between
 *   graph       what the first walk met (search/pool.c), where that looked for as many rows or more
 *   otherwise   the codes of the query, and the order of the cells
 */
#include "carag_internal.h"
#include "parallel.h"
#include "row/row.h"
#include "search/search.h"

#include <math.h>

/* Times that an exact search is repeated because a relabel closed a row under it. Each needs a fresh relabel in the few
 * microseconds before emission; the bound only keeps a hostile writer from blocking a reader. */
#define EMISSION_ROUNDS 64

/* Times the admissible share of all rows: the pass rate near the query below which a walk that was asked for is given up.
 * One that CARAG_PLAN_AUTO chose is not: the nearest cells have shown it to be cheap, and of those that this rule ended, on
 * two sets of bench/ann, every one would have found what it should, about three times sooner than the scan. */
#define MIN_RATE_FACTOR 0.5

/* What one search of a call works with; query q writes row q of the results. */
typedef struct search_call {
    carag_reader reader;
    carag_selection selection;
    const float *queries;
    const carag_search_params *params;
    size_t wanted; /* min(k, admissible): what an answer must reach */
    size_t limit;   /* min(k, rows): what it may hold */
    size_t ef;     /* for the graph: at least wanted, at most the rows there are */
    carag_plan plan; /* CARAG_PLAN_AUTO: each query chooses */
    bool may_walk; /* a scan may end as a walk over the graph */
    carag_why why;
    carag_scratch **scratches; /* one a worker */
    carag_results *out;
    uint64_t generation; /* of the index, before anything was asked */
    const struct search_call *after; /* the wider search, or NULL */
    const struct search_call *first; /* where this is the wider one, else NULL, as are the rest */
    const carag_wider *wider;
    const carag_selection *rest; /* classes that it admits and the first does not; NULL: not both are exact */
} search_call;

/* What became of a query. */
typedef struct outcome {
    carag_plan ran;
    carag_why why;
    size_t count;
    carag_effort effort;
} outcome;

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
        const uint32_t word = atomic_load_explicit(&call->reader.view->words[near.node], memory_order_acquire);
        const carag_terms terms = call->reader.view->terms[near.node];
        if (!carag_is_admissible(&call->selection.test, word, terms)) {
            *out_dropped = true;
            continue;
        }
        if (call->wider) {
            call->wider->words[q * call->params->k + count] = word;
            call->wider->refused[q * call->params->k + count] =
                !carag_is_admissible(&call->first->selection.test, word, terms);
        }
        keys[count] = call->reader.view->keys[near.node];
        similarities[count++] = near.similarity;
    }
    return count;
}

static bool is_exact(carag_plan plan)
{
    return plan == CARAG_PLAN_EXACT || plan == CARAG_PLAN_CERTIFIED;
}

static size_t run_exact(const search_call *call, carag_scratch *scratch, size_t q, carag_effort *effort)
{
    bool dropped = true;
    size_t count = 0;
    for (int round = 0; dropped && round < EMISSION_ROUNDS; round++) {
        carag_scan_exact(&call->reader, &call->selection, scratch, call->limit, effort);
        count = emit(call, scratch, q, &dropped);
    }
    return count;
}

/* A walk over the graph from where a scan stands; false when it was given up. */
static bool walk(const search_call *call, carag_scan *begun, uint64_t budget)
{
    const bool is_asked = call->plan == CARAG_PLAN_GRAPH;
    const bool may_fall_back = !call->params->no_fallback;
    const double share = (double)call->selection.admissible / (double)call->reader.rows;
    carag_limits limits = carag_limits_of(&call->reader.view->costs, may_fall_back ? budget : UINT64_MAX);
    limits.ef = call->ef;
    limits.is_sure = may_fall_back && !is_asked;
    limits.least_rate = may_fall_back && is_asked ? MIN_RATE_FACTOR * share : 0.0;
    if (call->params->ef_search) /* a width that is named is used in full */
        limits.slack = INFINITY;
    return carag_search_graph(begun, call->limit, &limits);
}

/* Scan the nearest cells, then walk over the graph or scan the others: a walk where it was asked for; or where `may_walk`
 * says that it may be, the others are not scanned by words, and what the nearest have shown makes it likely to be cheaper. */
static void scan_and_walk(const search_call *call, carag_scratch *scratch, outcome *done)
{
    const carag_cells *cells = call->reader.view->cells;
    const bool is_asked = call->plan == CARAG_PLAN_GRAPH;
    carag_scan scan = carag_scan_begin(&call->reader, &call->selection, scratch, call->limit, &done->effort);
    const bool goes_on = is_asked || (call->may_walk && !carag_scan_goes_by_words(&scan));
    const bool is_done = cells && goes_on && carag_scan_cells(&scan, carag_probed(cells, call->ef));
    const uint64_t budget = is_asked               ? call->selection.admissible
                            : goes_on && !is_done ? carag_plan_budget(&scan, call->ef)
                                                  : 0;
    done->ran = budget > 0 && walk(call, &scan, budget) ? CARAG_PLAN_GRAPH : CARAG_PLAN_SCAN;
    if (done->ran == CARAG_PLAN_GRAPH)
        return;
    if (budget > 0)
        done->why = CARAG_WHY_BUDGET;
    carag_scan_finish(&scan, call->limit);
}

/* By scan or graph; what becomes of it. */
static void run_approximate(const search_call *call, carag_scratch *scratch, size_t q, outcome *done)
{
    const bool may_fall_back = !call->params->no_fallback;
    bool dropped;
    if (call->plan == CARAG_PLAN_GRAPH && may_fall_back && call->wanted == call->selection.admissible) {
        done->why = CARAG_WHY_ALL;
        done->ran = CARAG_PLAN_EXACT;
        return;
    }
    scan_and_walk(call, scratch, done);
    done->count = emit(call, scratch, q, &dropped);
    const bool is_scan = done->ran == CARAG_PLAN_SCAN;
    if ((done->count < call->wanted && (may_fall_back || is_scan)) || (dropped && is_scan)) {
        done->why = CARAG_WHY_FILL;
        done->ran = CARAG_PLAN_EXACT;
    }
}

/* By the plan of the call, and what becomes of it; adds to the effort. */
static void search_query(const search_call *call, carag_scratch *scratch, size_t q, outcome *done)
{
    done->ran = call->plan;
    done->why = call->why;
    done->count = 0;
    if (call->why == CARAG_WHY_NOTHING)
        return;
    if (done->ran == CARAG_PLAN_AUTO) {
        done->ran = carag_plan_of_rate(&call->reader, &call->selection,
                                       carag_scan_rate(&call->reader, &call->selection, scratch));
        done->why = CARAG_WHY_NEAR;
    }
    if (!is_exact(done->ran))
        run_approximate(call, scratch, q, done);
    if (is_exact(done->ran))
        done->count = run_exact(call, scratch, q, &done->effort);
}

static void write_outcome(const search_call *call, size_t q, const outcome *done)
{
    const size_t k = call->params->k;
    for (size_t i = done->count; i < k; i++) {
        call->out->keys[q * k + i] = -1;
        call->out->similarities[q * k + i] = -INFINITY;
    }
    for (size_t i = done->count; call->wider && i < k; i++)
        call->wider->words[q * k + i] = call->wider->refused[q * k + i] = 0;
    call->out->counts[q] = (int64_t)done->count;
    call->out->estimates[q] = (int64_t)done->effort.estimates;
    call->out->distance_computations[q] = (int64_t)done->effort.distance_computations;
    call->out->hops[q] = (int64_t)done->effort.hops;
    call->out->ef[q] = (int64_t)done->effort.ef;
    call->out->plans[q] = (uint8_t)done->ran;
    call->out->whys[q] = (uint8_t)done->why;
}

/* ---------------------------------------------------------------- a wider predicate */

/* Whether words and classes are what they were before the call asked about them. */
static bool is_unchanged(const search_call *call)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&call->reader.index->generation, memory_order_relaxed) == call->generation;
}

/* Answer from the results of this query's first search; false if they do not suffice. The cost is counted. */
static bool take_over(const search_call *call, carag_scratch *scratch, size_t q, const outcome *first, outcome *done)
{
    const search_call *before = call->first;
    const bool is_whole = before->selection.admissible <= before->limit; /* the first search wanted all */
    bool dropped = true;
    if (before->why == CARAG_WHY_NOTHING || call->why == CARAG_WHY_NOTHING || call->limit > before->limit)
        return false;
    done->ran = call->plan;
    done->why = call->why;
    if (call->rest && is_exact(first->ran)) {
        if (carag_scan_rest(&call->reader, call->rest, &before->selection.test, !is_whole, scratch, call->limit,
                            &done->effort) &&
            is_unchanged(call))
            done->count = emit(call, scratch, q, &dropped);
    } else if (!is_exact(call->plan) && first->ran == CARAG_PLAN_GRAPH &&
               call->wanted < call->selection.admissible) {
        if (carag_take_from_pool(&call->reader, &call->selection, scratch, call->limit, &done->effort))
            done->count = emit(call, scratch, q, &dropped);
    }
    return !dropped && done->count >= call->wanted;
}

static void answer(void *context, size_t q, uint32_t worker)
{
    const search_call *call = context;
    const search_call *after = call->after;
    carag_scratch *scratch = call->scratches[worker];
    const carag_index *index = call->reader.index;
    outcome done = {.effort = {0}};
    if (call->why != CARAG_WHY_NOTHING || (after && after->why != CARAG_WHY_NOTHING)) {
        carag_normalise(call->queries + q * index->params.dim, index->params.dim, scratch->query.unit, q, NULL);
        carag_query_renew(&scratch->query);
    }
    search_query(call, scratch, q, &done);
    write_outcome(call, q, &done);
    if (after) {
        outcome more = {.effort = {0}};
        if (!take_over(after, scratch, q, &done, &more))
            search_query(after, scratch, q, &more);
        write_outcome(after, q, &more);
    }
}

/* ---------------------------------------------------------------- verifying */

static carag_status verify_wanted(const carag_predicate *predicate, size_t k, carag_fault *out_fault)
{
    if (!carag_predicate_is_closed(predicate))
        return carag_fail(out_fault, CARAG_BAD_PREDICATE, 0, CARAG_CLOSED_PREDICATE);
    if (k < 1)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "k must be 1 or more");
    return CARAG_OK;
}

static carag_status verify(const carag_index *index, const float *queries, size_t nq,
                           const carag_predicate *predicate, const carag_search_params *params,
                           const carag_wider *wider, carag_fault *out_fault)
{
    const carag_status first = verify_wanted(predicate, params->k, out_fault);
    const carag_status second = first || !wider ? first : verify_wanted(wider->predicate, wider->k, out_fault);
    if (second != CARAG_OK)
        return second;
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

/* ---------------------------------------------------------------- a call */

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
        call->plan = carag_plan_choose(&call->reader, selection, call->limit, call->out->nanoseconds);
        call->may_walk = call->plan != CARAG_PLAN_EXACT && view->cells && view->costs.graph_distance > 0.0 &&
                         selection->admissible * CARAG_MAX_WIDENING >= call->reader.rows;
        call->why = CARAG_WHY_CHEAPEST;
    } else if (call->plan == CARAG_PLAN_SCAN &&
               carag_is_direct(selection->admissible, carag_sketch_room(call->limit))) {
        call->plan = CARAG_PLAN_EXACT; /* an estimate would keep them all */
        call->why = CARAG_WHY_ALL;
    }
}

/* Ask the classes, and decide. Requires room for `classes` numbers in call->selection.classes. */
static void begin(search_call *call, const carag_predicate *predicate, uint32_t *classes, uint32_t room)
{
    carag_results *results = call->out;
    carag_test_init(&call->selection.test, predicate);
    call->selection.classes = classes;
    call->selection.room = room;
    carag_select_again(&call->reader, &call->selection);
    for (int plan = 0; plan < CARAG_PLANS; plan++)
        results->nanoseconds[plan] = 0.0;
    decide(call);
    results->admissible = call->selection.admissible;
    results->classes = call->selection.count;
    results->materialised = 0;
    results->rows = atomic_load_explicit(&call->reader.index->live, memory_order_relaxed);
}

/* The classes that the wider search admits and the first does not. */
static void select_rest(const search_call *wider, uint32_t *classes, carag_selection *rest)
{
    const carag_selection *first = &wider->first->selection;
    const carag_selection *all = &wider->selection;
    const carag_catalog *catalog = wider->reader.view->catalog;
    uint32_t at = 0;
    *rest = (carag_selection){.test = all->test, .classes = classes, .room = all->room, .is_exact = true};
    for (uint32_t i = 0; i < all->count; i++) {
        const uint32_t class = all->classes[i];
        while (at < first->count && first->classes[at] < class)
            at++;
        if (at < first->count && first->classes[at] == class)
            continue;
        rest->classes[rest->count++] = class;
        rest->admissible += atomic_load_explicit(&catalog->live[class], memory_order_relaxed);
    }
}

static void answer_queries(search_call *call, size_t nq, uint32_t threads)
{
    if (threads == 1)
        for (size_t q = 0; q < nq; q++)
            answer(call, q, 0);
    else
        carag_parallel(threads, nq, answer, call);
}

/* Requires room for three lists of classes. */
static void answer_both(search_call *call, const carag_wider *wider, size_t nq, uint32_t threads, uint32_t classes)
{
    uint32_t *lists = call->scratches[0]->classes;
    carag_search_params params = *call->params;
    params.k = wider->k;
    search_call after = {.reader = call->reader, .queries = call->queries, .params = &params, .out = wider->results,
                         .scratches = call->scratches, .generation = call->generation, .first = call, .wider = wider};
    carag_selection rest;
    begin(&after, wider->predicate, lists + classes, classes);
    if (is_exact(after.plan) && call->selection.is_exact && after.selection.is_exact) {
        select_rest(&after, lists + 2 * (size_t)classes, &rest);
        after.rest = &rest;
    }
    call->after = &after;
    answer_queries(call, nq, threads);
}

static carag_status take_scratches(search_call *call, const carag_room *room, uint32_t threads)
{
    for (uint32_t worker = 0; worker < threads; worker++) {
        call->scratches[worker] = carag_scratch_take(call->reader.index, call->reader.view, room);
        if (!call->scratches[worker])
            return CARAG_NO_MEMORY;
    }
    return CARAG_OK;
}

carag_status carag_index_search_both(carag_index *index, const float *queries, size_t nq,
                                     const carag_predicate *predicate, const carag_search_params *params,
                                     carag_results *results, const carag_wider *wider, carag_fault *out_fault)
{
    carag_status status = verify(index, queries, nq, predicate, params, wider, out_fault);
    if (status != CARAG_OK)
        return status;
    const uint32_t threads = nq < params->threads ? (nq ? (uint32_t)nq : 1) : params->threads;
    carag_scratch *alone[1] = {NULL};
    search_call call = {.reader = carag_read_begin(index), .queries = queries, .params = params, .out = results,
                        .generation = atomic_load_explicit(&index->generation, memory_order_acquire)};
    const carag_view *view = call.reader.view;
    const size_t k = wider && wider->k > params->k ? wider->k : params->k;
    const size_t limit = smaller(k, call.reader.rows);
    const size_t ef = smaller(k > params->ef_search ? k : params->ef_search, call.reader.rows);
    const size_t widest = ef > view->costs.ef ? ef : view->costs.ef;
    const bool may_walk = params->plan == CARAG_PLAN_AUTO || params->plan == CARAG_PLAN_GRAPH;
    const uint32_t classes = atomic_load_explicit(&view->catalog->count, memory_order_acquire) + CARAG_SPARE_CLASSES;
    const carag_room room = {
        .pool = may_walk ? smaller(widest * CARAG_MAX_WIDENING, view->capacity) : 0,
        .found = carag_sketch_room(limit),
        .classes = (wider ? 3 : 1) * (size_t)classes, /* one list, or both and the rest */
        .cells = view->cells ? view->cells->count : 0,
    };
    call.scratches = threads == 1 ? alone : carag_allocate_zeroed(threads, sizeof *call.scratches);
    if (!call.scratches || take_scratches(&call, &room, threads) != CARAG_OK) {
        status = carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
        goto done;
    }
    begin(&call, predicate, call.scratches[0]->classes, classes);
    if (wider)
        answer_both(&call, wider, nq, threads, classes);
    else
        answer_queries(&call, nq, threads);
done:
    for (uint32_t worker = 0; call.scratches && worker < threads; worker++)
        carag_scratch_give(index, call.scratches[worker]);
    if (call.scratches != alone)
        carag_release(call.scratches);
    carag_read_end(&call.reader);
    return status;
}

carag_status carag_index_search(carag_index *index, const float *queries, size_t nq,
                                const carag_predicate *predicate, const carag_search_params *params,
                                carag_results *results, carag_fault *out_fault)
{
    return carag_index_search_both(index, queries, nq, predicate, params, results, NULL, out_fault);
}

carag_status carag_index_count(carag_index *index, const carag_predicate *predicate, uint64_t *out_admissible,
                               carag_fault *out_fault)
{
    if (!carag_predicate_is_closed(predicate))
        return carag_fail(out_fault, CARAG_BAD_PREDICATE, 0, CARAG_CLOSED_PREDICATE);
    const carag_reader reader = carag_read_begin(index);
    carag_selection selection = {.classes = NULL};
    carag_test_init(&selection.test, predicate);
    carag_select_again(&reader, &selection);
    *out_admissible = count_admissible(&reader, &selection);
    carag_read_end(&reader);
    return CARAG_OK;
}
