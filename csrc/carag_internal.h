/* carag_internal.h - what the .c files of the core share; nobody else includes it.
 *
 * Memory comes from carag_allocate and goes through carag_release: the libc names are poisoned below, so a
 * slip does not compile, and tests can fail every single allocation.
 *
 * Rows and the graph are arrays, not records, each at the row number (`node`), so a word test touches four
 * bytes. Layer 0 has M0 = 2 M link slots a row; a row of level l owns l further blocks of M slots ("upper
 * slots", numbered upper_first[node] + layer - 1). Unused slots at the end of a block are CARAG_NONE.
 *
 * The spanning tree. On every layer each row but the layer's first keeps a two-way link to its `parent`, an
 * earlier row; pruning never drops such a pinned link. So each layer is strongly connected: every row can be
 * reached from any entry point, by construction and after any change, and carag_index_check proves it by
 * looking at one row at a time (the parent is an earlier row, and both ends hold the link).
 */
#ifndef CARAG_INTERNAL_H
#define CARAG_INTERNAL_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* pthread_rwlock_t, mkstemp and friends under -std=c11; every .c file includes this first */
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "carag.h"
#include "hash.h"
#include "heap.h"
#include "kernel.h"
#include "policy.h"
#include "visited.h"

#if !defined(CARAG_ALLOW_LIBC)
#pragma GCC poison malloc calloc realloc free
#endif

#define CARAG_NONE UINT32_MAX
#define CARAG_MAX_ROWS (UINT32_MAX - 64)
#define CARAG_WIDEST_BEAM 16 /* a filtered search widens its beam to at most so many times ef */

_Static_assert(sizeof(float) == 4, "vectors are IEEE binary32");
_Static_assert(sizeof(carag_near) == 8, "eight heap entries share a cache line");

/* The arrays that grow together, `capacity` rows of each. */
typedef struct carag_columns_owned {
    float *vectors;            /* [capacity * stride], unit length, padding zero, 64-byte aligned */
    _Atomic(uint32_t) *words;  /* relaxed in loops, acquire at emission, release on relabel */
    uint32_t *public_at;
    int64_t *keys;
    uint8_t *levels;
    uint32_t *links0;          /* [capacity * M0] */
    uint32_t *parents0;        /* CARAG_NONE for row 0 */
    uint32_t *upper_first;     /* first upper slot, meaningful where levels > 0 */
} carag_columns_owned;

struct carag_index {
    /* Settings */
    carag_params params;
    uint32_t M0;
    size_t stride; /* floats from one vector to the next: dim rounded up to a cache line */

    /* Rows and layer 0 */
    carag_columns_owned at;
    uint32_t rows;
    uint32_t capacity;
    uint32_t live;

    /* Layers above 0 */
    uint32_t *upper_links;   /* [upper_capacity * M] */
    uint32_t *upper_parents; /* [upper_capacity] */
    uint32_t upper_count;
    uint32_t upper_capacity;
    uint32_t entry_point; /* CARAG_NONE while empty */
    uint32_t max_level;

    /* Key to row: open addressing, linear probing, live rows only */
    uint32_t *map;       /* [map_capacity] rows, or CARAG_NONE */
    size_t map_capacity; /* a power of two, more than twice `live` */

    /* Searches, lookups and relabels share it; add, delete and save take it alone */
    pthread_rwlock_t lock;
};

/* Working memory of one call; nothing in a search or an insertion allocates. */
typedef struct carag_scratch {
    carag_visited visited;
    carag_heap candidates; /* nearest on top; room for every row */
    carag_heap beam;       /* farthest on top; the ef nearest rows, admissible or not */
    carag_heap results;    /* farthest on top; admissible rows only */
    carag_near *shrink;    /* [M0 + 1] the links of a full row and the one more that wants in */
    carag_near *selected;  /* [M0 + 1] what select_neighbors keeps */
    uint32_t *fresh;       /* [M0] unvisited neighbours of the row being expanded */
    float *query;          /* [stride] unit length, padding zero */
} carag_scratch;

