/* carag_internal.h - what the .c files of the core share; nobody else includes it.
 *
 * Memory comes from carag_allocate and goes through carag_release: the libc names are poisoned below, so a
 * slip does not compile, and tests can fail every single allocation.
 *
 * Arrays, not records. Everything about a row lies at its row number in an array of its own, so a word test touches
 * four bytes, an eight-bit distance one code, and a relabel one word.
 *
 * One writer, many readers. All arrays hang on a `carag_view`. Searches and counts enter (carag_read_begin), take the
 * current view and the number of rows, and leave; they take no lock. Writers hold index->writer. They change in
 * place only what a reader may see half done - words (one atomic each), link slots (one atomic each, old and new
 * neighbours are both rows), rows beyond the number published - and otherwise make a new view, publish it, wait
 * until no reader can hold the old one (carag_retire) and release what it alone held.
 */
#ifndef CARAG_INTERNAL_H
#define CARAG_INTERNAL_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* mkstemp, CLOCK_MONOTONIC and friends under -std=c11; every .c file includes this first */
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "carag.h"
#include "graph.h"
#include "hash.h"
#include "heap.h"
#include "kernel.h"
#include "parallel.h"
#include "policy.h"
#include "visited.h"

#if !defined(CARAG_ALLOW_LIBC)
#pragma GCC poison malloc calloc realloc free
#endif

#define CARAG_NONE UINT32_MAX
#define CARAG_MAX_ROWS (UINT32_MAX - 64)
#define CARAG_MAX_SLACK 16.0F
#define CARAG_WIDEST_BEAM 16 /* a filtered search widens its beam to at most so many times ef */
#define CARAG_SPARE_CLASSES 64 /* that may be made while a call is under way */
#define CARAG_CLOSED_PREDICATE "every pair must test the five control bits; entities must ascend"
#if !defined(CARAG_CELL_ROWS)
#define CARAG_CELL_ROWS 4096 /* a scan of fewer is over before cells are in order; tests make it less */
#endif
#define CARAG_BLOCK 256      /* rows a scan hands to a kernel at a time: their numbers and scores stay in L1 */

_Static_assert(sizeof(float) == 4, "vectors are IEEE binary32");
_Static_assert(sizeof(carag_near) == 8, "eight heap entries share a cache line");
_Static_assert(sizeof(_Atomic(uint32_t)) == 4, "words are saved, and read by kernels, as they are");

/* ---------------------------------------------------------------- rows */

/* One-bit codes: sign of each coordinate of the rotated vector less the rotated centre (bits.c). */
typedef struct carag_bits {
    uint64_t *codes; /* [capacity * words] */
    size_t words;
    carag_bits_factor *factors; /* [capacity] */
    float *centre;              /* [64 * words] rotated */
    float *signs;               /* [carag_rotation_floats(words)] of the rotation */
    uint32_t centred;           /* rows the centre is the mean of */
} carag_bits;

typedef struct carag_moved {
    uint32_t row, home;
} carag_moved;

/* The dictionary of classes, and the rows of each (catalog.c). */
typedef struct carag_catalog {
    uint32_t capacity;
    _Atomic(uint32_t) count;     /* classes in use */
    _Atomic(uint32_t) *words;    /* [capacity] never change once counted */
    carag_terms *terms;          /* [capacity] likewise */
    _Atomic(uint32_t) *live;     /* [capacity] rows of the class now */
    uint32_t homes;              /* classes below this one have home rows */
    uint32_t *first;             /* [homes + 1] the home rows of class c are postings[first[c]] .. [first[c + 1]] */
    uint32_t *postings;          /* [rows] row numbers, ascending within a class */
    uint32_t rows;               /* rows from this one on have no home: the tail */
    uint32_t *classes;           /* [view capacity] of each row, CARAG_NONE when deleted: the writer's */
    carag_moved *moved;          /* [moved_capacity] rows relabelled since, each once */
    uint32_t moved_capacity;
    _Atomic(uint32_t) moved_count;
    uint64_t *is_moved;          /* [rows / 64 + 1] the writer's */
    uint32_t *table;             /* [table_capacity] class by (word, terms): the writer's */
    size_t table_capacity;
} carag_catalog;

