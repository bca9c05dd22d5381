/* materialised/materialised.h - an index of the rows alone that a predicate admits, and what they are in the index that
 * they were taken from.
 *
 * The view's own words are all open and its own keys are ranks: what admits a row, and what it is called, is asked of the
 * index at every answer. Ranks are in the order of keys, so ties are broken as the index breaks them.
 */
#ifndef CARAG_MATERIALISED_H
#define CARAG_MATERIALISED_H

#include "carag_internal.h"
#include "policy.h"
#include "row/standing.h"
#include "row/row.h"

/* A row where it was taken from. */
typedef struct carag_origin {
    int64_t key;
    uint32_t row;
} carag_origin;

struct carag_materialised {
    carag_index *of;           /* where the rows were taken from */
    const carag_view *from;    /* its arrays then */
    uint64_t generation;       /* its generation then */
    carag_standing standing;
    carag_test test;       /* of its predicate */
    uint32_t count;        /* rows */
    uint32_t classes;      /* that they were of */
    carag_origin *origins; /* [count] by rank */
    carag_index *index;    /* of the rows alone; empty until it is built */
    carag_view *rows;      /* what it is built from; NULL afterwards */
};

#endif
