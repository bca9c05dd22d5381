/* write/write.h - what the code that changes an index shares; every function is for the writer. */
#ifndef CARAG_WRITE_H
#define CARAG_WRITE_H

#include "carag_internal.h"
#include "row/row.h"

/* write/room.c */
void carag_copy_rows(const carag_index *index, carag_view *to, const carag_view *from, uint32_t rows);
size_t carag_upper_slots(const carag_params *params, uint32_t first, uint32_t end);
void carag_draw_levels(const carag_params *params, carag_graph *graph, uint32_t first, uint32_t end);

/* write/complete.c: for a view that is not shared yet */
void carag_take_rows(const carag_index *index, carag_view *to, uint32_t first, const carag_view *from,
                     const uint32_t *rows, size_t count);
carag_status carag_complete(const carag_index *index, carag_view *view, uint32_t rows, uint32_t threads);

/* write/refresh.c */
void carag_relabel_begin(carag_index *index);
void carag_relabel_end(carag_index *index);
carag_status carag_replace_catalog(carag_index *index, const _Atomic(uint32_t) *words, uint32_t spare);
carag_status carag_refresh_catalog(carag_index *index, uint32_t classes);
carag_status carag_refresh_cells(carag_index *index, uint32_t threads);

#endif
