/* hnsw/candidates.h - near rows of every row, from exact products inside overlapping leaves. */
#ifndef CARAG_HNSW_CANDIDATES_H
#define CARAG_HNSW_CANDIDATES_H

#include "carag.h"
#include "code/code.h"
#include "hnsw/graph.h"

#define CARAG_MAX_LEAF_ROWS 2048 /* rows of a leaf; a layer of no more is one leaf, and every pair is compared */

/* Rows that are near each other, all compared with all: members [begin, end) of the group. */
typedef struct carag_leaf {
    uint32_t group;
    size_t begin;
    size_t end;
} carag_leaf;

/* The rows of one layer in overlapping groups around leaders, groups in leaves, and what the leaves found.
 * Everything speaks of positions in `rows`, the layer's rows in ascending order. */
typedef struct carag_cover {
    const carag_codes *codes;
    const uint32_t *rows; /* NULL: position p is row p */
    uint32_t count;
    uint32_t fanout;     /* groups a row is in */
    uint32_t per_leaf;   /* near rows it takes from each */
    uint32_t groups;
    uint32_t *leaders;   /* [groups] positions */
    uint32_t *nearest;   /* [count * fanout] the groups of a row, nearest leader first */
    uint32_t *members;   /* [count * fanout] group by group */
    carag_leaf *leaves;  /* [leaf_count] in order of members */
    size_t leaf_count;
    size_t leaf_capacity;
    uint32_t stripe;     /* rows whose near rows are at hand at a time; before the first others may be asked for */
    uint32_t first, end; /* the positions of the present stripe */
    uint32_t *near;      /* [stripe * fanout * per_leaf]; CARAG_NONE after the last of a leaf */
} carag_cover;

/* Cover `count` > 0 rows, ascending (NULL: rows 0 .. count - 1), by leaves that together hold about `candidates` near
 * rows of each. Nothing fails but memory; destroy it all the same. */
carag_status carag_cover_init(carag_cover *cover, const carag_codes *codes, const uint32_t *rows,
                              uint32_t count, uint32_t candidates, uint64_t seed, uint32_t threads);
void carag_cover_destroy(carag_cover *cover);

/* Find the near rows of the next stripe; *out_more says whether there is one. After the last the lists are released. */
carag_status carag_cover_next(carag_cover *cover, uint32_t threads, bool *out_more);

/* The members of a leaf that are in the stripe, a part of the leaf: positions ascend within one. */
carag_leaf carag_cover_part(const carag_cover *cover, carag_leaf leaf);

static inline uint32_t carag_cover_row(const carag_cover *cover, uint32_t position)
{
    return cover->rows ? cover->rows[position] : position;
}

/* The fanout * per_leaf slots of a row of the stripe: `per_leaf` for each of its groups. */
static inline uint32_t *carag_cover_slots(const carag_cover *cover, uint32_t position)
{
    return cover->near + (size_t)(position - cover->first) * cover->fanout * cover->per_leaf;
}

#endif
