/* hnsw/link.c - choose the neighbours of a row: Algorithm 4 of Malkov & Yashunin 2018.
 *
 * A candidate is refused when some neighbour already chosen covers it: when, in squared distances 1 -
 * similarity, ALPHA times the way from that neighbour is no longer than the way from the row. ALPHA > 1
 * (DiskANN, Subramanya et al. 2019) keeps more links than the paper's 1 and so finds more at the same ef.
 * Equidistant candidates are always refused: of copies one is kept, and a thousand copies do not fill each
 * other's lists. Refused candidates are not kept to fill lists (keepPrunedConnections is false), as in
 * hnswlib.
 *
 * Written as an elimination: choosing a neighbour scores it against all candidates still standing, in one
 * kernel call, and strikes those it covers; the nearest one left is the next to be chosen.
 *
 * Two kinds of links are kept whatever covers them: pinned ones, the spanning tree of hnsw/graph.h; and on layer 0
 * the links a row has on layer 1. These are long: a search that reached a row of layer 1 in the wrong cluster
 * can leave it with the whole beam, where the greedy walk of layer 1 had to stop. A row has room for both
 * kinds, as it takes at most M children on layer 0 and has at most M links on layer 1.
 */
#include "carag_internal.h"
#include "hnsw/link.h"

#define ALPHA 1.1F    /* a chosen neighbour covers candidates at most 1/ALPHA as far from it as from the row */
#define SHORT_LIST 16 /* entries up to which a list is sorted by insertion */

bool carag_linker_init(carag_linker *linker, carag_graph *graph, const carag_codes *codes,
                       const int64_t *keys, size_t room)
{
    *linker = (carag_linker){.graph = graph, .codes = codes, .keys = keys, .kernel = carag_kernel_get()};
    linker->room = room;
    linker->query = carag_allocate_aligned(codes->stride, 1);
    linker->rows = carag_allocate(room, sizeof *linker->rows);
    linker->dots = carag_allocate(room, sizeof *linker->dots);
    linker->listed = carag_allocate(room, sizeof *linker->listed);
    linker->kept = carag_allocate(room, sizeof *linker->kept);
    linker->chosen = carag_allocate((size_t)graph->M0 + 1, sizeof *linker->chosen);
    return linker->query && linker->rows && linker->dots && linker->listed && linker->kept && linker->chosen;
}

void carag_linker_destroy(carag_linker *linker)
{
    carag_release_aligned(linker->query);
    carag_release(linker->rows);
    carag_release(linker->dots);
    carag_release(linker->listed);
    carag_release(linker->kept);
    carag_release(linker->chosen);
    *linker = (carag_linker){0};
}

/* ---------------------------------------------------------------- nearness */

void carag_linker_aim(carag_linker *linker, uint32_t row)
{
    const uint8_t *bytes = linker->codes->bytes + (size_t)row * linker->codes->stride;
    for (size_t from = 0; from < linker->codes->stride; from += CARAG_CODE_BLOCK)
        for (size_t i = 0; i < CARAG_CODE_BLOCK; i++)
            linker->query[from + i] = (int8_t)(bytes[from + i] ^ 0x80); /* minus 128 */
    linker->aim = row;
}

void carag_linker_score(carag_linker *linker, const uint32_t *rows, size_t count, carag_near *out)
{
    const carag_codes *codes = linker->codes;
    const float scale = codes->scales[linker->aim];
    linker->kernel->dot8(codes->bytes, codes->stride, rows, count, linker->query, codes->stride,
                         linker->dots);
    for (size_t i = 0; i < count; i++)
        out[i] = (carag_near){(scale * codes->scales[rows[i]]) * (float)linker->dots[i], rows[i]};
}

/* Hoare's partition: nothing in [0, cut) is farther than anything in [cut, count); returns cut, 0 < cut <
 * count. Requires count >= 2, and no row twice. */
static size_t partition(const int64_t *keys, carag_near *nears, size_t count)
{
    const carag_near middle = nears[(count - 1) / 2];
    size_t low = 0;
    size_t high = count - 1;
    for (;;) {
        while (carag_is_nearer(keys, nears[low], middle))
            low++;
        while (carag_is_nearer(keys, middle, nears[high]))
            high--;
        if (low >= high)
            return high + 1;
        const carag_near swapped = nears[low];
        nears[low++] = nears[high];
        nears[high--] = swapped;
    }
}