/* Where the rows of a cell lie (cells.c). */
typedef struct carag_cell {
    float scale;  /* coordinate j of the centre is about scale * (byte j - 128) */
    float spread; /* root mean square distance of its rows to the centre */
    uint32_t end; /* its members are those from the end of the cell before to this one */
} carag_cell;

typedef struct carag_cells {
    uint32_t count;
    uint32_t rows;     /* rows from this one on are in no cell */
    uint32_t centred;  /* rows there were when centres were taken */
    float reach;       /* how many spreads above its centre a cell hardly holds a row */
    carag_cell *cells; /* [count] */
    uint8_t *centres;  /* [count * stride] eight-bit codes */
    size_t stride;
    uint32_t *members; /* [rows] row numbers, cell after cell, ascending within each */
    bool is_mapped;    /* centres and members are a file's, and may name any row */
} carag_cells;

#define CARAG_SAMPLE_K 10    /* neighbours wanted where costs are measured */
#define CARAG_MANY_FOLD 8    /* many neighbours are so many times few */
#define CARAG_PROMISING 4    /* times what a sketch has room for: what survives of its first block */

/* What a plan is made of, in nanoseconds on this machine; 0 before it was measured (costs.c). Those above
 * `sketch` depend on the rows alone and are kept in the file. */
typedef struct carag_costs {
    uint32_t ef;           /* of a graph search that reaches the target recall */
    float slack;           /* likewise; 0: not tuned */
    uint32_t distances[2]; /* that a graph search computes for few neighbours, and for many; 0: not counted */
    uint32_t sketched[2];  /* rows of a sample, and how many of them survived a sketch; 0: not counted */
    uint32_t reached[2];   /* rows that a scan by cells looks at for few neighbours, and for many */
    uint32_t scored;       /* rows that survive it, for few; 0: none of the three was counted */
    double sketch;         /* a query made ready for one-bit codes */
    double word;           /* a row by its word, neighbours following each other */
    double bits;           /* a row by its one-bit code */
    double survivors;      /* of a sketch, a factor of e in rows, in units of its room: a number, not a time */
    double code_in_order;  /* a row by its eight-bit code, neighbours following each other */
    double code;           /* likewise, rows at random */
    double exact_row;      /* a row of an exact search, class by class */
    double vector;         /* a row by what is kept of its vector, at random */
    double beyond;         /* what a scan by cells takes, in units of what its parts do: a number, not a time */
    double graph_distance; /* a distance of a graph search, all included */
} carag_costs;

/* What a reader needs, reached by one pointer. */
typedef struct carag_view {
    _Atomic(uint32_t) rows;   /* stored after what they hold */
    uint32_t capacity;        /* rows there is room for */
    void *vectors;            /* [capacity * vector_bytes]: float or binary16, padded with zeros; NULL for CARAG_INT8 */
    _Atomic(uint32_t) *words; /* relaxed in loops, acquire at emission, release on relabel */
    carag_terms *terms;
    int64_t *keys;
    carag_codes codes;
    carag_bits bits;
    carag_graph graph;
    carag_catalog *catalog;
    carag_cells *cells; /* NULL: too few rows */
    carag_costs costs;
} carag_view;

struct carag_index {
    carag_params params;
    uint32_t M0;
    size_t stride;       /* floats, or halves, from one vector to the next: dim rounded up to 16 */
    size_t vector_bytes; /* the same in bytes; 0 for CARAG_INT8 */

    _Atomic(carag_view *) view;
    _Atomic(uint32_t) live;

    /* Readers, counted on the side they entered on; a writer flips the side and waits for the other to empty. */
    _Atomic(uint32_t) side;
    _Atomic(uint32_t) readers[2];
    _Atomic(uint32_t) relabels; /* odd while words and class counts are being changed */
    pthread_mutex_t writer;

    /* Key to row: open addressing, linear probing, live rows only */
    pthread_rwlock_t map_lock;
    uint32_t *map;       /* [map_capacity] rows, or CARAG_NONE */
    size_t map_capacity; /* a power of two, more than twice `live` */
    atomic_bool map_waits; /* an index was opened from a file, and its map is made when a key is first asked for */

