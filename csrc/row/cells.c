/* row/cells.c - group near rows, so that a scan can begin near the query and stop when nothing better is left.
 *
 * k-means over the eight-bit codes: some centres, each row in the cell of the nearest. A query's similarity to the rows
 * of a cell is that to the centre, give or take: rows are `spread` away from it (root mean square), in directions of
 * which few point the query's way, so hardly any row is above
 *
 *      <query, centre> + reach * spread
 *
 * A scan takes the cells in the order of that number and stops where it falls below what has been found. Since what has
 * been found are admissible rows only, the stop adapts to the policy by itself: near rows admissible, and it comes
 * early; the query's own neighbourhood closed, and it comes late or never. `reach` is tuned when an index is built
 * (cost/tune.c). Rejected: probing a fixed number of cells, as inverted files do; it must be set for the worst policy.
 * Rejected: a reach for each cell, learned from sampled queries; too few of them meet a cell.
 *
 * One-bit codes are about the centres of cells (code/bits.c), so new cells need new codes.
 *
 * A cell lists rows whatever their words, so relabelling and deleting leave cells alone. Rows added later belong to no
 * cell until there are many: then they join the nearest, and centres are computed again when rows have doubled. Like
 * the catalog, cells never change once they are published.
 *
 * Centres depend on inadmissible rows, too; hence exact and certified answers never read them.
 */
#include "carag_internal.h"
#include "code/code.h"
#include "parallel.h"
#include "ranks.h"
#include "row/row.h"

#include <math.h>
#include <string.h>

#define CELLS_PER_ROOT 3.0      /* cells per square root of the rows */
#define MAX_CELLS 8192          /* cells of an index */
#define SAMPLED_PER_CELL 32     /* rows per cell from which centres are computed */
#define ROUNDS 4                /* iterations of k-means */
#define BLOCK 64                /* rows of one matrix product */
#define UNTUNED_REACH 0.6F      /* spreads: the reach of cells until it is tuned */
#define MIN_CENTRE_LENGTH 1e-6F /* a mean shorter than this has no direction */

/* ---------------------------------------------------------------- memory */

void carag_cells_free(carag_cells *cells)
{
    if (!cells)
        return;
    carag_release_aligned(cells->centres);
    carag_release_aligned(cells->members);
    carag_release(cells->cells);
    carag_release(cells);
}

/* Cells with room for `count` of them and `rows` members; NULL when out of memory. */
carag_cells *carag_cells_room(uint32_t count, uint32_t rows, size_t stride)
{
    carag_cells *cells = carag_allocate_zeroed(1, sizeof *cells);
    if (!cells)
        return NULL;
    cells->count = count;
    cells->rows = rows;
    cells->stride = stride;
    cells->reach = UNTUNED_REACH;
    cells->cells = carag_allocate_zeroed(count, sizeof *cells->cells);
    cells->centres = carag_allocate_aligned(count, stride);
    cells->members = carag_allocate_aligned(rows, sizeof *cells->members);
    if (cells->cells && cells->centres && cells->members)
        return cells;
    carag_cells_free(cells);
    return NULL;
}

/* See whether rows are in the order of their cells, as those of a first batch are. */
void carag_cells_note_order(carag_cells *cells)
{
    uint32_t row = 0;
    while (row < cells->rows && cells->members[row] == row)
        row++;
    cells->is_ordered = row == cells->rows;
}

/* Whether a rank of them is a number, and every row up to those that are in none is a member once, ascending within its
 * cell. That none is missing is told by a sum of hashes. */
bool carag_cells_are_sound(const carag_cells *cells)
{
    uint64_t difference = 0;
    uint32_t at = 0;
    for (uint32_t c = 0; c < cells->count; c++) {
        const carag_cell cell = cells->cells[c];
        if (!(cell.scale >= 0.0F && cell.scale <= 2.0F) || !(cell.spread >= 0.0F && cell.spread <= 2.0F) ||
            !(cell.length >= 0.0F && cell.length <= 2.0F) || cell.end < at || cell.end > cells->rows)
            return false;
        for (const uint32_t begin = at; at < cell.end; at++) {
            const uint32_t row = cells->members[at];
            if (row >= cells->rows || (at > begin && cells->members[at - 1] >= row))
                return false;
            difference += carag_mix((uint64_t)row + 1) - carag_mix((uint64_t)at + 1);
        }
    }
    return at == cells->rows && difference == 0 && cells->reach > 0.0F && cells->reach <= 2.0F;
}

