/* cost/measure.c - time the parts of a plan on this index and this machine.
 *
 * In a few milliseconds, when an index is built or loaded: a pack of rows by their one-bit codes, a row by its eight-bit
 * code and by its vector; what a query costs to sketch, and to rank cells for; and whole searches, exact, by cells and of
 * the graph. Every time is the least of some repeats, in nanoseconds. The parts take turns: what else a machine does is
 * then likely to leave each of them a repeat, and it is their ratio that a plan is chosen by.
 */
#include "carag_internal.h"
#include "code/code.h"
#include "cost/cost.h"
#include "cost/sample.h"
#include "file/file.h"
#include "search/span.h"

#include <math.h>
#include <time.h>

#define CACHE_BYTES ((size_t)16 << 20) /* bytes of an array that one query after another is likely to find in cache */
#define PAGE 4096 /* bytes that a system brings in at once, or more */
#define INTERRUPTED 4.0 /* times the fastest: what rows take at most, unless another process gets in between */
#define USUAL_SCAN_FACTOR 1.6 /* scan_factor where it is not measured; on the sets of bench/ann it is 1 to 2 */

/* How much is read to measure. */
typedef struct pace {
    int repeats;
    int graph_queries;     /* timed searches of the graph in a repeat */
    size_t sample_rows;    /* rows scored by each kernel in a repeat */
    size_t window_bytes;   /* of vectors in which rows at random are drawn: 0 is all of them */
    size_t graph_ef;       /* widest pool of a timed search of the graph, and so how many cells it begins with */
} pace;

static const pace in_memory = {.repeats = 5, .graph_queries = 8, .sample_rows = 16384, .graph_ef = CARAG_MAX_TUNED_EF};

/* Opening a mapped file must take milliseconds in all. The window is larger than a core's own cache, and few pages. */
static const pace in_file = {
    .repeats = 2, .graph_queries = 2, .sample_rows = 512, .window_bytes = (size_t)8 << 20, .graph_ef = 32};

typedef struct measurement {
    carag_sampling *sample;
    pace pace;
    uint32_t window; /* rows at random are drawn from this many, the first ones; 0: from all */
    double scan; /* nanoseconds that one takes */
    uint32_t touched; /* makes the compiler keep what is only read to be timed */
} measurement;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Processor time, for whole searches, which are long enough to be interrupted by other processes. */
static double spent_by_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double least(double a, double b)
{
    return a <= 0.0 || b < a ? b : a;
}

/* Row numbers for a kernel, in order from a random one on, or all random; returns how many. */
static size_t draw_rows(measurement *job, bool in_order)
{
    const uint32_t rows = job->sample->reader.rows;
    const size_t count = rows < CARAG_BLOCK ? rows : CARAG_BLOCK;
    const uint32_t first = rows > count ? carag_draw_row(job->sample) % (uint32_t)(rows - count) : 0;
    for (size_t i = 0; i < count; i++)
        job->sample->scratch->numbers[i] =
            in_order ? first + (uint32_t)i : carag_draw_row(job->sample) % (job->window ? job->window : rows);
    return count;
}

/* Where this is in a file, read the first byte of its page, which is seldom what is timed. */
static void touch_page(measurement *job, const void *of)
{
    if (carag_is_in_file(job->sample->reader.index, of))
        job->touched += *(const uint8_t *)((uintptr_t)of / PAGE * PAGE);
}

/* Of a mapped file, bring in the pages of the rows drawn, and of the packs and words at these positions, but not the rows:
 * what is timed is memory, not the system. */
static void touch_pages(measurement *job, size_t count)
{
    const carag_view *view = job->sample->reader.view;
    const carag_index *index = job->sample->reader.index;
    for (size_t i = 0; index->mapping && i < count; i++) {
        const size_t row = job->sample->scratch->numbers[i];
        touch_page(job, view->codes.bytes + row * view->codes.stride);
        touch_page(job, view->bits.packs + row / CARAG_PACK * carag_pack_bytes(8 * view->bits.words));
        touch_page(job, (const void *)(view->words + row));
        if (view->vectors)
            touch_page(job, (const uint8_t *)view->vectors + row * index->vector_bytes);
    }
}

/* Time a kernel takes for the rows in scratch->numbers. */
typedef double (*stopwatch)(measurement *job, size_t count);