    /* A file's bytes under some arrays of the view; released with the index */
    unsigned char *mapping;
    size_t mapping_size;
    uint32_t *sums; /* the checksum each section was opened with, NULL when not mapped (map.c) */

    _Atomic(struct carag_scratch *) scratches[8]; /* working memory between calls (scratch.c) */
};

/* What a search works on from begin to end. */
typedef struct carag_reader {
    carag_index *index;
    const carag_view *view;
    uint32_t rows;
    uint32_t side;
} carag_reader;

/* ---------------------------------------------------------------- one call */

/* A predicate made ready: policy.h tests rows and classes against it. */
typedef struct carag_selection {
    carag_test test;
    uint32_t *classes; /* [room] admissible classes that have or had rows */
    uint32_t count;
    uint32_t room;
    uint64_t admissible;
    uint64_t labelled; /* rows whose word passes, whatever their terms */
    bool is_exact;     /* false: relabels ran all the while, so `admissible` may be off */
    bool test_terms;   /* some class passes the pairs and not the terms: rows must be asked about both */
} carag_selection;

/* A query in every shape that a plan reads. */
typedef struct carag_query {
    float *unit;         /* [stride] unit length, padding zero */
    int8_t *codes;       /* [codes.stride] */
    float scale;         /* unit[j] is about scale * codes[j] */
    float error;         /* at least the length of what that lost */
    bool has_bits;       /* the rest is filled on demand (bits.c) */
    float *rotated;      /* [64 words], and as much again to work in */
    uint64_t *planes;    /* [CARAG_QUERY_PLANES * words] */
    uint8_t *values;     /* [64 words] */
    carag_bits_query bits;
    float base, slope, intercept, tilt, spread; /* how a sum over set bits becomes an upper estimate */
} carag_query;

/* How much a call needs. */
typedef struct carag_room {
    uint32_t rows;    /* the capacity of the view */
    size_t pool;      /* widest beam over the graph; 0 without one */
    size_t found;     /* rows kept by score */
    uint32_t classes;
    uint32_t cells;
} carag_room;

/* Working memory of one thread of one call; nothing in a search allocates. */
typedef struct carag_scratch {
    carag_room room;
    carag_visited visited; /* [rows] */
    carag_visited crossed; /* [rows] */
    uint32_t *bridges;     /* [M0] */
    carag_near *pool;      /* [pool + 1] the beam, nearest first */
    uint32_t *expanded;    /* [pool + 1] 1 where the pool's row was expanded */
    carag_heap found;      /* [found] farthest on top: the best admissible rows so far */
    carag_near *kept;      /* [rows] rows an exact search may not yet rule out, or that are scored at last */
    uint32_t *numbers;     /* [CARAG_BLOCK, or M0 + 1 if more] row numbers for a kernel, in and out */
    int32_t *dots;         /* likewise */
    float *scores;         /* likewise */
    float *vector;         /* [stride] a kept vector widened */
    uint32_t *classes;     /* [classes] */
    uint32_t *cells;       /* [cells] in the order of a query */
    float *uppers;         /* [cells] */
    carag_query query;
} carag_scratch;

/* What one query did. */
typedef struct carag_effort {
    uint64_t estimates;
    uint64_t distance_computations;
    uint64_t tests; /* of words, across failing rows */
    uint64_t hops;
    uint64_t ef;
} carag_effort;

/* To the nearest integer, ties to even, of |x| < 2^22: as rintf, but the compiler can do many at a time. */
static inline float carag_round(float x)
{
    return (x + 0x1.8p23F) - 0x1.8p23F;
}

/* ---------------------------------------------------------------- the files */

/* alloc.c */
void *carag_allocate(size_t count, size_t size); /* NULL on overflow or when out of memory; count 0 gives memory */
void *carag_allocate_zeroed(size_t count, size_t size);
void *carag_allocate_aligned(size_t count, size_t size); /* 64-byte aligned; free with carag_release_aligned */
void carag_release(void *memory);
void carag_release_aligned(void *memory);

/* status.c */
carag_status carag_fail(carag_fault *out_fault, carag_status status, uint64_t row, const char *what);