/* ---------------------------------------------------------------- the nearest centre */

/* Rows that look for their centres; row i is sample[i], or first + i without a sample. */
typedef struct assignment {
    const carag_codes *codes;
    carag_cells *cells;
    const uint32_t *sample;
    uint32_t first, count;
    uint8_t *products;     /* [cells + threads * BLOCK] codes: the centres, then each worker's rows */
    uint32_t *iota;        /* [cells + threads * BLOCK] */
    int32_t *dots;         /* [threads * BLOCK * cells] */
    float *similarities;   /* [threads * padded] */
    uint64_t *best;        /* [threads * padded] */
    void *workspaces;      /* [threads * workspace] */
    size_t padded, workspace;
    float *halves;         /* [cells] half the squared length of each centre */
    uint32_t *nearest;     /* [count] */
    float *gaps;           /* [count] squared distance to it */
    uint32_t *first_of;    /* [cells + 1] */
    uint32_t *listed;      /* [count] what is assigned, cell after cell */
    float *means;          /* [threads * stride] */
    uint32_t threads;
} assignment;

static uint32_t row_of(const assignment *job, uint32_t i)
{
    return job->sample ? job->sample[i] : job->first + i;
}

static void load_centres(assignment *job)
{
    carag_cells *cells = job->cells;
    memcpy(job->products, cells->centres, cells->count * cells->stride);
    for (uint32_t c = 0; c < cells->count; c++) {
        const uint8_t *bytes = cells->centres + c * cells->stride;
        int64_t squares = 0;
        for (size_t i = 0; i < cells->stride; i++)
            squares += ((int64_t)bytes[i] - 128) * ((int64_t)bytes[i] - 128);
        job->halves[c] = 0.5F * cells->cells[c].scale * cells->cells[c].scale * (float)squares;
    }
}

static void assign_block(void *context, size_t item, uint32_t worker)
{
    const assignment *job = context;
    const carag_cells *cells = job->cells;
    const carag_codes *codes = job->codes;
    const uint32_t begin = (uint32_t)item * BLOCK;
    const uint32_t count = job->count - begin < BLOCK ? job->count - begin : BLOCK;
    const uint32_t *rows = job->iota + cells->count + (size_t)worker * BLOCK;
    int32_t *dots = job->dots + (size_t)worker * BLOCK * cells->count;
    float *similarities = job->similarities + (size_t)worker * job->padded;
    for (uint32_t i = 0; i < count; i++)
        memcpy(job->products + (size_t)rows[i] * codes->stride,
               codes->bytes + (size_t)row_of(job, begin + i) * codes->stride, codes->stride);
    carag_kernel_get()->gram8(job->products, codes->stride, rows, count, job->iota, cells->count, codes->stride,
                              job->workspace ? (char *)job->workspaces + worker * job->workspace : NULL, dots);
    for (uint32_t i = 0; i < count; i++) {
        const float scale = codes->scales[row_of(job, begin + i)];
        uint64_t *best = job->best + (size_t)worker * job->padded;
        for (uint32_t c = 0; c < cells->count; c++)
            similarities[c] =
                (scale * cells->cells[c].scale) * (float)dots[(size_t)i * cells->count + c] - job->halves[c];
        carag_ranks_nearest(similarities, cells->count, 1, best);
        job->nearest[begin + i] = carag_rank_index(best[0]);
        job->gaps[begin + i] = fmaxf(1.0F - 2.0F * carag_rank_similarity(best[0]), 0.0F);
    }
}

/* List what is assigned, cell after cell, in the order of rows. */
static void list_assigned(assignment *job)
{
    const uint32_t count = job->cells->count;
    memset(job->first_of, 0, (count + 1) * sizeof *job->first_of);
    for (uint32_t i = 0; i < job->count; i++)
        job->first_of[job->nearest[i] + 1]++;
    for (uint32_t c = 0; c < count; c++)
        job->first_of[c + 1] += job->first_of[c];
    for (uint32_t i = 0; i < job->count; i++)
        job->listed[job->first_of[job->nearest[i]]++] = i;
    for (uint32_t c = count; c > 0; c--)
        job->first_of[c] = job->first_of[c - 1]; /* each was advanced to the next one's begin */
    job->first_of[0] = 0;
}

