/* cost/tune.c - tune how wide and how far searches go, when an index is built.
 *
 * The width of the pool at which the graph finds what it should, and hardly a query falls short, for queries like the
 * rows (rows moved off themselves); how far it goes before it stops; and the reach of cells. They depend on rows and
 * seed alone, and are kept in the file.
 */
#include "carag_internal.h"
#include "cost/cost.h"
#include "cost/sample.h"

#include <math.h>

#define MIN_REACH 0.2F /* spreads: the smallest reach of cells that is tried */
#define MAX_REACH 1.0F /* spreads: the largest reach of cells that is tried */
#define REACH_STEP 0.025F /* spreads between a reach that is tried and the next */
#define MIN_SLACK 0.9F /* times a squared distance: the smallest slack that is tried */
#define SLACK_STEP 0.025F /* times a squared distance: between a slack that is tried and the next */
#define SLACK_STEPS 44 /* steps from the smallest slack to the largest */
#define MAX_WIDTH 1024 /* rows in the widest pool that is tried */
#define HEADROOM 2 /* times the width most queries need; where searches stop by distance a wider pool costs little */

/* Rows in the pools that are tried. */
static const uint32_t widths[] = {32, 48, 64, 96, 128, 192, 256, 384, 512, 768, MAX_WIDTH};
#define WIDTHS (sizeof widths / sizeof *widths)

_Static_assert(HEADROOM * MAX_WIDTH <= CARAG_MAX_TUNED_POOL, "a scratch has room for the widest pool");

/* What a search must find. */
typedef struct goal {
    double recall; /* of the CARAG_SAMPLE_K nearest of a query, on the mean */
    int max_poor;  /* queries that may find less than nine tenths of their nearest */
} goal;

static const goal near_goal = {0.995, 1};
static const goal far_goal = {0.99, 4}; /* for queries between rows, which are harder than any that was asked */

/* What a scan by cells looks at, on the mean, for few neighbours and for many. */
static void count_reached(carag_sampling *job)
{
    carag_costs *costs = job->costs;
    uint64_t scored = 0;
    for (int many = 0; many < 2; many++) {
        uint64_t reached = 0;
        job->draws = 0;
        for (int q = 0; q < CARAG_SKETCH_QUERIES; q++) {
            carag_effort effort = {0};
            carag_draw_query(job);
            carag_scan_sketch(&job->reader, &job->everything, job->scratch,
                              many ? CARAG_MANY_RATIO * CARAG_SAMPLE_K : CARAG_SAMPLE_K, &effort);
            reached += effort.estimates;
            scored += many ? 0 : effort.distance_computations;
        }
        costs->reached[many] = (uint32_t)(reached / CARAG_SKETCH_QUERIES);
    }
    costs->scored = (uint32_t)(scored / CARAG_SKETCH_QUERIES);
}

/* A search of everything under a setting that is being tuned. */
typedef void (*tuned_search)(carag_sampling *job, float setting);

static void search_to_width(carag_sampling *job, float ef)
{
    carag_effort effort = {0};
    const carag_limits limits = {.ef = (size_t)ef, .slack = INFINITY, .budget = UINT64_MAX};
    carag_sample_graph(job, CARAG_SAMPLE_K, &limits, &effort);
}

static void search_to_distance(carag_sampling *job, float slack)
{
    carag_effort effort = {0};
    job->costs->slack = slack;
    const carag_limits limits = carag_limits_of(job->costs, UINT64_MAX);
    carag_sample_graph(job, CARAG_SAMPLE_K, &limits, &effort);
}

static void search_exactly(carag_sampling *job, float setting)
{
    carag_effort effort = {0};
    (void)setting;
    carag_scan_exact(&job->reader, &job->everything, job->scratch, CARAG_SAMPLE_K, &effort);
}

static void search_cells(carag_sampling *job, float reach)
{
    carag_effort effort = {0};
    job->reader.view->cells->reach = reach; /* nobody else has the view yet */
    carag_scan_sketch(&job->reader, &job->everything, job->scratch, CARAG_SAMPLE_K, &effort);
}

