/* hnsw/hnsw.h - making the graph: of many rows at once, and of one row more. */
#ifndef CARAG_HNSW_H
#define CARAG_HNSW_H

#include "carag_internal.h"
#include "code/code.h"
#include "hnsw/graph.h"

/* hnsw/build.c */
carag_status carag_hnsw_build(carag_graph *graph, const carag_codes *codes, const int64_t *keys, uint32_t rows,
                              uint32_t ef_construction, uint64_t seed, uint32_t threads);

/* hnsw/insert.c */
typedef struct carag_insertion carag_insertion;
carag_insertion *carag_insertion_new(carag_graph *graph, const carag_codes *codes, const int64_t *keys,
                                     uint32_t capacity, uint32_t ef_construction);
void carag_hnsw_insert(carag_insertion *insertion, uint32_t row);
void carag_insertion_free(carag_insertion *insertion);

#endif
