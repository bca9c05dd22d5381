/* cost/cost.h - what a search costs on this index and this machine; every function is the writer's. */
#ifndef CARAG_COST_H
#define CARAG_COST_H

#include "carag_internal.h"
#include "row/row.h"

/* cost/measure.c, cost/tune.c */
void carag_costs_measure(carag_index *index, carag_view *view);
void carag_costs_tune(carag_index *index, carag_view *view);

#endif
