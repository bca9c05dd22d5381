/* cost/sample.h - queries drawn from the rows of an index, on which costs are measured and searches tuned. */
#ifndef CARAG_COST_SAMPLE_H
#define CARAG_COST_SAMPLE_H

#include "carag_internal.h"
#include "kernel/kernel.h"
#include "row/row.h"
#include "search/search.h"

#define CARAG_NOISE 1.0F          /* length of the noise added to a row to make a query of the graph */
#define CARAG_TYPICAL_NOISE 0.5F  /* length of the noise added to a row to make a query of typical cost */
#define CARAG_SKETCH_QUERIES 16   /* queries over which the rows that a scan looks at are averaged */
#define CARAG_MAX_TUNED_EF 512  /* rows in the widest pool that tuning may choose for the graph */

#if !defined(CARAG_TUNED_QUERIES) /* tests make both fewer: a small index costs little but this */
#define CARAG_TUNED_QUERIES 192   /* queries of each kind on which a setting is tried */
#define CARAG_COUNTED_QUERIES 64  /* queries over which the distances of a graph search are averaged */
#endif

typedef struct carag_sampling {
    carag_reader reader;
    carag_selection everything;
    carag_scratch *scratch;
    const carag_kernel *kernel;
    carag_costs *costs;
    uint64_t draws; /* state of the draws: the same number, the same draws from there on */
    uint32_t summed; /* rows whose sum is a query */
    float noise;    /* length of what is added to it */
    bool is_mapped; /* read little: the file is on disk */
} carag_sampling;

/* Begin to sample the rows of a view that has no readers yet, or holds a writer's lock; its costs lose what depends on
 * the machine. False, and nothing to end, when there are too few rows to choose plans on, or no memory. */
bool carag_sampling_begin(carag_sampling *job, carag_index *index, carag_view *view, bool is_mapped);
void carag_sampling_end(carag_sampling *job);

uint32_t carag_draw_row(carag_sampling *job);
void carag_draw_query(carag_sampling *job);
carag_scan carag_sample_seeds(carag_sampling *job, size_t wanted, size_t ef, carag_effort *effort);
void carag_sample_graph(carag_sampling *job, size_t wanted, const carag_limits *limits);
void carag_sample_scan(carag_sampling *job, size_t wanted, carag_effort *effort);
void carag_count_reached(carag_sampling *job);
void carag_count_distances(carag_sampling *job);

/* cost/measure.c: time all that is not counted. */
void carag_measure_parts(carag_sampling *job);

#endif
