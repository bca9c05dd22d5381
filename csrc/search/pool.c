/* search/pool.c - answer under a second policy from the beam of a walk over the graph.
 *
 * The pool of a filtered walk (hnsw/search.c) holds the nearest rows of any word that it met, by their eight-bit codes,
 * and a walk that looks for few admissible rows goes farther than one that looks for as many of more: its pool is wider,
 * and it stops later. So for a wider policy nothing is left to walk.
 */
#include "carag_internal.h"
#include "row/row.h"
#include "search/search.h"

/* Leave the `limit` nearest rows of the pool that the selection admits in scratch->found, a heap over scores of kept
 * vectors. Requires the last search to be one over the graph, for `limit` rows or more, and room for
 * carag_sketch_room(limit) found rows. False when the pool holds too few: what was found is then void. */
bool carag_take_from_pool(const carag_reader *reader, const carag_selection *selection, carag_scratch *scratch,
                          size_t limit, carag_effort *effort)
{
    carag_heap *found = &scratch->found;
    const size_t room = carag_sketch_room(limit);
    found->count = 0;
    for (size_t i = 0; i < scratch->pool_count && found->count < room; i++)
        if (carag_passes(reader, selection, scratch->pool[i].node))
            found->items[found->count++] = scratch->pool[i];
    if (found->count < room && found->count < selection->admissible)
        return false;
    carag_rerank_found(reader, scratch, limit, effort);
    return true;
}
