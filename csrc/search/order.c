/* search/order.c - the order in which a query goes through cells: those first whose rows may be nearest. */
#include "carag_internal.h"
#include "search/search.h"

#include <math.h>

#define GRADES 64 /* buckets into which cells are sorted by what their rows hardly exceed */

/* Put the numbers of the cells into scratch->cells, those whose rows may be nearest first; by cell, what their centres
 * give into scratch->nears, and what their rows hardly exceed into scratch->uppers. Sorted into grades only:
 * scratch->grade is by how much a later cell may be above. Once a query: of policies it knows nothing. */
void carag_rank_cells(const carag_cells *cells, carag_scratch *scratch)
{
    carag_query *query = &scratch->query;
    if (query->has_cells)
        return;
    const carag_kernel *kernel = carag_kernel_get();
    float lowest = INFINITY;
    float highest = -INFINITY;
    for (uint32_t from = 0; from < cells->count; from += CARAG_BLOCK) {
        const uint32_t count = cells->count - from < CARAG_BLOCK ? cells->count - from : CARAG_BLOCK;
        for (uint32_t i = 0; i < count; i++)
            scratch->numbers[i] = from + i;
        kernel->dot8(cells->centres, cells->stride, scratch->numbers, count, query->codes, cells->stride,
                     scratch->dots);
        for (uint32_t i = 0; i < count; i++) {
            const carag_cell cell = cells->cells[from + i];
            const float near = query->scale * cell.scale * (float)scratch->dots[i];
            const float upper = near + cells->reach * cell.spread;
            scratch->nears[from + i] = near;
            scratch->uppers[from + i] = upper;
            lowest = upper < lowest ? upper : lowest;
            highest = upper > highest ? upper : highest;
        }
    }
    uint32_t ends[GRADES + 1] = {0};
    const float grades = highest > lowest ? (GRADES - 1) / (highest - lowest) : 0.0F;
    for (uint32_t c = 0; c < cells->count; c++)
        ends[1 + (int32_t)((highest - scratch->uppers[c]) * grades)]++;
    for (int grade = 0; grade < GRADES; grade++)
        ends[grade + 1] += ends[grade];
    for (uint32_t c = 0; c < cells->count; c++)
        scratch->cells[ends[(int32_t)((highest - scratch->uppers[c]) * grades)]++] = c;
    scratch->grade = (highest - lowest) / (GRADES - 1);
    query->has_cells = true;
}
