/* row/standing.h - a predicate kept beyond its call, and the instants between which every class answers it alike.
 */
#ifndef CARAG_STANDING_H
#define CARAG_STANDING_H

#include "carag_internal.h"
#include "policy.h"

struct carag_reader;

/* From the first of a pair to before the second, no class of a word that passes opens or expires. */
typedef struct carag_window {
    uint32_t public_from, public_until;
    uint32_t alive_from, alive_until;
} carag_window;

typedef struct carag_standing {
    carag_predicate predicate; /* its entities and audiences are these */
    uint32_t *entities;
    uint64_t *audiences;
    carag_window window;
} carag_standing;

/* row/standing.c */
carag_status carag_standing_copy(const carag_predicate *predicate, carag_standing *out_standing);
void carag_standing_release(carag_standing *standing);
void carag_standing_find_window(const struct carag_reader *reader, carag_standing *standing);
bool carag_stands_for(const carag_standing *standing, const carag_predicate *predicate);

#endif
