/* cost/sample.c - draw queries from the rows of an index, and count what their searches look at.
 *
 * Queries are rows, or sums of some, moved off by some noise, drawn by a hash: the same rows give the same queries, so
 * what is counted here depends on rows and seed alone and is kept in the file.
 */
#include "carag_internal.h"
#include "code/code.h"
#include "cost/sample.h"
#include "hash.h"

#include <math.h>
#include <string.h>

uint32_t carag_draw_row(carag_sampling *job)
{
    return (uint32_t)(carag_mix(++job->draws) % job->reader.rows);
}

/* A query near a random row, or amid several: so much noise away, in a direction that hashes decide. */
void carag_draw_query(carag_sampling *job)
{
    const carag_index *index = job->reader.index;
    const uint32_t dim = index->params.dim;
    carag_scratch *scratch = job->scratch;
    const uint32_t row = carag_draw_row(job);
    carag_widen_vector(index, job->reader.view, row, scratch->vector);
    for (uint32_t more = 1; more < job->summed; more++) {
        carag_widen_vector(index, job->reader.view, carag_draw_row(job), scratch->query.unit);
        for (uint32_t i = 0; i < dim; i++)
            scratch->vector[i] += scratch->query.unit[i];
    }
    const float step = job->noise * sqrtf(3.0F / (float)dim);
    for (uint32_t i = 0; i < dim; i++)
        scratch->vector[i] += step * ((float)(carag_mix(++job->draws) >> 40) * 0x1p-23F - 1.0F);
    if (carag_normalise(scratch->vector, dim, scratch->query.unit, row, NULL) != CARAG_OK) { /* a mapped file may lie */
        memset(scratch->query.unit, 0, dim * sizeof *scratch->query.unit);
        scratch->query.unit[0] = 1.0F;
    }
    carag_query_renew(&scratch->query);
    carag_query_encode(index, &job->reader.view->codes, &scratch->query);
}

/* ---------------------------------------------------------------- counting */

/* A scan of everything. */
void carag_sample_scan(carag_sampling *job, size_t wanted, carag_effort *effort)
{
    carag_scan scan = carag_scan_begin(&job->reader, &job->everything, job->scratch, wanted, effort);
    carag_scan_finish(&scan, wanted);
}

/* What a scan for a row looks at, on the mean, for few neighbours and for many. */
void carag_count_reached(carag_sampling *job)
{
    carag_costs *costs = job->costs;
    uint64_t scored = 0;
    job->noise = 0.0F;
    for (int many = 0; many < 2; many++) {
        uint64_t reached = 0;
        job->draws = 0;
        for (int q = 0; q < CARAG_SKETCH_QUERIES; q++) {
            carag_effort effort = {0};
            carag_draw_query(job);
            carag_sample_scan(job, many ? CARAG_MANY_RATIO * CARAG_SAMPLE_K : CARAG_SAMPLE_K, &effort);
            reached += effort.estimates;
            scored += many ? 0 : effort.distance_computations;
        }
        costs->reached[many] = (uint32_t)(reached / CARAG_SKETCH_QUERIES);
    }
    costs->scored = (uint32_t)(scored / CARAG_SKETCH_QUERIES);
    job->noise = CARAG_NOISE;
}

/* The scan of the nearest cells from which a walk of so wide a pool begins. */
carag_scan carag_sample_seeds(carag_sampling *job, size_t wanted, size_t ef, carag_effort *effort)
{
    const carag_cells *cells = job->reader.view->cells;
    carag_scan begun = carag_scan_begin(&job->reader, &job->everything, job->scratch, wanted, effort);
    if (cells)
        carag_scan_cells(&begun, carag_probed(cells, ef));
    return begun;
}

/* A graph search of everything. */
void carag_sample_graph(carag_sampling *job, size_t wanted, const carag_limits *limits)
{
    carag_effort effort = {0};
    carag_scan begun = carag_sample_seeds(job, wanted, limits->ef, &effort);
    carag_search_graph(&begun, wanted, limits);
}

/* Distances that a walk over the graph computes, on the mean, and rows from which it begins: what of its cost does not
 * depend on the machine, so that opening the file need only time a distance. */
void carag_count_distances(carag_sampling *job)
{
    const carag_limits limits = carag_limits_of(job->costs, UINT64_MAX);
    uint64_t distances = 0;
    uint64_t seeds = 0;
    job->noise = CARAG_TYPICAL_NOISE;
    job->draws = 0;
    for (int q = 0; q < CARAG_COUNTED_QUERIES; q++) {
        carag_effort effort = {0};
        carag_draw_query(job);
        carag_scan begun = carag_sample_seeds(job, CARAG_SAMPLE_K, limits.ef, &effort);
        const uint64_t before = effort.distance_computations;
        carag_search_graph(&begun, CARAG_SAMPLE_K, &limits);
        distances += effort.distance_computations - before;
        seeds += begun.scored;
    }
    job->costs->distances = (uint32_t)(distances / CARAG_COUNTED_QUERIES + 1);
    job->costs->seeds = (uint32_t)(seeds / CARAG_COUNTED_QUERIES + 1);
    job->noise = CARAG_NOISE;
}

/* ---------------------------------------------------------------- begin and end */

bool carag_sampling_begin(carag_sampling *job, carag_index *index, carag_view *view, bool is_mapped)
{
    static const carag_predicate anything = {.pairs = {{0, 0}}, .pair_count = 1};
    *job = (carag_sampling){.reader = {index, view, atomic_load(&view->rows), 0}, .kernel = carag_kernel_get(),
                            .costs = &view->costs, .summed = 1, .noise = CARAG_NOISE,
                            .is_mapped = is_mapped};
    if (job->reader.rows < CARAG_BLOCK)
        return false;
    const uint32_t classes = atomic_load(&view->catalog->count);
    const carag_room room = {.pool = CARAG_MAX_TUNED_EF,
                             .found = carag_sketch_room(CARAG_MANY_RATIO * CARAG_SAMPLE_K) + CARAG_BLOCK,
                             .classes = classes,
                             .cells = view->cells ? view->cells->count : 0};
    job->scratch = carag_scratch_take(index, view, &room);
    if (!job->scratch)
        return false;
    carag_test_init(&job->everything.test, &anything);
    job->everything.classes = job->scratch->classes;
    for (uint32_t class = 0; class < classes; class ++)
        job->everything.classes[job->everything.count++] = class;
    job->everything.room = classes;
    job->everything.admissible = job->everything.labelled = job->reader.rows;
    job->everything.is_exact = true;
    const carag_costs before = view->costs;
    view->costs = (carag_costs){.ef = before.ef,
                                .slack = before.slack,
                                .distances = before.distances,
                                .seeds = before.seeds,
                                .reached = {before.reached[0], before.reached[1]},
                                .scored = before.scored};
    return true;
}

void carag_sampling_end(carag_sampling *job)
{
    carag_scratch_give(job->reader.index, job->scratch);
}
