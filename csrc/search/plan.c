/* search/plan.c - choose the cheapest plan by a cost model, in nanoseconds, of parts that were measured on this index
 * and this machine (cost/measure.c).
 *
 * What a search will do is known exactly before it begins (the admissible rows) or follows from it (how many survive a
 * sketch, how far the pool widens), so
 *
 *      exact   admissible codes, then RERANKED_FACTOR times those wanted by vector; or all by vector when they are few
 *      scan    the cells ranked, the words of the part of the rows that sampled queries had to look at, of those the packs
 *              that hold an admissible row, the survivors by code, those wanted and some more by vector
 *      graph   the distances measured for few neighbours, times a power of 1 / p where a fraction p of the rows is
 *              admissible, so that many neighbours cost what was measured for many
 *
 * and the smallest wins; ties go to the exact plan, and the graph must be cheaper by far (GRAPH_MARGIN). The graph is
 * not considered when the pool would have to widen more than it may: its recall would fall short, and a scan of few
 * rows is cheap.
 */
#include "carag_internal.h"
#include "row/row.h"
#include "search/search.h"

#include <math.h>

#define GRAPH_MARGIN 0.75   /* of a scan's cost: the graph must cost less, since its recall depends on the query */
#define RERANKED_FACTOR 2.5 /* vectors an exact search scores per row wanted, as seen on every set of bench/ann */
#define FILTER_FACTOR 1.15  /* cost of a filtered graph search per unfiltered one of the same width */
#define RUNS 6.0            /* of rows of one class in a pack, about: each admissible or not by itself */

static double exact_cost(const carag_costs *costs, double admissible, double limit)
{
    const double direct = admissible * costs->vector;
    const double coarse = admissible * costs->exact_row + RERANKED_FACTOR * limit * costs->vector;
    return carag_is_direct((uint64_t)admissible, (size_t)limit) ? direct : coarse;
}

/* Nanoseconds of a scan. With a fraction p of the rows admissible, the k-th nearest admissible row is about as far away as
 * the (k / p)-th nearest of all rows: so it looks at what a scan for k / p neighbours looks at. */
double carag_plan_scan(const carag_reader *reader, const carag_selection *selection, size_t wanted)
{
    const carag_view *view = reader->view;
    const carag_costs *costs = &view->costs;
    const double limit = (double)wanted;
    const double rows = reader->rows;
    const double admissible = (double)selection->admissible;
    const double room = (double)carag_sketch_room(wanted);
    const double exponent = log(fmax(limit * rows / admissible / CARAG_SAMPLE_K, 1.0)) / log(CARAG_MANY_RATIO);
    const double few = costs->reached[0];
    const double reached =
        carag_scan_stops(view, selection) ? fmin(few + exponent * ((double)costs->reached[1] - few), rows) : rows;
    const double opened = 1.0 - pow(1.0 - fmin((double)selection->labelled / rows, 1.0), RUNS);
    const double survivors = fmin(admissible, costs->scored * room / (double)carag_sketch_room(CARAG_SAMPLE_K));
    return costs->scan_factor *
           (costs->sketch + (view->cells ? view->cells->count : 0) * costs->code_in_order + reached * costs->word +
            reached / CARAG_PACK * opened * costs->pack + survivors * costs->code + room * costs->vector);
}

static double graph_cost(const carag_costs *costs, double admissible, double rows, double limit, double wider)
{
    const double filter = admissible < rows ? FILTER_FACTOR : 1.0;
    const double growth = log((double)costs->distances[1] / costs->distances[0]) / log(CARAG_MANY_RATIO);
    const double neighbours = fmax(limit * rows / admissible / CARAG_SAMPLE_K, 1.0);
    return filter * wider * costs->graph_distance * costs->distances[0] * pow(neighbours, growth);
}

/* The limits of a graph search by default. */
carag_limits carag_limits_of(const carag_costs *costs, uint64_t budget)
{
    return (carag_limits){.ef = costs->ef, .slack = costs->slack > 0.0F ? costs->slack : INFINITY, .budget = budget};
}

carag_plan carag_plan_choose(const carag_reader *reader, const carag_selection *selection, size_t limit, size_t ef,
                             double out_nanoseconds[CARAG_PLANS])
{
    const carag_view *view = reader->view;
    const carag_costs *costs = &view->costs;
    const uint32_t rows = reader->rows;
    const uint64_t admissible = selection->admissible;
    const double wanted = (double)admissible;
    carag_plan best = CARAG_PLAN_EXACT;
    out_nanoseconds[CARAG_PLAN_EXACT] = exact_cost(costs, wanted, (double)limit);
    if (carag_is_direct(admissible, carag_sketch_room(limit)))
        return best;
    out_nanoseconds[CARAG_PLAN_SCAN] = carag_plan_scan(reader, selection, limit);
    if (out_nanoseconds[CARAG_PLAN_SCAN] < out_nanoseconds[best])
        best = CARAG_PLAN_SCAN;
    if (admissible * CARAG_MAX_WIDENING >= rows && costs->graph_distance > 0.0) {
        out_nanoseconds[CARAG_PLAN_GRAPH] = graph_cost(costs, wanted, rows, (double)limit, (double)ef / costs->ef);
        if (out_nanoseconds[CARAG_PLAN_GRAPH] < GRAPH_MARGIN * out_nanoseconds[best])
            best = CARAG_PLAN_GRAPH;
    }
    return best;
}

/* Distances after which a graph search has cost what the better scan would have. */
uint64_t carag_plan_budget(const carag_view *view, const double nanoseconds[CARAG_PLANS])
{
    const double scan = fmin(nanoseconds[CARAG_PLAN_SCAN], nanoseconds[CARAG_PLAN_EXACT]);
    return (uint64_t)(scan / view->costs.graph_distance) + 1;
}
