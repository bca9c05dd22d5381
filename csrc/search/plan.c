/* search/plan.c - choose the cheapest plan by a cost model, in nanoseconds, of parts that were measured on this index
 * and this machine (cost/measure.c).
 *
 *      exact   admissible codes, then those wanted by vector, and a few more; or all by vector when they are few
 *      scan    the cells ranked, the words of the part of the rows that sampled queries had to look at, of those the packs
 *              that hold an admissible row, or instead of both the packs of the words that pass; the survivors by code,
 *              those wanted and some more by vector
 *
 * The exact plan costs what the number of admissible rows says, which is known. A scan costs less the nearer to the query
 * they are. So for all queries of a call it is a scan where a usual one takes less than half of that, or one that goes to
 * the last cell takes less; and the exact plan where that costs little more than to find out. Else each query chooses, by
 * the words of the rows nearest to it (carag_plan_of_rate).
 *
 * Whether a scan goes on as a walk over the graph is decided once a query, too, when its nearest cells are done, and their
 * floor, their pass rate and the rows still within reach are known (carag_plan_budget). The walk is not considered when the
 * pool would have to widen more than it may: its recall would fall short, and a scan of few rows is cheap; nor where the
 * rest is scanned by words, which the first few cells tell: a walk through rows of which one in five passes seldom wins,
 * and more cells for it to begin with are read in vain.
 */
#include "carag_internal.h"
#include "row/row.h"
#include "search/search.h"

#include <math.h>

#define FEW_SHARE 12.0 /* where less than 1/12 of the rows are admissible, a scan stops only if more of the near ones are */
#define SURE_FACTOR 2.0 /* by which a usual scan must be cheaper than the exact plan to be chosen for all queries */
#define PROBE_FACTOR 8.0 /* times what ranking cells costs: the least that the exact plan must, for near rows to be asked */
#define NEAR_FACTOR 1.5 /* times the admissible share of all rows: of near ones, what makes a scan the cheaper plan */
#define POOLS 2.0 /* widths of the pool: rows that came through beyond which a walk would spend it, and miss some */
#define WORD_FACTOR 2.0 /* what a row costs in a scan by words, in rows opened by cells: those end as the floor rises */
#define WORD_SURVIVORS 3.0 /* times as many rows come through in it, which go by a floor that few cells gave */
#define RUNS 6.0 /* of rows of one class in a pack, about: each admissible or not by itself */

static double exact_cost(const carag_costs *costs, double admissible, double limit)
{
    const double direct = admissible * costs->vector;
    const double coarse = admissible * costs->exact_row + limit * costs->vector;
    return carag_is_direct((uint64_t)admissible, (size_t)limit) ? direct : coarse;
}

/* The part of the packs that hold an admissible row. */
static double opened_packs(const carag_reader *reader, const carag_selection *selection)
{
    const uint64_t opening = carag_may_mark(reader, selection) ? selection->admissible : selection->labelled;
    return 1.0 - pow(1.0 - fmin((double)opening / (double)reader->rows, 1.0), RUNS);
}

/* Nanoseconds to read a number of rows by cells. */
static double cells_cost(const carag_reader *reader, const carag_selection *selection, double reached)
{
    const carag_costs *costs = &reader->view->costs;
    return reached * (costs->word + opened_packs(reader, selection) * costs->pack / CARAG_PACK);
}

/* Whether a scan may stop before the last cell, where so large a part of the rows near the query is admissible. Decided by
 * counts alone, so that a scan is the same on every machine. */
bool carag_plan_stops(const carag_reader *reader, const carag_selection *selection, double rate)
{
    return (double)selection->admissible * FEW_SHARE >= reader->rows || rate * FEW_SHARE >= 1.0;
}

/* Nanoseconds to read all rows by words; infinite without a copy in that order. */
static double words_cost(const carag_reader *reader, const carag_selection *selection)
{
    const double pack = reader->view->costs.pack;
    return carag_has_copy(reader, selection) ? WORD_FACTOR * (double)carag_copied_rows(selection) * pack / CARAG_PACK
                                             : INFINITY;
}

/* Nanoseconds of a scan that reads a number of rows. */
static double scan_cost(const carag_reader *reader, const carag_selection *selection, size_t wanted, double reached)
{
    const carag_costs *costs = &reader->view->costs;
    const double admissible = (double)selection->admissible;
    const double room = (double)carag_sketch_room(wanted);
    const double survivors = costs->scored * room / (double)carag_sketch_room(CARAG_SAMPLE_K);
    const double by_cells = cells_cost(reader, selection, reached) + fmin(admissible, survivors) * costs->code;
    const double by_words =
        words_cost(reader, selection) + fmin(admissible, WORD_SURVIVORS * survivors) * costs->code;
    return costs->scan_factor *
           (costs->sketch + costs->ranking + fmin(by_cells, by_words) + room * costs->vector);
}

/* The same of a usual query. With a fraction p of the rows admissible, the k-th nearest admissible row is about as far away
 * as the (k / p)-th nearest of all rows: so it looks at what a scan for k / p neighbours looks at. */
