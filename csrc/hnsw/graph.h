/* hnsw/graph.h - the graph: layers of links between rows, and the spanning tree that keeps every row reachable.
 *
 * Layer 0 has M0 = 2 M link slots a row; a row of level l owns l further blocks of M slots, numbered
 * upper_first[row] + layer - 1. Unused slots at the end of a block are CARAG_NONE.
 *
 * The spanning tree. On every layer each row but the layer's first keeps a two-way link to its `parent`, an
 * earlier row; pruning never drops such a pinned link. So each layer is strongly connected: every row can be
 * reached from any entry point, by construction and after any change.
 */
#ifndef CARAG_HNSW_GRAPH_H
#define CARAG_HNSW_GRAPH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct carag_graph {
    uint32_t M, M0;
    _Atomic(uint32_t) *links;       /* [capacity * M0] */
    uint32_t *parents;              /* [capacity] on layer 0; CARAG_NONE for row 0 */
    uint8_t *levels;                /* [capacity] carag_level_of(seed, row, M) */
    uint32_t *upper_first;          /* [capacity] */
    _Atomic(uint32_t) *upper_links; /* [upper_capacity * M] */
    uint32_t *upper_parents;        /* [upper_capacity] */
    uint32_t upper_count;           /* upper slots in use: the writer's */
    uint32_t upper_capacity;
    _Atomic(uint32_t) entry_point;  /* a row of the top layer; CARAG_NONE while empty */
} carag_graph;

static inline uint32_t carag_graph_limit(const carag_graph *graph, uint32_t layer)
{
    return layer == 0 ? graph->M0 : graph->M;
}

static inline size_t carag_graph_slot(const carag_graph *graph, uint32_t row, uint32_t layer)
{
    return (size_t)graph->upper_first[row] + layer - 1;
}

static inline _Atomic(uint32_t) *carag_graph_links(const carag_graph *graph, uint32_t row, uint32_t layer)
{
    if (layer == 0)
        return graph->links + (size_t)row * graph->M0;
    return graph->upper_links + carag_graph_slot(graph, row, layer) * graph->M;
}

static inline uint32_t *carag_graph_parent(const carag_graph *graph, uint32_t row, uint32_t layer)
{
    return layer == 0 ? &graph->parents[row] : &graph->upper_parents[carag_graph_slot(graph, row, layer)];
}

static inline bool carag_graph_is_pinned(const carag_graph *graph, uint32_t a, uint32_t b, uint32_t layer)
{
    return *carag_graph_parent(graph, a, layer) == b || *carag_graph_parent(graph, b, layer) == a;
}

/* How many pinned links a row may have before it takes no more children. Two at least, its parent's and one
 * child's, so that the row before a new one, which has no child yet, always has room. */
static inline uint32_t carag_graph_max_pinned(const carag_graph *graph, uint32_t layer)
{
    const uint32_t half = carag_graph_limit(graph, layer) / 2;
    return half < 2 ? 2 : half;
}

#endif
