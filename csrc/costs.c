/* costs.c - what a plan is made of, measured on this index and this machine; and what is tuned when an index is built.
 *
 * In a few milliseconds, when an index is built or loaded: a row by its one-bit code, by its eight-bit code in row
 * order and out of order, by its vector; what a query costs to sketch; and whole searches, exact, by cells and of the
 * graph.
 *
 * Besides, at a build: the width of the pool at which the graph finds what it should, and hardly a query falls short,
 * for queries like the rows (rows moved off themselves); how far it goes before it stops; and the reach of cells. They
 * depend on rows and seed alone, and are kept in the file.
 */
#include "carag_internal.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define REPEATS 5
#define CACHE_BYTES ((size_t)16 << 20)
#define SAMPLE_ROWS 16384
#define GRAPH_QUERIES 8
#define REPEATS_MAPPED 2 /* opening a mapped file must take milliseconds in all */
#define SAMPLE_ROWS_MAPPED 512
#define QUERIES_MAPPED 2
#define BUDGET_MAPPED 128
#define WINDOW_MAPPED ((size_t)8 << 20) /* bytes in which rows are drawn: more than a core's own cache, few pages */
#define USUALLY_BEYOND 1.6 /* on the sets of bench/ann 1 to 2 */
#define SAMPLE_QUERIES 192
#define LEAST_REACH 0.2F
#define MOST_REACH 1.0F
#define REACH_STEP 0.025F
#define LEAST_SLACK 0.9F
#define SLACK_STEP 0.025F
#define SLACK_STEPS 44
#define OFFSET 1.0F      /* length of the noise added to a row that serves as a query of the graph */
#define USUAL_OFFSET 0.5F /* and to one whose cost is to be typical */
#define SKETCH_ROWS 8192 /* enough to see how many rows survive a sketch */
#define SKETCH_QUERIES 16
#define COUNTED_QUERIES 64

#define HEADROOM 2 /* a pool twice as wide as most queries need costs little where searches stop by distance */