/* Whether a search finds enough over the sampled queries, and for nearly each of them: a mean can hide that one query
 * in fifty ends in the wrong cluster. A query's floor is its CARAG_SAMPLE_K-th best score. */
static bool suffices(carag_sampling *job, tuned_search search, float setting, const float *floors, goal wanted)
{
    size_t hits = 0;
    int poor = 0;
    job->draws = 0;
    for (int q = 0; q < CARAG_TUNED_QUERIES; q++) {
        carag_draw_query(job);
        search(job, setting);
        size_t found = 0;
        for (size_t i = 0; i < job->scratch->found.count; i++)
            found += job->scratch->found.items[i].similarity >= floors[q];
        hits += found;
        poor += 10 * found < 9 * CARAG_SAMPLE_K;
    }
    return (double)hits >= wanted.recall * (CARAG_TUNED_QUERIES * CARAG_SAMPLE_K) && poor <= wanted.max_poor;
}

/* The scores that a search must reach: what one that misses hardly anything reaches. */
static void set_floors(carag_sampling *job, tuned_search search, float setting, float *out_floors)
{
    job->draws = 0;
    for (int q = 0; q < CARAG_TUNED_QUERIES; q++) {
        carag_draw_query(job);
        search(job, setting);
        out_floors[q] = job->scratch->found.count > 0 ? job->scratch->found.items[0].similarity : -INFINITY;
    }
}

/* The width of the graph's pool, and when to stop before it is spent. */
static void tune_graph(carag_sampling *job)
{
    float floors[CARAG_TUNED_QUERIES];
    size_t width_at = 0;
    float slack = MIN_SLACK;
    set_floors(job, search_exactly, 0.0F, floors);
    while (width_at + 1 < WIDTHS && !suffices(job, search_to_width, (float)widths[width_at], floors, near_goal))
        width_at++;
    job->costs->ef = HEADROOM * widths[width_at];
    set_floors(job, search_to_width, (float)job->costs->ef, floors); /* the widest pool may fall short of the goal */
    for (int low = 0, high = SLACK_STEPS; low < high;) {
        const int middle = low + (high - low) / 2;
        if (suffices(job, search_to_distance, MIN_SLACK + (float)middle * SLACK_STEP, floors, near_goal))
            high = middle;
        else
            low = middle + 1;
        slack = MIN_SLACK + (float)low * SLACK_STEP;
    }
    job->costs->slack = slack + 2 * SLACK_STEP; /* the sample may be a kind one, and policies are unkind */
}

/* The reach of cells. Here the queries are rows themselves, since noise would put its own row, and little else,
 * nearest; and then points between two rows, whose nearest lie at the far edges of cells, as they do where a policy
 * closes the query's own neighbourhood. */
static void tune_reach(carag_sampling *job)
{
    float floors[CARAG_TUNED_QUERIES];
    float reach = MIN_REACH;
    job->noise = 0.0F;
    for (int between = 0; between < 2; between++) {
        job->between = between;
        set_floors(job, search_cells, MAX_REACH, floors);
        while (reach < MAX_REACH && !suffices(job, search_cells, reach, floors, between ? far_goal : near_goal))
            reach += REACH_STEP;
    }
    job->reader.view->cells->reach = reach + REACH_STEP; /* the sample may be a kind one */
    job->between = false;
    count_reached(job);
    job->noise = CARAG_NOISE;
}

static void tune(carag_sampling *job)
{
    tune_graph(job);
    if (job->reader.view->cells)
        tune_reach(job);
    carag_count_distances(job);
    carag_count_survivors(job, job->costs->sketched);
}

/* Fill view->costs, what is tuned and counted as well as what depends on this machine. As carag_costs_measure. */
void carag_costs_tune(carag_index *index, carag_view *view)
{
    carag_sampling sample;
    if (!carag_sampling_begin(&sample, index, view, false))
        return;
    tune(&sample);
    carag_measure_parts(&sample);
    carag_sampling_end(&sample);
}
