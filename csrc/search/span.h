/* search/span.h - rows that follow each other in one pack and one cell: which they are, and what they may score at most.
 *
 * Workload: some ten nanoseconds for a span. Inline, or handing a span over in memory costs as much as testing its words.
 */
#ifndef CARAG_SEARCH_SPAN_H
#define CARAG_SEARCH_SPAN_H

#include "search/search.h"

#include <math.h>

typedef struct carag_span {
    const uint8_t *pack;
    const uint32_t *rows; /* [count] that of lane `first` is the first; costs a line of cache, where they are positions */
    uint32_t first, count;
    uint32_t position;    /* of the first */
    bool is_ordered;      /* rows are positions: they need not be looked up */
} carag_span;

/* Those from a position on, which `end` may end sooner. `room` is where they are listed when they are
 * in no cell. */
static inline carag_span carag_span_at(const carag_view *view, uint32_t position, uint32_t end,
                                       uint32_t room[CARAG_PACK])
{
    const carag_cells *cells = view->cells;
    const uint32_t first = position % CARAG_PACK;
    carag_span span = {.pack = view->bits.packs + position / CARAG_PACK * carag_pack_bytes(8 * view->bits.words),
                       .rows = room,
                       .first = first,
                       .count = end - position < CARAG_PACK - first ? end - position : CARAG_PACK - first,
                       .position = position};
    if (cells && position < cells->rows) {
        span.rows = cells->members + position;
        span.is_ordered = cells->is_ordered;
        return span;
    }
    for (uint32_t i = 0; i < span.count; i++)
        room[i] = position + i;
    return span;
}

/* The row of a lane. */
static inline uint32_t carag_span_row(const carag_span *span, uint32_t lane)
{
    return span->is_ordered ? span->position + (lane - span->first) : span->rows[lane - span->first];
}

/* Those of its rows that are marked, as bits: bit i is rows[i]. */
static inline uint32_t carag_span_marked(const carag_span *span, const uint64_t *marks)
{
    if (span->is_ordered) {
        const uint32_t bit = span->position % 64;
        const uint64_t *at = marks + span->position / 64;
        const uint64_t bits = bit ? at[0] >> bit | at[1] << (64 - bit) : at[0];
        return (uint32_t)(bits & (((uint64_t)1 << span->count) - 1));
    }
    uint32_t marked = 0;
    for (uint32_t i = 0; i < span->count; i++)
        marked |= (uint32_t)(marks[span->rows[i] / 64] >> span->rows[i] % 64 & 1) << i;
    return marked;
}

/* The lanes of its rows. */
static inline uint32_t carag_span_lanes(const carag_span *span)
{
    return (uint32_t)(((uint64_t)1 << span->count) - 1) << span->first;
}

/* The same for all rows of a pack, with the error of an estimate multiplied by `confidence`. */
static inline carag_pack_sight carag_sight_of_pack(carag_sight centre, float confidence)
{
    carag_pack_sight sight;
    for (uint32_t lane = 0; lane < CARAG_PACK; lane++) {
        sight.near[lane] = centre.near;
        sight.away[lane] = confidence * centre.away;
    }
    return sight;
}

/* Of these lanes, those whose upper estimate reaches the floor. */
static inline uint32_t carag_span_estimate(const carag_span *span, uint32_t lanes, const carag_bits *bits,
                                           const carag_query *query, const carag_pack_sight *sight, float floor,
                                           float out_uppers[CARAG_PACK])
{
    return carag_kernel_get()->estimate(span->pack, 8 * bits->words, &query->lookup, lanes, sight, floor, out_uppers);
}

/* The unit query relative to the centre of a cell. Requires cells ranked. */
static inline carag_sight carag_sight_of(const carag_cells *cells, const carag_scratch *scratch, uint32_t cell)
{
    const float near = scratch->nears[cell];
    const float length = cells->cells[cell].length;
    const float squares = 1.0F + length * length - 2.0F * near;
    return (carag_sight){near, sqrtf(squares > 0.0F ? squares : 0.0F)}; /* fmaxf is a call, and there are thousands */
}

#endif