/* kernel.c */
carag_status carag_kernel_resolve(const carag_kernel **out_kernel, carag_fault *out_fault);
const carag_kernel *carag_kernel_get(void); /* requires an earlier successful carag_kernel_resolve */

/* index.c */
carag_status carag_params_verify(const carag_params *params, carag_fault *out_fault);
carag_reader carag_read_begin(carag_index *index);
void carag_read_end(const carag_reader *reader);
carag_view *carag_view_new(const carag_index *index, uint32_t capacity, uint32_t upper_capacity);
carag_view *carag_view_share(const carag_view *view);
carag_status carag_view_new_bits(const carag_index *index, carag_view *view);
carag_status carag_view_new_graph(const carag_index *index, carag_view *view, uint32_t upper_capacity);
void carag_view_free(const carag_index *index, carag_view *view, const carag_view *heir);
void carag_publish(carag_index *index, carag_view *view);

/* keymap.c */
uint32_t carag_map_find(const carag_index *index, const int64_t *keys, uint32_t rows, int64_t key);
void carag_map_find_many(const carag_index *index, const int64_t *keys, uint32_t rows, const int64_t *wanted,
                         size_t count, uint32_t *out_rows);
carag_status carag_map_ready(carag_index *index, carag_fault *out_fault);
carag_status carag_map_reserve(carag_index *index, const carag_view *view, uint32_t rows, size_t wanted);
bool carag_map_insert(carag_index *index, const int64_t *keys, uint32_t row);
void carag_map_remove(carag_index *index, const int64_t *keys, int64_t key);

/* codes.c */
float carag_encode_unit(const float *unit, size_t padded, uint8_t *out_bytes, size_t stride);
carag_status carag_normalise(const float *vector, uint32_t dim, float *out_unit, uint64_t row, carag_fault *out_fault);
void carag_keep_vector(const carag_index *index, carag_view *view, uint32_t row, const float *unit);
void carag_widen_vector(const carag_index *index, const carag_view *view, uint32_t row, float *out_vector);
void carag_query_encode(const carag_index *index, const carag_codes *codes, carag_query *query);
float carag_score(const carag_index *index, const carag_view *view, const carag_kernel *kernel, const float *query,
                  float *room, uint32_t row);

/* bits.c */
size_t carag_bits_words(uint32_t dim);
size_t carag_rotation_floats(size_t words);
void carag_rotation_init(float *out_signs, size_t words);
void carag_rotate(float *vector, const float *signs, size_t words);
carag_status carag_bits_encode(const carag_index *index, carag_view *view, uint32_t first, uint32_t rows,
                               uint32_t threads);
void carag_query_sketch(const carag_bits *bits, size_t dim, carag_query *query, float confidence);

/* catalog.c */
carag_catalog *carag_catalog_new(const _Atomic(uint32_t) *words, const carag_terms *terms, uint32_t rows,
                                 uint32_t capacity, uint32_t expected, uint32_t spare);
carag_catalog *carag_catalog_room(uint32_t classes, uint32_t capacity);
carag_status carag_catalog_complete(carag_catalog *catalog, const _Atomic(uint32_t) *words, carag_terms *out_terms,
                                    uint32_t rows, uint32_t classes);
void carag_catalog_free(carag_catalog *catalog);
uint32_t carag_catalog_slack(uint32_t rows); /* how many rows may be moved, or in the tail */
uint32_t carag_catalog_find(const carag_catalog *catalog, uint32_t word, carag_terms terms);
uint32_t carag_catalog_add(carag_catalog *catalog, uint32_t word, carag_terms terms);
void carag_select(const carag_reader *reader, carag_selection *selection);
bool carag_is_open(const carag_reader *reader, const carag_test *test, uint32_t row, memory_order order);

/* A walk over the rows a selection may admit, block by block, their words tested. */
typedef struct carag_walk {
    const carag_reader *reader;
    const carag_selection *selection;
    uint32_t class_at, offset; /* the class in selection->classes, and how many of its home rows are done */
    uint32_t moved, moved_end;
    uint32_t tail;
} carag_walk;
carag_walk carag_walk_begin(const carag_reader *reader, const carag_selection *selection);
size_t carag_walk_next(carag_walk *walk, const carag_kernel *kernel, uint32_t *out_rows);