static const uint32_t ladder[] = {32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
#define RUNGS (sizeof ladder / sizeof *ladder)

/* What a search must find of what sampled queries should; `poor` ones find less than nine tenths of it. */
typedef struct goal {
    double recall;
    int most_poor;
} goal;

static const goal near_goal = {0.995, 1};
static const goal far_goal = {0.99, 4}; /* of queries between rows, which are harder than any that was asked */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* ---------------------------------------------------------------- samples */

typedef struct measurement {
    carag_reader reader;
    carag_selection everything;
    carag_scratch *scratch;
    const carag_kernel *kernel;
    carag_costs *costs;
    uint64_t draws;
    float offset; /* length of the noise added to a row that serves as a query */
    bool between; /* queries lie between two rows instead */
    int repeats;
    int queries;
    size_t sample_rows;
    uint32_t window; /* rows out of order are drawn from so many; 0: from all */
    uint64_t budget; /* distances of a graph search that is timed */
    uint32_t touched;
    bool is_mapped;
} measurement;

static uint32_t draw_row(measurement *job)
{
    return (uint32_t)(carag_mix(++job->draws) % job->reader.rows);
}

/* Row numbers for a kernel, in order from a random one on, or all random; returns how many. */
static size_t draw_rows(measurement *job, bool in_order)
{
    const uint32_t rows = job->reader.rows;
    const size_t count = rows < CARAG_BLOCK ? rows : CARAG_BLOCK;
    const uint32_t first = rows > count ? draw_row(job) % (uint32_t)(rows - count) : 0;
    for (size_t i = 0; i < count; i++)
        job->scratch->numbers[i] = in_order ? first + (uint32_t)i : draw_row(job) % (job->window ? job->window : rows);
    return count;
}

/* Of a mapped file, bring in the pages of the rows drawn, but not the rows: what is timed is memory, not the system. */
static void touch_pages(measurement *job, size_t count)
{
    const carag_view *view = job->reader.view;
    for (size_t i = 0; job->reader.index->mapping && i < count; i++) {
        const size_t before = job->scratch->numbers[i] > 0 ? job->scratch->numbers[i] - 1 : 0;
        job->touched += view->codes.bytes[before * view->codes.stride];
        if (view->vectors)
            job->touched += ((const uint8_t *)view->vectors)[before * job->reader.index->vector_bytes];
    }
}

/* A query near a random row, or between two: so much noise away, in a direction that hashes decide. */
static uint32_t draw_query(measurement *job)
{
    const carag_index *index = job->reader.index;
    const uint32_t dim = index->params.dim;
    carag_scratch *scratch = job->scratch;
    const uint32_t row = draw_row(job);
    carag_widen_vector(index, job->reader.view, row, scratch->vector);
    if (job->between) {
        carag_widen_vector(index, job->reader.view, draw_row(job), scratch->query.unit);
        for (uint32_t i = 0; i < dim; i++)
            scratch->vector[i] += scratch->query.unit[i];
    }
    const float step = job->offset * sqrtf(3.0F / (float)dim);
    for (uint32_t i = 0; i < dim; i++)
        scratch->vector[i] += step * ((float)(carag_mix(++job->draws) >> 40) * 0x1p-23F - 1.0F);
    if (carag_normalise(scratch->vector, dim, scratch->query.unit, row, NULL) != CARAG_OK) { /* a mapped file may lie */
        memset(scratch->query.unit, 0, dim * sizeof *scratch->query.unit);
        scratch->query.unit[0] = 1.0F;
    }
    carag_query_encode(index, &job->reader.view->codes, &scratch->query);
    return row;
}

static double least(double a, double b)
{
    return a <= 0.0 || b < a ? b : a;
}

/* Time a kernel takes for the rows in scratch->numbers. */
typedef double (*stopwatch)(measurement *job, size_t count);

static double time_bits(measurement *job, size_t count)
{
    const carag_bits *bits = &job->reader.view->bits;
    carag_scratch *scratch = job->scratch;
    const carag_query *query = &scratch->query;
    const double begin = now();
    job->kernel->bits(bits->codes, bits->words, scratch->numbers, count, &query->bits, scratch->dots);
    job->kernel->screen(bits->factors, scratch->numbers, scratch->dots, count, query->base, query->slope,
                        query->intercept, query->tilt, query->spread, 2.0F, scratch->numbers, scratch->scores);
    return now() - begin;
}

static double time_words(measurement *job, size_t count)
{
    static const carag_pair nothing = {.mask = UINT32_MAX, .value = UINT32_MAX};
    carag_scratch *scratch = job->scratch;
    const double begin = now();
    job->touched += (uint32_t)job->kernel->admit(job->reader.view->words, scratch->numbers, count, &nothing, 1,
                                                 scratch->numbers);
    return now() - begin;
}

static double time_codes(measurement *job, size_t count)
{
    const carag_codes *codes = &job->reader.view->codes;
    carag_scratch *scratch = job->scratch;
    const double begin = now();
    job->kernel->dot8(codes->bytes, codes->stride, scratch->numbers, count, scratch->query.codes, codes->stride,
                      scratch->dots);
    return now() - begin;
}

/* Nanoseconds a row, least of the repeats. What fits the cache is found there by one query after another: there the
 * same rows are asked again; of more than that, others. */
static double measure_rows(measurement *job, stopwatch time, bool in_order, size_t row_bytes)
{
    const bool stays = row_bytes * job->reader.rows <= CACHE_BYTES;
    double best = 0.0;
    for (int repeat = 0; repeat < job->repeats; repeat++) {
        double spent = 0.0;
        size_t done = 0;
        if (stays)
            job->draws = 0;
        while (done < job->sample_rows) {
            const size_t count = draw_rows(job, in_order);
            touch_pages(job, count);
            spent += time(job, count);
            done += count;
        }
        best = least(best, spent / (double)done);
    }
    return best;
}

static void measure_kernels(measurement *job)
{
    const carag_view *view = job->reader.view;
    carag_scratch *scratch = job->scratch;
    carag_costs *costs = job->costs;
    for (int repeat = 0; repeat < job->repeats; repeat++) {
        draw_query(job);
        const double begin = now();
        carag_query_sketch(&view->bits, job->reader.index->params.dim, &scratch->query, 1.0F);
        costs->sketch = least(costs->sketch, now() - begin);
    }
    costs->bits = measure_rows(job, time_bits, true, view->bits.words * sizeof(uint64_t) + sizeof(carag_bits_factor));
    costs->word = measure_rows(job, time_words, true, sizeof(uint32_t));
    costs->code_in_order = measure_rows(job, time_codes, true, view->codes.stride);
    costs->code = measure_rows(job, time_codes, false, view->codes.stride);
    for (int repeat = 0; repeat < job->repeats; repeat++) {
        const size_t count = draw_rows(job, false);
        touch_pages(job, count);
        for (size_t i = 0; i < count; i++)
            scratch->kept[i] = (carag_near){INFINITY, scratch->numbers[i]};
        carag_effort effort = {0};
        const double begin = now();
        carag_rerank(&job->reader, scratch, scratch->kept, count, 1, &effort);
        costs->vector = least(costs->vector, (now() - begin) / (double)count);
    }
}

/* How many rows a sketch of some thousand looks at, and how many of them survive beyond those that always do. */
static void count_survivors(measurement *job, uint32_t out_counts[2])
{
    const carag_catalog *catalog = job->reader.view->catalog;
    const size_t always = (CARAG_PROMISING + 1) * carag_sketch_room(CARAG_SAMPLE_K);
    carag_selection some = job->everything;
    uint64_t rows = 0;
    some.count = 0;
    some.admissible = 0; /* so that a scan goes by classes */
    while (some.count < job->everything.count && rows < SKETCH_ROWS)
        rows += atomic_load(&catalog->live[some.count++]);
    carag_effort effort = {0};
    uint64_t survived = 0;
    for (int q = 0; q < SKETCH_QUERIES; q++) {
        effort = (carag_effort){0};
        draw_query(job);
        carag_scan_sketch(&job->reader, &some, job->scratch, CARAG_SAMPLE_K, &effort);
        survived += effort.distance_computations > always ? effort.distance_computations - always : 0;
    }
    out_counts[0] = (uint32_t)effort.estimates;
    out_counts[1] = (uint32_t)(survived / SKETCH_QUERIES);
}

/* What a scan by cells looks at, on the mean, for few neighbours and for many. */
static void count_reached(measurement *job)
{
    carag_costs *costs = job->costs;
    uint64_t scored = 0;
    for (int many = 0; many < 2; many++) {
        uint64_t reached = 0;
        job->draws = 0;
        for (int q = 0; q < SKETCH_QUERIES; q++) {
            carag_effort effort = {0};
            draw_query(job);
            carag_scan_sketch(&job->reader, &job->everything, job->scratch,
                              many ? CARAG_MANY_FOLD * CARAG_SAMPLE_K : CARAG_SAMPLE_K, &effort);
            reached += effort.estimates;
            scored += many ? 0 : effort.distance_computations;
        }
        costs->reached[many] = (uint32_t)(reached / SKETCH_QUERIES);
    }
    costs->scored = (uint32_t)(scored / SKETCH_QUERIES);
}

/* In units of what a sketch has room for, with each factor of e in rows. */
static void set_survivors(measurement *job)
{
    carag_costs *costs = job->costs;
    uint32_t counts[2] = {costs->sketched[0], costs->sketched[1]};
    if (counts[0] == 0)
        count_survivors(job, counts);
    const double folds = log(fmax((double)counts[0] / CARAG_BLOCK, 2.0));
    costs->survivors = counts[1] / ((double)carag_sketch_room(CARAG_SAMPLE_K) * folds);
}

static void walk_graph(measurement *job, size_t most, const carag_limits *limits, carag_effort *effort)
{
    carag_search_graph(&job->reader, &job->everything, job->scratch, most, limits, effort);
}

/* Distances that a graph search computes, on the mean, for few neighbours and for many: what of its cost does not
 * depend on the machine, so that whoever opens the file need only time a distance. */
static void count_distances(measurement *job)
{
    const carag_limits limits = carag_limits_of(job->costs, UINT64_MAX);
    job->offset = USUAL_OFFSET;
    for (int many = 0; many < 2; many++) {
        uint64_t total = 0;
        job->draws = 0;
        for (int q = 0; q < COUNTED_QUERIES; q++) {
            carag_effort effort = {0};
            draw_query(job);
            walk_graph(job, many ? CARAG_MANY_FOLD * CARAG_SAMPLE_K : CARAG_SAMPLE_K, &limits, &effort);
            total += effort.distance_computations;
        }
        job->costs->distances[many] = (uint32_t)((total + COUNTED_QUERIES - 1) / COUNTED_QUERIES);
    }
    job->offset = OFFSET;
}

/* Nanoseconds a distance of a graph search takes, all included; least of the repeats. */
static void measure_graph(measurement *job)
{
    const carag_limits limits = carag_limits_of(job->costs, job->budget);
    if (job->costs->distances[0] == 0)
        count_distances(job);
    double best = 0.0;
    for (int repeat = 0; repeat < job->repeats; repeat++) {
        double spent = 0.0;
        uint64_t distances = 0;
        for (int q = 0; q < job->queries; q++) { /* other queries each time, whose rows no cache has seen */
            carag_effort effort = {0};
            draw_query(job);
            const double begin = now();
            walk_graph(job, CARAG_SAMPLE_K, &limits, &effort);
            spent += now() - begin;
            distances += effort.distance_computations;
        }
        best = least(best, spent / (double)(distances ? distances : 1));
    }
    job->costs->graph_distance = best;
}

/* How far apart the rows of a class lie, and so what each costs, a whole search knows best. A mapped file is not read
 * whole: there, as if they lay at random. */
static void measure_exact(measurement *job)
{
    job->costs->exact_row = job->costs->code;
    if (job->is_mapped)
        return;
    double best = 0.0;
    for (int repeat = 0; repeat < job->repeats; repeat++) {
        carag_effort effort = {0};
        draw_query(job);
        const double begin = now();
        carag_scan_exact(&job->reader, &job->everything, job->scratch, CARAG_SAMPLE_K, &effort);
        best = least(best, now() - begin);
    }
    job->costs->exact_row = best / job->reader.rows;
}

/* What a scan by cells takes beyond its parts. Of a mapped file it would read too many pages: there, what is usual. */
static void measure_cells(measurement *job)
{
    job->costs->beyond = USUALLY_BEYOND;
    if (!job->reader.view->cells || job->is_mapped)
        return;
    job->costs->beyond = 1.0;
    const double parts = carag_plan_cells(&job->reader, &job->everything, CARAG_SAMPLE_K);
    double spent = 0.0;
    job->offset = USUAL_OFFSET;
    for (int q = 0; q < COUNTED_QUERIES; q++) { /* each another, so that none finds its rows in the cache */
        carag_effort effort = {0};
        draw_query(job);
        const double begin = now();
        carag_scan_sketch(&job->reader, &job->everything, job->scratch, CARAG_SAMPLE_K, &effort);
        spent += now() - begin;
    }
    job->offset = OFFSET;
    job->costs->beyond = fmax(spent / COUNTED_QUERIES / parts, 1.0);
}

/* A search of everything under a setting that is being tuned. */
typedef void (*tuned_search)(measurement *job, float setting);

static void search_to_width(measurement *job, float ef)
{
    carag_effort effort = {0};
    walk_graph(job, CARAG_SAMPLE_K, &(carag_limits){.ef = (size_t)ef, .slack = INFINITY, .budget = UINT64_MAX}, &effort);
}

static void search_to_distance(measurement *job, float slack)
{
    carag_effort effort = {0};
    job->costs->slack = slack;
    const carag_limits limits = carag_limits_of(job->costs, UINT64_MAX);
    walk_graph(job, CARAG_SAMPLE_K, &limits, &effort);
}

static void search_exactly(measurement *job, float setting)
{
    carag_effort effort = {0};
    (void)setting;
    carag_scan_exact(&job->reader, &job->everything, job->scratch, CARAG_SAMPLE_K, &effort);
}

static void search_cells(measurement *job, float reach)
{
    carag_effort effort = {0};
    job->reader.view->cells->reach = reach; /* nobody else has the view yet */
    carag_scan_sketch(&job->reader, &job->everything, job->scratch, CARAG_SAMPLE_K, &effort);
}

/* Whether a search finds enough over the sampled queries, and for nearly each of them: a mean can hide that one query
 * in fifty ends in the wrong cluster. A query's floor is its CARAG_SAMPLE_K-th best score. */
static bool suffices(measurement *job, tuned_search search, float setting, const float *floors, goal wanted)
{
    size_t hits = 0;
    int poor = 0;
    job->draws = 0;
    for (int q = 0; q < SAMPLE_QUERIES; q++) {
        draw_query(job);
        search(job, setting);
        size_t found = 0;
        for (size_t i = 0; i < job->scratch->found.count; i++)
            found += job->scratch->found.items[i].similarity >= floors[q];
        hits += found;
        poor += 10 * found < 9 * CARAG_SAMPLE_K;
    }
    return (double)hits >= wanted.recall * (SAMPLE_QUERIES * CARAG_SAMPLE_K) && poor <= wanted.most_poor;
}

/* The scores that a search must reach: what one that misses hardly anything reaches. */
static void set_floors(measurement *job, tuned_search search, float setting, float *out_floors)
{
    job->draws = 0;
    for (int q = 0; q < SAMPLE_QUERIES; q++) {
        draw_query(job);
        search(job, setting);
        out_floors[q] = job->scratch->found.count > 0 ? job->scratch->found.items[0].similarity : -INFINITY;
    }
}

/* The width of the graph's pool, and when to stop before it is spent. */
static void tune_graph(measurement *job)
{
    float floors[SAMPLE_QUERIES];
    size_t rung = 0;
    float slack = LEAST_SLACK;
    set_floors(job, search_exactly, 0.0F, floors);
    while (rung + 1 < RUNGS && !suffices(job, search_to_width, (float)ladder[rung], floors, near_goal))
        rung++;
    job->costs->ef = HEADROOM * ladder[rung];
    set_floors(job, search_to_width, (float)job->costs->ef, floors); /* the widest pool may fall short of the goal */
    for (int low = 0, high = SLACK_STEPS; low < high;) {
        const int middle = low + (high - low) / 2;
        if (suffices(job, search_to_distance, LEAST_SLACK + (float)middle * SLACK_STEP, floors, near_goal))
            high = middle;
        else
            low = middle + 1;
        slack = LEAST_SLACK + (float)low * SLACK_STEP;
    }
    job->costs->slack = slack + 2 * SLACK_STEP; /* the sample may be a kind one, and policies are unkind */
}

/* The reach of cells. Here the queries are rows themselves, since noise would put its own row, and little else, nearest;
 * and then points between two rows, whose nearest lie at the far edges of cells, as they do where a policy closes the
 * query's own neighbourhood. */
static void tune_reach(measurement *job)
{
    float floors[SAMPLE_QUERIES];
    float reach = LEAST_REACH;
    job->offset = 0.0F;
    for (int between = 0; between < 2; between++) {
        job->between = between;
        set_floors(job, search_cells, MOST_REACH, floors);
        while (reach < MOST_REACH && !suffices(job, search_cells, reach, floors, between ? far_goal : near_goal))
            reach += REACH_STEP;
    }
    job->reader.view->cells->reach = reach + REACH_STEP; /* the sample may be a kind one */
    job->between = false;
    count_reached(job);
    job->offset = OFFSET;
}

static void tune(measurement *job)
{
    tune_graph(job);
    if (job->reader.view->cells)
        tune_reach(job);
    count_distances(job);
    count_survivors(job, job->costs->sketched);
}

/* Fill view->costs; `tunes`: the width, too. A view too small to choose on keeps what it has. The writer's; memory that
 * cannot be had leaves the costs of before, which are only a guess at which plan is fastest. */
void carag_costs_measure(carag_index *index, carag_view *view, bool tunes)
{
    static const carag_predicate anything = {.pairs = {{0, 0}}, .pair_count = 1};
    measurement job = {.reader = {index, view, atomic_load(&view->rows), 0}, .kernel = carag_kernel_get(),
                       .costs = &view->costs, .offset = OFFSET};
    if (job.reader.rows < CARAG_BLOCK)
        return;
    const uint32_t classes = atomic_load(&view->catalog->count);
    const carag_room room = {.pool = (size_t)ladder[RUNGS - 1] * HEADROOM,
                             .found = carag_sketch_room(CARAG_MANY_FOLD * CARAG_SAMPLE_K) + CARAG_BLOCK,
                             .classes = classes,
                             .cells = view->cells ? view->cells->count : 0};
    job.scratch = carag_scratch_take(index, view, &room);
    if (!job.scratch)
        return;
    carag_test_init(&job.everything.test, &anything);
    job.everything.classes = job.scratch->classes;
    for (uint32_t class = 0; class < classes; class ++)
        job.everything.classes[job.everything.count++] = class;
    job.everything.room = classes;
    job.everything.admissible = job.everything.labelled = job.reader.rows;
    job.everything.is_exact = true;
    job.is_mapped = index->mapping != NULL && !tunes;
    const size_t row_bytes = index->vector_bytes ? index->vector_bytes : view->codes.stride;
    const size_t window = WINDOW_MAPPED / row_bytes;
    job.repeats = job.is_mapped ? REPEATS_MAPPED : REPEATS;
    job.queries = job.is_mapped ? QUERIES_MAPPED : GRAPH_QUERIES;
    job.window = job.is_mapped && window < job.reader.rows ? (uint32_t)window : 0;
    job.sample_rows = job.is_mapped ? SAMPLE_ROWS_MAPPED : SAMPLE_ROWS;
    job.budget = job.is_mapped ? BUDGET_MAPPED : UINT64_MAX;
    const carag_costs before = view->costs;
    view->costs = (carag_costs){.ef = before.ef,
                                .slack = before.slack,
                                .distances = {before.distances[0], before.distances[1]},
                                .sketched = {before.sketched[0], before.sketched[1]},
                                .reached = {before.reached[0], before.reached[1]},
                                .scored = before.scored};
    if (tunes)
        tune(&job);
    measure_kernels(&job);
    set_survivors(&job);
    measure_exact(&job);
    measure_graph(&job);
    measure_cells(&job);
    carag_scratch_give(index, job.scratch);
}
