/* search/search.h - what the plans of a search share: working memory, effort, and the scoring that ends each of them.
 */
#ifndef CARAG_SEARCH_H
#define CARAG_SEARCH_H

#include "carag_internal.h"
#include "heap.h"
#include "row/row.h"
#include "visited.h"

#define CARAG_MAX_WIDENING 16 /* times ef: how far a filtered graph search may widen its pool */
#define CARAG_SAMPLE_K 10 /* neighbours for which costs are measured */
#define CARAG_MANY_RATIO 8 /* costs are measured a second time, for this multiple of CARAG_SAMPLE_K neighbours */

#define CARAG_MARK_MAX_SHARE 8 /* where more than 1/8 of the rows are admissible, marking them costs more than testing words */
#define CARAG_CUT 2 /* times as many rows pass by word as are admissible, beyond which words say little */

_Static_assert(sizeof(carag_near) == 8, "eight heap entries share a cache line");

/* How much a call needs. */
typedef struct carag_room {
    uint32_t rows;    /* the capacity of the view */
    size_t pool;      /* widest beam over the graph; 0 without one */
    size_t found;     /* rows kept by score */
    size_t classes;
    uint32_t cells;
} carag_room;

/* Working memory of one thread of one call; nothing in a search allocates. */
typedef struct carag_scratch {
    carag_room room;
    carag_visited visited; /* [rows] */
    uint64_t *marks;       /* [rows / 64 + 2] all zero between searches */
    carag_near *pool;      /* [pool + 1] the beam, nearest first */
    size_t pool_count;     /* rows in it where a graph search ended */
    uint32_t *expanded;    /* [pool + 1] 1 where the pool's row was expanded */
    carag_heap found;      /* [found] farthest on top: the best admissible rows so far */
    carag_near *kept;      /* [rows + found] rows an exact search may not yet rule out, or that are scored at last */
    uint32_t *numbers;     /* [CARAG_BLOCK, or M0 + 1 if more] row numbers for a kernel, in and out */
    int32_t *dots;         /* likewise */
    float *scores;         /* likewise */
    float *vector;         /* [stride] a kept vector widened */
    uint32_t *classes;     /* [classes] */
    uint32_t *cells;       /* [cells] in the order of a query */
    float *uppers;         /* [cells] what rows of a cell hardly exceed */
    float *nears;          /* [cells] what its centre gives */
    float *aways;          /* [cells] deviations that count, times the distance to it: a scan of words fills it */
    float grade;           /* by how much a later cell may be above: these four are valid where query.has_cells */
    carag_query query;
} carag_scratch;

/* What one query did. */
typedef struct carag_effort {
    uint64_t estimates;
    uint64_t distance_computations;
    uint64_t hops;
    uint64_t ef;
} carag_effort;

/* A scan under way (search/scan.c). What it has found, and which rows it has met, is in its scratch. */
typedef struct carag_scan {
    const carag_reader *reader;
    const carag_selection *selection;
    carag_scratch *scratch;
    carag_effort *effort;
    const uint64_t *marks; /* of the rows that may be open; NULL: by their words */
    size_t room;           /* rows that are kept by eight-bit code */
    size_t waiting;        /* rows in scratch->numbers, their upper estimates in scratch->scores, */
    size_t patience;       /* and how many may be there before they are scored */
    size_t scored;         /* rows in scratch->kept: all those scored by eight-bit code */
    uint32_t next;         /* cells gone through, nearest first */
    uint64_t tested;       /* rows in them, */
    uint64_t opened;       /* and how many of those are admissible */
    bool all_open;         /* words need not be tested to know whether a pack is read */
    bool is_near;          /* in the nearest cells, whose rows decide how it goes on: terms are tested with words */
    bool stops;            /* it may end before the last cell */
} carag_scan;

/* How far a graph search may go. */
typedef struct carag_limits {
    size_t ef;         /* width of its pool, where everything is admissible */
    float slack;       /* times the squared distance of the last row wanted; INFINITY: until the pool is spent */
    uint64_t budget;   /* distances */
    double least_rate; /* of rows near the query that are admissible */
    bool is_sure;      /* give up, too, when the pool was spent before the stop: nearer rows may lie beyond it */
} carag_limits;