/* Numbers are positions here. */
static double time_packs(measurement *job, size_t count)
{
    const carag_view *view = job->sample->reader.view;
    const carag_scratch *scratch = job->sample->scratch;
    const uint32_t end = scratch->numbers[0] + (uint32_t)count;
    float uppers[CARAG_PACK];
    uint32_t room[CARAG_PACK];
    const carag_pack_sight sight = carag_sight_of_pack(scratch->query.of_mean, 1.0F);
    const double begin = now();
    for (uint32_t at = scratch->numbers[0]; at < end;) {
        const carag_span span = carag_span_at(view, at, end, room);
        job->touched += carag_span_estimate(&span, carag_span_lanes(&span), &view->bits, &scratch->query, &sight, 2.0F,
                                            uppers);
        at += span.count;
    }
    return now() - begin;
}

static double time_words(measurement *job, size_t count)
{
    static const carag_pair nothing = {.mask = UINT32_MAX, .value = UINT32_MAX};
    carag_scratch *scratch = job->sample->scratch;
    const double begin = now();
    job->touched += (uint32_t)job->sample->kernel->admit(job->sample->reader.view->words, scratch->numbers, count,
                                                         &nothing, 1, scratch->numbers);
    return now() - begin;
}

static double time_codes(measurement *job, size_t count)
{
    const carag_codes *codes = &job->sample->reader.view->codes;
    carag_scratch *scratch = job->sample->scratch;
    const double begin = now();
    job->sample->kernel->dot8(codes->bytes, codes->stride, scratch->numbers, count, scratch->query.codes, codes->stride,
                      scratch->dots);
    return now() - begin;
}

/* Nanoseconds a row. What fits the cache is found there by one query after another: there the same rows are asked again;
 * of more than that, others. Rows at which another process got in between do not count. */
static double row_time(measurement *job, stopwatch time, bool in_order, size_t row_bytes)
{
    double fastest = 0.0;
    double spent = 0.0;
    size_t counted = 0;
    const uint64_t draws = job->sample->draws;
    const bool stays = row_bytes * job->sample->reader.rows <= CACHE_BYTES;
    if (stays)
        job->sample->draws = 0;
    for (size_t done = 0; done < job->pace.sample_rows;) {
        const size_t count = draw_rows(job, in_order);
        touch_pages(job, count);
        const double took = time(job, count);
        fastest = least(fastest, took / (double)count);
        done += count;
        if (took > INTERRUPTED * fastest * (double)count)
            continue;
        spent += took;
        counted += count;
    }
    if (stays)
        job->sample->draws = draws;
    return spent / (double)counted; /* the fastest one is counted */
}

static double sketch_time(measurement *job)
{
    carag_draw_query(job->sample);
    const double begin = now();
    carag_query_sketch(&job->sample->reader.view->bits, job->sample->reader.index->params.dim,
                       &job->sample->scratch->query);
    return now() - begin;
}

static double ranking_time(measurement *job)
{
    carag_draw_query(job->sample);
    const double begin = now();
    if (job->sample->reader.view->cells)
        carag_rank_cells(job->sample->reader.view->cells, job->sample->scratch);
    return now() - begin;
}

/* Of a row that is scored by its vector. */
static double vector_time(measurement *job)
{
    carag_scratch *scratch = job->sample->scratch;
    carag_effort effort = {0};
    const size_t count = draw_rows(job, false);
    touch_pages(job, count);
    for (size_t i = 0; i < count; i++)
        scratch->kept[i] = (carag_near){INFINITY, scratch->numbers[i]};
    const double begin = now();
    carag_rerank(&job->sample->reader, scratch, scratch->kept, count, 1, &effort);
    return (now() - begin) / (double)count;
}

/* Of a distance of a graph search, all included. Other queries each time, whose rows no cache has seen. */
static double distance_time(measurement *job)
{
    carag_limits limits = carag_limits_of(job->sample->costs, UINT64_MAX);
    limits.ef = limits.ef < job->pace.graph_ef ? limits.ef : job->pace.graph_ef;
    double spent = 0.0;
    uint64_t distances = 0;
    for (int q = 0; q < job->pace.graph_queries; q++) {
        carag_effort effort = {0};
        carag_draw_query(job->sample);
        carag_scan begun = carag_sample_seeds(job->sample, CARAG_SAMPLE_K, limits.ef, &effort);
        const uint64_t before = effort.distance_computations;
        const double begin = spent_by_now();
        carag_search_graph(&begun, CARAG_SAMPLE_K, &limits);
        spent += spent_by_now() - begin;
        distances += effort.distance_computations - before;
    }
    return spent / (double)(distances ? distances : 1);
}

