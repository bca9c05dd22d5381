/* row/kept.h - selections kept between calls, so that the classes are not asked again until something changes.
 */
#ifndef CARAG_KEPT_H
#define CARAG_KEPT_H

#include "row/standing.h"

#include <pthread.h>

struct carag_selection;

#define CARAG_KEPT 8 /* selections an index keeps */
#define CARAG_KEPT_SEEN 64 /* predicates it remembers to have been asked: one is kept when it is asked again */
#if !defined(CARAG_KEPT_CLASSES)
#define CARAG_KEPT_CLASSES 1024 /* classes below which asking them all costs less than a look here; tests make it less */
#endif

/* A selection as it was at a generation of the index. */
typedef struct carag_kept_selection {
    carag_standing standing;
    const struct carag_view *view;
    uint64_t generation;
    uint64_t used; /* when it was last used, in uses of any of them; 0: empty */
    uint64_t hash; /* of its predicate, but for the instants */
    uint64_t admissible, labelled;
    uint32_t *classes; /* [count] */
    uint32_t count;
    bool test_terms;
} carag_kept_selection;

typedef struct carag_kept {
    pthread_mutex_t lock; /* held to look, copy and replace, never to ask */
    uint64_t uses;
    uint64_t seen[CARAG_KEPT_SEEN];
    carag_kept_selection selections[CARAG_KEPT];
} carag_kept;

/* row/kept.c */
uint64_t carag_kept_hash(const carag_predicate *predicate);
void carag_kept_init(carag_kept *kept);
void carag_kept_release(carag_kept *kept);
void carag_select_again(const struct carag_reader *reader, struct carag_selection *selection);

#endif