/* What one query did. */
typedef struct carag_effort {
    uint64_t distance_computations;
    uint64_t hops;
    uint64_t ef;
} carag_effort;

/* alloc.c */
void *carag_allocate(size_t count, size_t size); /* NULL on overflow or when out of memory; count 0 gives memory */
void *carag_allocate_zeroed(size_t count, size_t size);
void *carag_allocate_aligned(size_t count, size_t size); /* 64-byte aligned; free with carag_release_aligned */
void carag_release(void *memory);
void carag_release_aligned(void *memory);

/* status.c */
carag_status carag_fail(carag_fault *out_fault, carag_status status, uint64_t row, const char *what);

/* kernel.c */
carag_status carag_kernel_resolve(carag_dot_fn *out_dot, carag_fault *out_fault);
carag_dot_fn carag_kernel_dot(void); /* requires an earlier successful carag_kernel_resolve */

/* index.c */
carag_status carag_params_verify(const carag_params *params, carag_fault *out_fault);
carag_status carag_index_reserve(carag_index *index, size_t rows, size_t upper_slots);
carag_status carag_normalise(const float *vector, uint32_t dim, float *out_unit, uint64_t row, carag_fault *out_fault);
carag_status carag_scratch_init(carag_scratch *scratch, const carag_index *index, size_t rows, size_t beam,
                                size_t results);
void carag_scratch_destroy(carag_scratch *scratch);

/* keymap.c */
uint32_t carag_map_find(const carag_index *index, int64_t key); /* CARAG_NONE when absent */
bool carag_map_insert(carag_index *index, uint32_t node);       /* false when the key is taken; requires room */
void carag_map_remove(carag_index *index, int64_t key);         /* requires presence */

/* hnsw_insert.c */
void carag_hnsw_insert(carag_index *index, carag_scratch *scratch, uint32_t node);

/* hnsw_search.c */
carag_near carag_greedy(const carag_index *index, carag_scratch *scratch, const float *query, carag_near from,
                        uint32_t layer, carag_effort *effort);
void carag_search_layer(const carag_index *index, carag_scratch *scratch, const float *query, carag_near from,
                        size_t ef, uint32_t layer);
bool carag_search_graph(const carag_index *index, carag_scratch *scratch, const float *query,
                        const carag_predicate *predicate, size_t ef, uint64_t admissible, carag_effort *effort);

/* scan.c */
uint64_t carag_count_admissible(const carag_index *index, const carag_predicate *predicate);
void carag_scan(const carag_index *index, carag_heap *results, const float *query,
                const carag_predicate *predicate, size_t limit, carag_effort *effort);

/* check.c */
uint32_t carag_check_unlocked(const carag_index *index, carag_fault *out_fault);

/* Access */
static inline const float *carag_vector(const carag_index *index, uint32_t node)
{
    return index->at.vectors + (size_t)node * index->stride;
}

static inline float carag_similarity(const carag_index *index, carag_dot_fn dot, const float *query, uint32_t node)
{
    return dot(query, carag_vector(index, node), index->params.dim);
}

static inline bool carag_is_open(const carag_index *index, const carag_predicate *predicate, uint32_t node,
                                 memory_order order)
{
    const uint32_t word = atomic_load_explicit(&index->at.words[node], order);
    return carag_is_admissible(predicate, word, index->at.public_at[node]);
}

static inline uint32_t carag_degree_limit(const carag_index *index, uint32_t layer)
{
    return layer == 0 ? index->M0 : index->params.M;
}

static inline size_t carag_upper_slot(const carag_index *index, uint32_t node, uint32_t layer)
{
    return (size_t)index->at.upper_first[node] + layer - 1;
}

static inline uint32_t *carag_links(const carag_index *index, uint32_t node, uint32_t layer)
{
    if (layer == 0)
        return index->at.links0 + (size_t)node * index->M0;
    return index->upper_links + carag_upper_slot(index, node, layer) * index->params.M;
}

static inline uint32_t *carag_parent(const carag_index *index, uint32_t node, uint32_t layer)
{
    return layer == 0 ? &index->at.parents0[node] : &index->upper_parents[carag_upper_slot(index, node, layer)];
}

#endif