double carag_plan_scan(const carag_reader *reader, const carag_selection *selection, size_t wanted)
{
    const carag_costs *costs = &reader->view->costs;
    const double rows = reader->rows;
    const double few = costs->reached[0];
    const double times = (double)wanted * rows / (double)selection->admissible / CARAG_SAMPLE_K;
    const double exponent = log(fmax(times, 1.0)) / log(CARAG_MANY_RATIO);
    const bool stops = reader->view->cells && carag_plan_stops(reader, selection, 0.0);
    return scan_cost(reader, selection, wanted,
                     stops ? fmin(few + exponent * ((double)costs->reached[1] - few), rows) : rows);
}

/* The limits of a graph search by default. */
carag_limits carag_limits_of(const carag_costs *costs, uint64_t budget)
{
    return (carag_limits){.ef = costs->ef, .slack = costs->slack > 0.0F ? costs->slack : INFINITY, .budget = budget};
}

/* The plan of a call, and what each is expected to take; CARAG_PLAN_AUTO where every query is to choose. */
carag_plan carag_plan_choose(const carag_reader *reader, const carag_selection *selection, size_t limit,
                             double out_nanoseconds[CARAG_PLANS])
{
    const double exact = exact_cost(&reader->view->costs, (double)selection->admissible, (double)limit);
    out_nanoseconds[CARAG_PLAN_EXACT] = exact;
    if (carag_is_direct(selection->admissible, carag_sketch_room(limit)))
        return CARAG_PLAN_EXACT;
    const double scan = carag_plan_scan(reader, selection, limit);
    out_nanoseconds[CARAG_PLAN_SCAN] = scan;
    if (!reader->view->cells)
        return scan < exact ? CARAG_PLAN_SCAN : CARAG_PLAN_EXACT;
    if (fmin(SURE_FACTOR * scan, scan_cost(reader, selection, limit, reader->rows)) < exact)
        return CARAG_PLAN_SCAN;
    return exact < PROBE_FACTOR * reader->view->costs.ranking ? CARAG_PLAN_EXACT : CARAG_PLAN_AUTO;
}

/* The plan of a query of such a call: a scan where more of the rows near it are admissible (carag_scan_rate) than of all. */
carag_plan carag_plan_of_rate(const carag_reader *reader, const carag_selection *selection, double rate)
{
    const double share = (double)selection->admissible / (double)reader->rows;
    return rate < NEAR_FACTOR * share ? CARAG_PLAN_EXACT : CARAG_PLAN_SCAN;
}

/* Rows of the cells that a scan would still go through, if its floor stayed where it is. */
static double rows_in_reach(const carag_scan *job)
{
    const carag_cells *cells = job->reader->view->cells;
    const carag_scratch *scratch = job->scratch;
    const float floor = job->stops && scratch->found.count == job->room ? scratch->found.items[0].similarity : -INFINITY;
    uint64_t rows = 0;
    for (uint32_t i = job->next; i < cells->count; i++) {
        const uint32_t cell = scratch->cells[i];
        if (scratch->uppers[cell] + scratch->grade < floor)
            break;
        if (scratch->uppers[cell] >= floor)
            rows += cells->cells[cell].end - (cell ? cells->cells[cell - 1].end : 0);
    }
    return (double)rows;
}

/* Whether the rest of a scan reads fewer codes by words than by cells. Decided by counts, as carag_plan_stops is. */
bool carag_plan_by_words(const carag_scan *job)
{
    const double opened = rows_in_reach(job) * opened_packs(job->reader, job->selection);
    return carag_has_copy(job->reader, job->selection) &&
           WORD_FACTOR * (double)carag_copied_rows(job->selection) < opened;
}

/* Distances that a walk from where a scan stands, which has found as many rows as it keeps, may compute before it has cost
 * what the rest of the scan would; 0 where it is likely to cost more, or to miss some.
 *
 * It grows with the root of the rows that came through until then: in an open neighbourhood few are near the floor, in a
 * closed one very many. It meets rows of any word: where a fraction p of those seen is admissible, 1 / p times as many.
 * Counted over 22 cells of bench/ann, of three sets, a walk computes 0.3 to 2.5 times what this says by the median of a
 * cell; 0.8 to 1.1 times where policy and query are not correlated, and half of the rows or all are admissible.
 * Rejected: in proportion to the rows that came through, and to 1 / sqrt(p); where half or a fifth of 26,595 rows are
 * admissible, half of the walks that were begun or more were given up, and searches took 7 % longer. Rejected: to ask
 * for the pass rate of the first few cells, too; fewer walks were given up, and no search was faster. Rejected: to turn
 * to the exact search from there; where it is the cheaper one, it is so by less than the nearest cells have cost. */
uint64_t carag_plan_budget(const carag_scan *job, size_t ef)
{
    const carag_costs *costs = &job->reader->view->costs;
    const double share = (double)job->opened / (double)job->tested;
    const double rest = costs->scan_factor * fmin(cells_cost(job->reader, job->selection, rows_in_reach(job)),
                                                  words_cost(job->reader, job->selection));
    const double budget = rest / costs->graph_distance;
    const double expected = costs->distances * sqrt((double)job->scored / costs->seeds) / share;
    const bool fits = (double)job->scored / sqrt(share) < POOLS * (double)ef;
    return fits && expected < budget ? (uint64_t)budget : 0;
}