void carag_sort_nears(const int64_t *keys, carag_near *nears, size_t count)
{
    while (count > SHORT_LIST) {
        const size_t cut = partition(keys, nears, count);
        if (cut < count - cut) { /* the larger part is the loop's, so the stack stays short */
            carag_sort_nears(keys, nears, cut);
            nears += cut;
            count -= cut;
        } else {
            carag_sort_nears(keys, nears + cut, count - cut);
            count = cut;
        }
    }
    for (size_t i = 1; i < count; i++) {
        const carag_near item = nears[i];
        size_t hole = i;
        for (; hole > 0 && carag_is_nearer(keys, item, nears[hole - 1]); hole--)
            nears[hole] = nears[hole - 1];
        nears[hole] = item;
    }
}

void carag_keep_nearest(const int64_t *keys, carag_near *nears, size_t count, size_t k)
{
    while (k > 0 && k < count) {
        const size_t cut = partition(keys, nears, count);
        if (cut <= k) {
            nears += cut;
            count -= cut;
            k -= cut;
        } else {
            count = cut;
        }
    }
}

/* ---------------------------------------------------------------- choosing */

static bool is_link_above(const carag_graph *graph, uint32_t row, uint32_t other)
{
    if (graph->levels[row] == 0 || graph->levels[other] == 0)
        return false;
    const _Atomic(uint32_t) *links = carag_graph_links(graph, row, 1);
    for (uint32_t i = 0; i < graph->M; i++)
        if (atomic_load_explicit(&links[i], memory_order_relaxed) == other)
            return true;
    return false;
}

bool carag_is_kept(const carag_graph *graph, uint32_t row, uint32_t other, uint32_t layer)
{
    return carag_graph_is_pinned(graph, row, other, layer) ||
           (layer == 0 && is_link_above(graph, row, other));
}

/* Strike the candidates that `winner` covers; returns how many are left. */
static size_t remove_covered(carag_linker *linker, carag_near winner, carag_near *candidates, bool *kept,
                     size_t count)
{
    const carag_codes *codes = linker->codes;
    carag_linker_aim(linker, winner.node);
    for (size_t i = 0; i < count; i++)
        linker->rows[i] = candidates[i].node;
    linker->kernel->dot8(codes->bytes, codes->stride, linker->rows, count, linker->query, codes->stride,
                         linker->dots);
    const float scale = codes->scales[winner.node];
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        const carag_near candidate = candidates[i];
        const float similarity = (scale * codes->scales[candidate.node]) * (float)linker->dots[i];
        const bool is_diverse =
            similarity < candidate.similarity ||
            (similarity > candidate.similarity && ALPHA * (1.0F - similarity) > 1.0F - candidate.similarity);
        const bool is_kept = kept[i];
        candidates[left] = candidate;
        kept[left] = is_kept;
        left += is_kept || is_diverse;
    }
    return left;
}

uint32_t carag_select_neighbors(carag_linker *linker, carag_near *candidates, size_t count, uint32_t limit,
                                carag_near *out_chosen)
{
    bool *kept = linker->kept;
    uint32_t kept_ahead = 0;
    for (size_t i = 0; i < count; i++)
        kept_ahead += kept[i];
    uint32_t chosen = 0;
    while (count > 0 && chosen < limit) {
        const carag_near first = *candidates++;
        const bool is_kept = *kept++;
        count--;
        kept_ahead -= is_kept;
        if (!is_kept && chosen + kept_ahead >= limit)
            continue;
        out_chosen[chosen++] = first;
        if (chosen < limit && count > 0)
            count = remove_covered(linker, first, candidates, kept, count);
    }
    return chosen;
}

void carag_store_links(carag_graph *graph, uint32_t row, uint32_t layer, const carag_near *chosen,
                       uint32_t count)
{
    const uint32_t limit = carag_graph_limit(graph, layer);
    _Atomic(uint32_t) *links = carag_graph_links(graph, row, layer);
    for (uint32_t i = 0; i < limit; i++)
        atomic_store_explicit(&links[i], i < count ? chosen[i].node : CARAG_NONE, memory_order_release);
}
