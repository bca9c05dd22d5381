/* hnsw/link.h - what the bulk build and the insertion of one row share: nearness of rows, and Algorithm 4. */
#ifndef CARAG_HNSW_LINK_H
#define CARAG_HNSW_LINK_H

#include "code/code.h"
#include "heap.h"
#include "hnsw/graph.h"
#include "kernel/kernel.h"

/* Working memory of one thread that links rows. */
typedef struct carag_linker {
    carag_graph *graph;
    const carag_codes *codes;
    const int64_t *keys;
    const carag_kernel *kernel;
    size_t room;        /* entries of the longest list */
    uint32_t aim;       /* the row in `query` */
    int8_t *query;      /* [stride] */
    uint32_t *rows;     /* [room] */
    int32_t *dots;      /* [room] */
    carag_near *listed; /* [room] */
    bool *kept;         /* [room] which candidates must be chosen */
    carag_near *chosen; /* [M0 + 1] */
} carag_linker;

/* Requires room >= M0 + 1. False when out of memory; destroy it all the same. */
bool carag_linker_init(carag_linker *linker, carag_graph *graph, const carag_codes *codes,
                       const int64_t *keys, size_t room);
void carag_linker_destroy(carag_linker *linker);

/* Make `row` the query. */
void carag_linker_aim(carag_linker *linker, uint32_t row);

/* The similarities of the aimed row to rows[0 .. count), count <= room. */
void carag_linker_score(carag_linker *linker, const uint32_t *rows, size_t count, carag_near *out);

/* Sort, nearest first. */
void carag_sort_nears(const int64_t *keys, carag_near *nears, size_t count);

/* Move the k nearest to the front, in no order. Both need rows none twice. */
void carag_keep_nearest(const int64_t *keys, carag_near *nears, size_t count, size_t k);

/* Whether pruning must not drop the link from `row` to `other`: see hnsw/link.c. At most M0 are on layer
 * 0, at most max(2, M / 2) above. */
bool carag_is_kept(const carag_graph *graph, uint32_t row, uint32_t other, uint32_t layer);

/* Algorithm 4: choose at most `limit` neighbours of a row from candidates, nearest first, count <= room,
 * none twice. Those marked in linker->kept are chosen in any case; requires that no more than `limit` are.
 * The chosen come out nearest first; candidates and marks are consumed. The aim moves. */
uint32_t carag_select_neighbors(carag_linker *linker, carag_near *candidates, size_t count, uint32_t limit,
                                carag_near *out_chosen);

/* Store a list of links; readers may be searching. */
void carag_store_links(carag_graph *graph, uint32_t row, uint32_t layer, const carag_near *chosen,
                       uint32_t count);

#endif