/* Whether terms, such as audiences, close most of the rows whose words pass. */
static inline bool carag_is_cut(const carag_selection *selection)
{
    return selection->labelled > CARAG_CUT * selection->admissible;
}

/* Rows that a scan of the copy reads: of the words that pass, or the packs of the classes that are open. */
static inline uint64_t carag_copied_rows(const carag_selection *selection)
{
    return carag_is_cut(selection) ? selection->admissible + (uint64_t)CARAG_PACK * selection->count
                                   : selection->labelled;
}

/* Whether rows may be read by words or classes, from a copy in that order. */
static inline bool carag_has_copy(const carag_reader *reader, const carag_selection *selection)
{
    return reader->view->sorted &&
           (!carag_is_cut(selection) || CARAG_CUT * carag_copied_rows(selection) < reader->rows);
}

/* Whether a scan marks the rows that may be open, instead of testing the words of all. */
static inline bool carag_may_mark(const carag_reader *reader, const carag_selection *selection)
{
    return !carag_has_copy(reader, selection) && selection->admissible * CARAG_MARK_MAX_SHARE <= reader->rows;
}

/* search/scratch.c */
carag_scratch *carag_scratch_take(carag_index *index, const carag_view *view, const carag_room *room);
void carag_scratch_give(carag_index *index, carag_scratch *scratch);
void carag_scratches_free(carag_index *index);

/* search/rerank.c */
bool carag_is_direct(uint64_t admissible, size_t limit);
size_t carag_sketch_room(size_t limit);
void carag_score_rows(const carag_reader *reader, const float *unit, float *room, const uint32_t *rows, size_t count,
                      float *out_similarities);
void carag_rerank(const carag_reader *reader, carag_scratch *scratch, const carag_near *uppers, size_t count,
                  size_t limit, carag_effort *effort);
void carag_rerank_found(const carag_reader *reader, carag_scratch *scratch, size_t limit, carag_effort *effort);

/* search/exact.c, search/scan.c, hnsw/search.c: each leaves in scratch->found the rows it answers with, a heap over
 * scores of kept vectors. */
void carag_scan_exact(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch,
                      size_t limit, carag_effort *effort);
bool carag_scan_rest(const carag_reader *reader, const carag_selection *rest, const carag_test *done, bool left_out,
                     carag_scratch *scratch, size_t limit, carag_effort *effort);
carag_scan carag_scan_begin(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch,
                            size_t limit, carag_effort *effort);
double carag_scan_rate(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch);
uint32_t carag_probed(const carag_cells *cells, size_t ef);
bool carag_scan_cells(carag_scan *job, uint32_t count);
bool carag_scan_goes_by_words(carag_scan *job);
void carag_scan_leave(carag_scan *job);
void carag_scan_finish(carag_scan *job, size_t limit);
bool carag_search_graph(carag_scan *begun, size_t limit, const carag_limits *limits);

/* search/pool.c */
bool carag_take_from_pool(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch,
                          size_t limit, carag_effort *effort);

/* search/order.c */
void carag_rank_cells(const carag_cells *cells, carag_scratch *scratch);

/* search/plan.c */
bool carag_plan_stops(const carag_reader *reader, const carag_selection *selection, double rate);
double carag_plan_scan(const carag_reader *reader, const carag_selection *selection, size_t wanted);
carag_limits carag_limits_of(const carag_costs *costs, uint64_t budget);
carag_plan carag_plan_choose(const carag_reader *reader, const carag_selection *selection, size_t limit,
                             double out_nanoseconds[CARAG_PLANS]);
carag_plan carag_plan_of_rate(const carag_reader *reader, const carag_selection *selection, double rate);
bool carag_plan_by_words(const carag_scan *job);
uint64_t carag_plan_budget(const carag_scan *job, size_t ef);

#endif