/* cells.c */
carag_cells *carag_cells_room(uint32_t count, uint32_t rows, size_t stride, bool is_mapped);
carag_status carag_cells_new(const carag_codes *codes, uint32_t rows, uint32_t threads, carag_cells **out_cells);
void carag_cells_free(carag_cells *cells);
bool carag_cells_are_sound(const carag_cells *cells);
carag_status carag_refresh_cells(carag_index *index, uint32_t threads);
float carag_cells_rank(const carag_cells *cells, carag_scratch *scratch);

/* add.c */
size_t carag_upper_slots(const carag_params *params, uint32_t first, uint32_t end);
void carag_draw_levels(const carag_params *params, carag_graph *graph, uint32_t first, uint32_t end);

/* change.c */
void carag_relabel_begin(carag_index *index);
void carag_relabel_end(carag_index *index);
carag_status carag_refresh_catalog(carag_index *index, uint32_t classes);

/* scan.c, sketch.c, hnsw_search.c: each leaves in scratch->found the rows it answers with, a heap over scores of
 * kept vectors. */
bool carag_is_direct(uint64_t admissible, size_t most);
void carag_rerank(const carag_reader *reader, carag_scratch *scratch, const carag_near *uppers, size_t count,
                  size_t most, carag_effort *effort);
void carag_rerank_found(const carag_reader *reader, carag_scratch *scratch, size_t most, carag_effort *effort);
size_t carag_sketch_room(size_t most);
typedef enum carag_order { CARAG_BY_CLASSES, CARAG_BY_CELLS, CARAG_BY_PROBE } carag_order;
carag_order carag_scan_order(const carag_view *view, const carag_selection *selection);
void carag_scan_exact(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch, size_t most,
                      carag_effort *effort);
void carag_scan_sketch(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch,
                       size_t most, carag_effort *effort);
/* How far a graph search may go. */
typedef struct carag_limits {
    size_t ef;         /* width of its pool, where everything is admissible */
    float slack;       /* times the squared distance of the last row wanted; INFINITY: until the pool is spent */
    uint64_t budget;   /* distances */
    double least_rate; /* of rows near the query that are admissible */
} carag_limits;

double carag_plan_cells(const carag_reader *reader, const carag_selection *selection, size_t wanted);
carag_limits carag_limits_of(const carag_costs *costs, uint64_t budget);
bool carag_search_graph(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch,
                        size_t most, const carag_limits *limits, carag_effort *effort);

/* hnsw_build.c, hnsw_insert.c */
carag_status carag_hnsw_build(carag_graph *graph, const carag_codes *codes, const int64_t *keys, uint32_t rows,
                              uint32_t ef_construction, uint64_t seed, uint32_t threads);
typedef struct carag_insertion carag_insertion;
carag_insertion *carag_insertion_new(carag_graph *graph, const carag_codes *codes, const int64_t *keys,
                                     uint32_t capacity, uint32_t ef_construction);
void carag_hnsw_insert(carag_insertion *insertion, uint32_t row);
void carag_insertion_free(carag_insertion *insertion);

/* scratch.c */
carag_scratch *carag_scratch_take(carag_index *index, const carag_view *view, const carag_room *room);
void carag_scratch_give(carag_index *index, carag_scratch *scratch);
void carag_scratches_free(carag_index *index);

/* costs.c */
void carag_costs_measure(carag_index *index, carag_view *view, bool tunes);

/* plan.c */
carag_plan carag_plan_choose(const carag_reader *reader, const carag_selection *selection, size_t most, size_t ef,
                             double out_nanoseconds[CARAG_PLANS]);
uint64_t carag_plan_budget(const carag_view *view, const double nanoseconds[CARAG_PLANS]);

/* map.c */
carag_status carag_file_settle(carag_index *index, carag_fault *out_fault);

/* check.c */
bool carag_centre_is_sound(const carag_bits *bits, uint32_t rows);
uint32_t carag_check_view(const carag_index *index, const carag_view *view, carag_fault *out_fault);

#endif