/* Of a row of an exact search. The rows of a class may be near each other in memory or far apart: a whole search measures
 * what each costs. */
static double exact_row_time(measurement *job)
{
    carag_effort effort = {0};
    carag_draw_query(job->sample);
    const double begin = spent_by_now();
    carag_scan_exact(&job->sample->reader, &job->sample->everything, job->sample->scratch, CARAG_SAMPLE_K, &effort);
    return (spent_by_now() - begin) / job->sample->reader.rows;
}

/* Of a scan, on the queries whose rows were counted. */
static double scan_time(measurement *job)
{
    double spent = 0.0;
    const uint64_t draws = job->sample->draws;
    job->sample->draws = 0;
    job->sample->noise = 0.0F;
    for (int q = 0; q < CARAG_SKETCH_QUERIES; q++) { /* each leaves nothing of the others' rows in a core's cache */
        carag_effort effort = {0};
        carag_draw_query(job->sample);
        const double begin = spent_by_now();
        carag_sample_scan(job->sample, CARAG_SAMPLE_K, &effort);
        spent += spent_by_now() - begin;
    }
    job->sample->draws = draws;
    job->sample->noise = CARAG_NOISE;
    return spent / CARAG_SKETCH_QUERIES;
}

/* Time every part once, and keep what is less than before. */
static void time_parts(measurement *job)
{
    const carag_view *view = job->sample->reader.view;
    carag_costs *costs = job->sample->costs;
    const size_t code_bytes = view->codes.stride;
    const size_t bits_bytes = carag_pack_bytes(8 * view->bits.words) / CARAG_PACK;
    costs->sketch = least(costs->sketch, sketch_time(job));
    costs->ranking = least(costs->ranking, ranking_time(job));
    costs->pack = least(costs->pack, CARAG_PACK * row_time(job, time_packs, true, bits_bytes));
    costs->word = least(costs->word, row_time(job, time_words, true, sizeof(uint32_t)));
    costs->code = least(costs->code, row_time(job, time_codes, false, code_bytes));
    costs->vector = least(costs->vector, vector_time(job));
    costs->graph_distance = least(costs->graph_distance, distance_time(job));
    if (job->sample->is_mapped)
        return;
    costs->exact_row = least(costs->exact_row, exact_row_time(job));
    job->scan = least(job->scan, scan_time(job));
}

/* What a scan takes beyond its parts. A mapped file is not read whole: there, that is what is usual, and a row of an exact
 * search costs what one at random does. */
static void set_factors(measurement *job)
{
    carag_costs *costs = job->sample->costs;
    if (job->sample->is_mapped) {
        costs->exact_row = costs->code;
        costs->scan_factor = USUAL_SCAN_FACTOR;
        return;
    }
    costs->scan_factor = 1.0;
    const double parts = carag_plan_scan(&job->sample->reader, &job->sample->everything, CARAG_SAMPLE_K);
    costs->scan_factor = fmax(job->scan / parts, 1.0);
}

/* The writer's. */
void carag_measure_parts(carag_sampling *sample)
{
    const carag_index *index = sample->reader.index;
    measurement job = {.sample = sample, .pace = sample->is_mapped ? in_file : in_memory};
    const size_t row_bytes = index->vector_bytes ? index->vector_bytes : sample->reader.view->codes.stride;
    const size_t window = job.pace.window_bytes / row_bytes;
    job.window = window < sample->reader.rows ? (uint32_t)window : 0;
    if (sample->costs->scored == 0)
        carag_count_reached(sample);
    if (sample->costs->distances == 0)
        carag_count_distances(sample);
    for (int repeat = 0; repeat < job.pace.repeats; repeat++)
        time_parts(&job);
    set_factors(&job);
}

/* Fill view->costs with what depends on this machine. A view too small to choose on keeps what it has. The writer's;
 * memory that cannot be had leaves the costs of before, which are only a guess at which plan is fastest. */
void carag_costs_measure(carag_index *index, carag_view *view)
{
    carag_sampling sample;
    if (!carag_sampling_begin(&sample, index, view, carag_is_in_file(index, view->codes.bytes)))
        return;
    carag_measure_parts(&sample);
    carag_sampling_end(&sample);
}