static void assign(assignment *job)
{
    load_centres(job);
    carag_parallel(job->threads, (job->count + BLOCK - 1) / BLOCK, assign_block, job);
    list_assigned(job);
}

/* ---------------------------------------------------------------- centres */

/* Put a centre at the mean of the rows assigned to it; one without rows, or without direction, stays. */
static void move_centre(void *context, size_t item, uint32_t worker)
{
    const assignment *job = context;
    const carag_codes *codes = job->codes;
    carag_cells *cells = job->cells;
    const size_t stride = codes->stride;
    float *mean = job->means + (size_t)worker * stride;
    const uint32_t begin = job->first_of[item];
    const uint32_t end = job->first_of[item + 1];
    memset(mean, 0, stride * sizeof *mean);
    for (uint32_t m = begin; m < end; m++) {
        const uint32_t row = row_of(job, job->listed[m]);
        const uint8_t *bytes = codes->bytes + (size_t)row * stride;
        for (size_t i = 0; i < stride; i++)
            mean[i] += codes->scales[row] * (float)((int32_t)bytes[i] - 128);
    }
    double squares = 0.0;
    for (size_t i = 0; i < stride; i++)
        squares += (double)mean[i] * (double)mean[i];
    const float length = (float)sqrt(squares);
    if (begin == end || length < MIN_CENTRE_LENGTH * (float)(end - begin))
        return;
    for (size_t i = 0; i < stride; i++)
        mean[i] /= length;
    cells->cells[item].scale =
        length / (float)(end - begin) * carag_encode_unit(mean, stride, cells->centres + item * stride, stride);
}

/* Begin with rows spread over the sample as centres. */
static void seed_centres(assignment *job)
{
    carag_cells *cells = job->cells;
    for (uint32_t c = 0; c < cells->count; c++) {
        const uint32_t row = row_of(job, (uint32_t)((uint64_t)c * job->count / cells->count));
        memcpy(cells->centres + c * cells->stride, job->codes->bytes + (size_t)row * cells->stride, cells->stride);
        cells->cells[c].scale = job->codes->scales[row];
    }
}

/* ---------------------------------------------------------------- making */

static void release_assignment(assignment *job)
{
    carag_release_aligned(job->products);
    carag_release(job->iota);
    carag_release(job->dots);
    carag_release(job->similarities);
    carag_release(job->best);
    carag_release_aligned(job->workspaces);
    carag_release(job->halves);
    carag_release(job->nearest);
    carag_release(job->gaps);
    carag_release(job->first_of);
    carag_release(job->listed);
    carag_release(job->means);
}

static carag_status prepare(assignment *job, uint32_t capacity)
{
    const carag_cells *cells = job->cells;
    const size_t stride = job->codes->stride;
    const size_t threads = job->threads;
    const size_t items = cells->count + threads * BLOCK;
    job->padded = ((size_t)cells->count + CARAG_RANK_STRIPE - 1) / CARAG_RANK_STRIPE * CARAG_RANK_STRIPE;
    job->workspace = carag_kernel_get()->gram8_workspace(BLOCK, cells->count, stride);
    job->products = carag_allocate_aligned(items, stride);
    job->iota = carag_allocate(items, sizeof *job->iota);
    job->dots = carag_allocate(threads * BLOCK * cells->count, sizeof *job->dots);
    job->similarities = carag_allocate(threads * job->padded, sizeof *job->similarities);
    job->best = carag_allocate(threads * job->padded, sizeof *job->best);
    job->workspaces = carag_allocate_aligned(threads, job->workspace);
    job->halves = carag_allocate(cells->count, sizeof *job->halves);
    job->nearest = carag_allocate(capacity, sizeof *job->nearest);
    job->gaps = carag_allocate(capacity, sizeof *job->gaps);
    job->first_of = carag_allocate((size_t)cells->count + 1, sizeof *job->first_of);
    job->listed = carag_allocate(capacity, sizeof *job->listed);
    job->means = carag_allocate(threads * stride, sizeof *job->means);
    if (!job->products || !job->iota || !job->dots || !job->similarities || !job->best || !job->workspaces ||
        !job->halves || !job->nearest || !job->gaps || !job->first_of || !job->listed || !job->means)
        return CARAG_NO_MEMORY;
    for (uint32_t i = 0; i < items; i++)
        job->iota[i] = i;
    return CARAG_OK;
}

