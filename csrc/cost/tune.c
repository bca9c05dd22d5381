/* cost/tune.c - tune how wide and how far searches go, when an index is built.
 *
 * The width of the graph's pool, which is also how many rows a walk starts from; when the walk stops before the pool
 * is spent; and the reach of cells. Each as little as finds what it should in three kinds of question: near a row,
 * between two, and the sum of four, as a question that names several things is. Failures are counted apart from the
 * mean, which hides that one question in fifty ends in the wrong cluster. All three depend on rows and seed alone, and
 * are kept in the file.
 *
 * Where the widest pool falls short of the goal, it is taken: twice as wide, at a million rows, sums of four would go
 * from a recall of 0.984 to 0.995, and every question near a row would cost 1.6 times as many distances.
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
#define SLACK_STEPS 24 /* steps from the smallest slack to the largest */
#define MIN_EF 64 /* rows in the narrowest pool that is tried; each next one is twice as wide */

/* What a search must find of each kind of question. None may find nothing. */
typedef struct goal {
    double recall; /* of the CARAG_SAMPLE_K nearest of a question, on the mean */
    int max_poor;  /* questions that may find less than nine tenths of their nearest */
} goal;

static const goal walk_goal = {0.995, 1}; /* of the width; and of the slack, beside a walk without: together 0.99 */
static const goal scan_goal = {0.995, 1}; /* of everything; policies that close near cells are unkinder to a scan */

/* What a kind of question is made of. */
typedef struct kind {
    uint32_t summed; /* rows */
    float noise;
} kind;

static const kind kinds[] = {{1, CARAG_NOISE}, {2, 0.0F}, {4, 0.0F}};
#define KINDS (sizeof kinds / sizeof *kinds)

/* A search of everything under a setting that is being tuned. */
typedef void (*tuned_search)(carag_sampling *job, float setting);

static void search_to_width(carag_sampling *job, float ef)
{
    const carag_limits limits = {.ef = (size_t)ef, .slack = INFINITY, .budget = UINT64_MAX};
    carag_sample_graph(job, CARAG_SAMPLE_K, &limits);
}

static void search_to_distance(carag_sampling *job, float slack)
{
    job->costs->slack = slack;
    const carag_limits limits = carag_limits_of(job->costs, UINT64_MAX);
    carag_sample_graph(job, CARAG_SAMPLE_K, &limits);
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
    job->reader.view->cells->reach = reach; /* the view is not shared yet */
    carag_sample_scan(job, CARAG_SAMPLE_K, &effort);
}

/* Whether a search finds enough over the sampled questions of a kind. A question's floor is the score of its
 * CARAG_SAMPLE_K-th nearest row. */
static bool suffices(carag_sampling *job, tuned_search search, float setting, const float *floors, goal wanted)
{
    size_t hits = 0;
    int poor = 0;
    bool is_lost = false;
    job->draws = 0;
    for (int q = 0; q < CARAG_TUNED_QUERIES; q++) {
        carag_draw_query(job);
        search(job, setting);
        size_t found = 0;
        for (size_t i = 0; i < job->scratch->found.count; i++)
            found += job->scratch->found.items[i].similarity >= floors[q];
        hits += found;
        poor += 10 * found < 9 * CARAG_SAMPLE_K;
        is_lost = is_lost || found == 0;
    }
    const bool is_enough = (double)hits >= wanted.recall * (CARAG_TUNED_QUERIES * CARAG_SAMPLE_K);
    return is_enough && poor <= wanted.max_poor && !is_lost;
}

/* The scores that a search must reach, by one that misses nothing, or hardly anything. */
static void set_floors(carag_sampling *job, tuned_search search, float setting, float *out_floors)
{
    job->draws = 0;
    for (int q = 0; q < CARAG_TUNED_QUERIES; q++) {
        carag_draw_query(job);
        search(job, setting);
        out_floors[q] = job->scratch->found.count > 0 ? job->scratch->found.items[0].similarity : -INFINITY;
    }
}

/* The kind of question that is drawn from here on. */
static void begin_kind(carag_sampling *job, kind of)
{
    job->summed = of.summed;
    job->noise = of.noise;
}

/* The width of the graph's pool. */
static void tune_width(carag_sampling *job)
{
    float floors[CARAG_TUNED_QUERIES];
    uint32_t ef = MIN_EF;
    for (size_t i = 0; i < KINDS; i++) {
        begin_kind(job, kinds[i]);
        set_floors(job, search_exactly, 0.0F, floors);
        while (ef < CARAG_MAX_TUNED_EF && !suffices(job, search_to_width, (float)ef, floors, walk_goal))
            ef *= 2;
    }
    job->costs->ef = ef;
}

/* When to stop before it is spent. The pool may fall short of the goal; then of what it finds. */
static void tune_slack(carag_sampling *job)
{
    float floors[CARAG_TUNED_QUERIES];
    int low = 0;
    for (size_t i = 0; i < KINDS; i++) {
        begin_kind(job, kinds[i]);
        set_floors(job, search_to_width, (float)job->costs->ef, floors);
        for (int high = SLACK_STEPS; low < high;) {
            const int middle = low + (high - low) / 2;
            if (suffices(job, search_to_distance, MIN_SLACK + (float)middle * SLACK_STEP, floors, walk_goal))
                high = middle;
            else
                low = middle + 1;
        }
    }
    job->costs->slack = MIN_SLACK + (float)(low + 1) * SLACK_STEP; /* the sample may be a kind one */
}

/* The reach of cells. Near a row means the row itself here, since noise would put its own row, and little else,
 * nearest. Among several, the nearest lie at the far edges of cells, as they do where a policy closes the query's own
 * neighbourhood. */
static void tune_reach(carag_sampling *job)
{
    float floors[CARAG_TUNED_QUERIES];
    float reach = MIN_REACH;
    for (size_t i = 0; i < KINDS; i++) {
        begin_kind(job, (kind){kinds[i].summed, 0.0F});
        set_floors(job, search_cells, MAX_REACH, floors);
        while (reach < MAX_REACH && !suffices(job, search_cells, reach, floors, scan_goal))
            reach += REACH_STEP;
    }
    job->reader.view->cells->reach = reach + REACH_STEP; /* the sample may be a kind one */
}

static void tune(carag_sampling *job)
{
    tune_width(job);
    tune_slack(job);
    if (job->reader.view->cells)
        tune_reach(job);
    begin_kind(job, kinds[0]);
    carag_count_reached(job);
    carag_count_distances(job);
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