/* The number of cells for a number of rows; 0: none. */
static uint32_t cell_count(uint32_t rows)
{
    const uint32_t count = (uint32_t)(CELLS_PER_ROOT * sqrt((double)rows));
    return rows < CARAG_CELL_ROWS ? 0 : count < MAX_CELLS ? count : MAX_CELLS;
}

/* Cells of rows 0 .. rows - 1, in *out_cells, NULL where there are too few. */
carag_status carag_cells_new(const carag_codes *codes, uint32_t rows, uint32_t threads, carag_cells **out_cells)
{
    const uint32_t count = cell_count(rows);
    *out_cells = NULL;
    if (count == 0)
        return CARAG_OK;
    const uint32_t sampled = rows / SAMPLED_PER_CELL < count ? rows : count * SAMPLED_PER_CELL;
    carag_cells *cells = carag_cells_room(count, rows, codes->stride);
    uint32_t *sample = carag_allocate(sampled, sizeof *sample);
    assignment job = {.codes = codes, .cells = cells, .sample = sample, .count = sampled, .threads = threads};
    carag_status status = cells && sample ? prepare(&job, rows) : CARAG_NO_MEMORY;
    if (status != CARAG_OK)
        goto done;
    for (uint32_t i = 0; i < sampled; i++)
        sample[i] = (uint32_t)((uint64_t)i * rows / sampled);
    seed_centres(&job);
    for (int round = 0; round < ROUNDS; round++) {
        assign(&job);
        carag_parallel(threads, count, move_centre, &job);
    }
    job.sample = NULL;
    job.count = rows;
    assign(&job);
    for (uint32_t c = 0; c < count; c++) {
        double squares = 0.0;
        for (uint32_t m = job.first_of[c]; m < job.first_of[c + 1]; m++)
            squares += (double)job.gaps[job.listed[m]];
        const uint32_t size = job.first_of[c + 1] - job.first_of[c];
        cells->cells[c].spread = size ? (float)sqrt(squares / size) : 0.0F;
        cells->cells[c].length = sqrtf(2.0F * job.halves[c]);
        cells->cells[c].end = job.first_of[c + 1];
    }
    memcpy(cells->members, job.listed, rows * sizeof *cells->members);
    cells->centred = rows;
    carag_cells_note_order(cells);
done:
    release_assignment(&job);
    carag_release(sample);
    if (status == CARAG_OK)
        *out_cells = cells;
    else
        carag_cells_free(cells);
    return status;
}

/* The same centres, with the rows up to `rows` that are in no cell yet. */
carag_status carag_cells_extend(const carag_cells *from, const carag_codes *codes, uint32_t rows,
                                carag_cells **out_cells)
{
    carag_cells *cells = carag_cells_room(from->count, rows, from->stride);
    assignment job = {.codes = codes, .cells = cells, .first = from->rows, .count = rows - from->rows, .threads = 1};
    carag_status status = CARAG_NO_MEMORY;
    if (cells) {
        memcpy(cells->cells, from->cells, from->count * sizeof *cells->cells);
        memcpy(cells->centres, from->centres, from->count * from->stride);
        status = prepare(&job, job.count);
    }
    if (status == CARAG_OK) {
        assign(&job);
        uint32_t end = 0;
        for (uint32_t c = 0; c < cells->count; c++) {
            const uint32_t begin = c ? from->cells[c - 1].end : 0;
            const uint32_t kept = from->cells[c].end - begin;
            memcpy(cells->members + end, from->members + begin, kept * sizeof *cells->members);
            end += kept;
            for (uint32_t m = job.first_of[c]; m < job.first_of[c + 1]; m++)
                cells->members[end++] = job.first + job.listed[m];
            cells->cells[c].end = end;
        }
        cells->reach = from->reach;
        cells->centred = from->centred;
        carag_cells_note_order(cells);
        *out_cells = cells;
    } else {
        carag_cells_free(cells);
    }
    release_assignment(&job);
    return status;
}
