/* hnsw/candidates.c - find near rows of every row, from exact products inside overlapping leaves.
 *
 * Randomised ball carving as in PiPNN (arXiv 2602.21247): some rows are drawn as leaders, every row joins the
 * groups of its `fanout` nearest leaders, a group too large for one leaf is carved again, each row then going
 * to one side only, and inside a leaf all rows are compared with all by one matrix product (gram8). A row
 * takes its `per_leaf` nearest from each of its leaves. So the cost of a comparison is that of a matrix
 * product, not of a fetch from memory, and no search is made.
 *
 * What the leaves find takes 4 fanout * per_leaf bytes a row, several times the row itself. It is found, and used, in
 * stripes of rows, so that a large index is not built in several times its own memory; a leaf is then multiplied stripe
 * by stripe. Rejected: keeping the best of all leaves in one short list a row; then the graph would depend on the order
 * in which leaves are searched.
 *
 * Deterministic: leaders are drawn by a hash of the seed, every ranking is a total order (similarity, then
 * position), and each membership has slots of its own for what its leaf finds.
 *
 * Copies. Rows with the same code as the row itself would fill its list with nothing but themselves. It takes
 * one of them, so that copies form a tree of COPY_FANOUT branches inside a leaf, and spends the rest on other
 * rows.
 */
#include "carag_internal.h"
#include "hash.h"
#include "hnsw/candidates.h"
#include "parallel.h"
#include "ranks.h"

#include <math.h>
#include <string.h>

#define FANOUT 12        /* groups that a row joins */
#define LEAF_TARGET 512  /* rows of a group on average */
#define MAX_LEADERS 4096 /* leaders of one carving */
#define MAX_DEPTH 8      /* times a group is carved again before it is cut in row order */
#define BLOCK 128        /* rows of one matrix product */
#define COPY_FANOUT 4    /* branches of the tree of copies in a leaf */
#if !defined(CARAG_STRIPE_ROWS)
#define CARAG_STRIPE_ROWS (1U << 20) /* rows of a stripe; tests make it less */
#endif

/* The width of a product is that of a leaf or of a set of leaders. */
_Static_assert(CARAG_MAX_LEAF_ROWS <= MAX_LEADERS && MAX_LEADERS % CARAG_RANK_STRIPE == 0,
               "buffers hold a padded row of products");

/* Working memory of one thread. */
typedef struct carver {
    int32_t *dots;       /* [BLOCK * MAX_LEADERS] */
    void *workspace;     /* of gram8 */
    uint32_t *a;         /* [BLOCK] rows */
    uint32_t *b;         /* [MAX_LEADERS] rows */
    float *scales;       /* [MAX_LEADERS] of b */
    float *similarities; /* [MAX_LEADERS] of one row to the columns */
    uint64_t *best;      /* [MAX_LEADERS] ranks */
    uint32_t *copies;    /* [CARAG_MAX_LEAF_ROWS] */
} carver;

typedef struct carving {
    carag_cover *cover;
    const carag_kernel *kernel;
    carver *carvers;
    uint32_t threads;
    uint64_t seed;
    /* The assignment under way */
    const uint32_t *members;  /* [member_count] positions */
    size_t member_count;
    const uint32_t *leaders;  /* [leader_count] positions */
    uint32_t leader_count;
    uint32_t fanout;
    uint32_t *out_nearest;    /* [member_count * fanout] */
} carving;

/* ---------------------------------------------------------------- products */

/* The similarities of a row to all n columns, from a row of products. */
static void scale_products(const carver *mine, const int32_t *dots, float scale, uint32_t n)
{
    uint32_t from = 0;
    for (; from + CARAG_RANK_LANES <= n; from += CARAG_RANK_LANES)
        for (uint32_t i = 0; i < CARAG_RANK_LANES; i++)
            mine->similarities[from + i] = (scale * mine->scales[from + i]) * (float)dots[from + i];
    for (; from < n; from++)
        mine->similarities[from] = (scale * mine->scales[from]) * (float)dots[from];
}

/* The ranks of the k nearest of n columns to row `self` of a leaf, without itself and with at most one of its
 * copies; returns how many. */
static size_t nearest_others(const carver *mine, uint32_t n, uint32_t self, size_t k)
{
    float *similarities = mine->similarities;
    const float own = similarities[self];
    const float nothing = -INFINITY;
    similarities[self] = nothing;
    size_t found = carag_ranks_nearest(similarities, n, k, mine->best);
    bool copied = false;
    for (size_t i = 0; i < found; i++) {
        const float similarity = carag_rank_similarity(mine->best[i]);
        copied = copied || (similarity >= own && similarity <= own);
    }
    if (!copied)
        return found;
    uint32_t copies = 0;
    uint32_t before = 0;
    for (uint32_t i = 0; i < n; i++)
        if (similarities[i] >= own && similarities[i] <= own && mine->scales[i] >= mine->scales[self] &&
            mine->scales[i] <= mine->scales[self]) {
            similarities[i] = nothing;
            before += i < self;
            mine->copies[copies++] = i;
        }
    if (before == 0)
        return carag_ranks_nearest(similarities, n, k, mine->best);
    found = k > 1 ? carag_ranks_nearest(similarities, n, k - 1, mine->best) : 0;
    mine->best[found] = carag_rank(own, mine->copies[(before - 1) / COPY_FANOUT]);
    return found + 1;
}

static void load_columns(const carving *work, carver *mine, const uint32_t *positions, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        mine->b[i] = carag_cover_row(work->cover, positions[i]);
        mine->scales[i] = work->cover->codes->scales[mine->b[i]];
    }
}

/* dots[i * columns + j] of the rows at positions[0 .. count) with the loaded columns, count <= BLOCK. */
static void multiply(const carving *work, carver *mine, const uint32_t *positions, uint32_t count,
                     uint32_t columns)
{
    const carag_codes *codes = work->cover->codes;
    for (uint32_t i = 0; i < count; i++)
        mine->a[i] = carag_cover_row(work->cover, positions[i]);
    work->kernel->gram8(codes->bytes, codes->stride, mine->a, count, mine->b, columns, codes->stride,
                        mine->workspace, mine->dots);
}

static uint32_t block_size(size_t total, size_t from)
{
    return total - from < BLOCK ? (uint32_t)(total - from) : BLOCK;
}

/* ---------------------------------------------------------------- joining leaders */

static void join_block(void *context, size_t item, uint32_t worker)
{
    const carving *work = context;
    carver *mine = &work->carvers[worker];
    const size_t from = item * BLOCK;
    const uint32_t count = block_size(work->member_count, from);
    load_columns(work, mine, work->leaders, work->leader_count);
    multiply(work, mine, work->members + from, count, work->leader_count);
    for (uint32_t i = 0; i < count; i++) {
        const float scale = work->cover->codes->scales[mine->a[i]];
        const int32_t *dots = mine->dots + (size_t)i * work->leader_count;
        scale_products(mine, dots, scale, work->leader_count);
        const size_t found =
            carag_ranks_nearest(mine->similarities, work->leader_count, work->fanout, mine->best);
        carag_ranks_sort(mine->best, found);
        for (size_t j = 0; j < found; j++)
            work->out_nearest[(from + i) * work->fanout + j] = carag_rank_index(mine->best[j]);
    }
}

/* Every member's `fanout` nearest leaders. */
static void join(carving *work, const uint32_t *members, size_t member_count, const uint32_t *leaders,
                 uint32_t leader_count, uint32_t fanout, uint32_t *out_nearest)
{
    work->members = members;
    work->member_count = member_count;
    work->leaders = leaders;
    work->leader_count = leader_count;
    work->fanout = fanout;
    work->out_nearest = out_nearest;
    carag_parallel(work->threads, (member_count + BLOCK - 1) / BLOCK, join_block, work);
}

/* One of each of `wanted` equal stretches of the members, drawn by a hash. Requires wanted <= count. */
static void draw_leaders(uint64_t seed, const uint32_t *members, size_t count, uint32_t wanted,
                         uint32_t *out_leaders)
{
    for (uint32_t i = 0; i < wanted; i++) {
        const size_t begin = count * i / wanted;
        const size_t end = count * (i + 1) / wanted;
        const size_t at = begin + (size_t)(carag_mix(seed + i) % (end - begin));
        out_leaders[i] = members ? members[at] : (uint32_t)at;
    }
}

/* ---------------------------------------------------------------- carving */

static bool push_leaf(carag_cover *cover, uint32_t group, size_t begin, size_t end)
{
    if (begin == end)
        return true;
    if (cover->leaf_count == cover->leaf_capacity) {
        const size_t capacity = cover->leaf_capacity ? 2 * cover->leaf_capacity : 1024;
        carag_leaf *leaves = carag_enlarged(cover->leaves, cover->leaf_count, capacity, sizeof *leaves);
        if (!leaves)
            return false;
        cover->leaves = leaves;
        cover->leaf_capacity = capacity;
    }
    cover->leaves[cover->leaf_count++] = (carag_leaf){group, begin, end};
    return true;
}

static bool push_slices(carag_cover *cover, carag_leaf whole)
{
    const size_t size = whole.end - whole.begin;
    const size_t slices = (size + CARAG_MAX_LEAF_ROWS - 1) / CARAG_MAX_LEAF_ROWS;
    for (size_t i = 0; i < slices; i++) {
        const size_t begin = whole.begin + size * i / slices;
        const size_t end = whole.begin + size * (i + 1) / slices;
        if (!push_leaf(cover, whole.group, begin, end))
            return false;
    }
    return true;
}

/* Carve the members of a group into leaves, reordering them; false when out of memory. */
static bool carve(carving *work, carag_leaf whole, uint32_t depth)
{
    carag_cover *cover = work->cover;
    const size_t size = whole.end - whole.begin;
    if (size <= CARAG_MAX_LEAF_ROWS)
        return push_leaf(cover, whole.group, whole.begin, whole.end);
    if (depth == MAX_DEPTH)
        return push_slices(cover, whole);

    uint32_t *members = cover->members + whole.begin;
    const size_t parts = 2 * size / LEAF_TARGET;
    const uint32_t leader_count = parts < MAX_LEADERS ? (uint32_t)parts : MAX_LEADERS;
    bool done = false;
    uint32_t *leaders = carag_allocate(leader_count, sizeof *leaders);
    uint32_t *nearest = carag_allocate(size, sizeof *nearest);
    uint32_t *sorted = carag_allocate(size, sizeof *sorted);
    size_t *ends = carag_allocate_zeroed((size_t)leader_count + 1, sizeof *ends);
    if (!leaders || !nearest || !sorted || !ends)
        goto done;
    draw_leaders(carag_mix(work->seed + whole.begin) + depth, members, size, leader_count, leaders);
    join(work, members, size, leaders, leader_count, 1, nearest);
    for (size_t i = 0; i < size; i++)
        ends[nearest[i] + 1]++;
    for (uint32_t i = 0; i < leader_count; i++)
        ends[i + 1] += ends[i];
    for (size_t i = 0; i < size; i++)
        sorted[ends[nearest[i]]++] = members[i];
    memcpy(members, sorted, size * sizeof *members);
    done = true;
    for (uint32_t i = 0; done && i < leader_count; i++) {
        const size_t begin = i == 0 ? 0 : ends[i - 1];
        const carag_leaf part = {whole.group, whole.begin + begin, whole.begin + ends[i]};
        const bool stuck = part.end - part.begin == size;
        done = stuck ? push_slices(cover, part) : carve(work, part, depth + 1);
    }
done:
    carag_release(leaders);
    carag_release(nearest);
    carag_release(sorted);
    carag_release(ends);
    return done;
}

/* Leaders, groups, leaves. */
static bool cover_rows(carving *work)
{
    carag_cover *cover = work->cover;
    const uint64_t seed = work->seed;
    uint32_t *everyone = carag_allocate(cover->count, sizeof *everyone);
    size_t *ends = carag_allocate_zeroed((size_t)cover->groups + 1, sizeof *ends);
    bool done = everyone && ends;
    if (!done)
        goto done;
    for (uint32_t i = 0; i < cover->count; i++)
        everyone[i] = i;
    draw_leaders(seed, NULL, cover->count, cover->groups, cover->leaders);
    if (cover->groups == 1)
        memset(cover->nearest, 0, cover->count * sizeof *cover->nearest);
    else
        join(work, everyone, cover->count, cover->leaders, cover->groups, cover->fanout, cover->nearest);
    const size_t memberships = (size_t)cover->count * cover->fanout;
    for (size_t i = 0; i < memberships; i++)
        ends[cover->nearest[i] + 1]++;
    for (uint32_t i = 0; i < cover->groups; i++)
        ends[i + 1] += ends[i];
    for (size_t i = 0; i < memberships; i++)
        cover->members[ends[cover->nearest[i]]++] = (uint32_t)(i / cover->fanout);
    for (uint32_t i = 0; done && i < cover->groups; i++)
        done = carve(work, (carag_leaf){i, i == 0 ? 0 : ends[i - 1], ends[i]}, 0);
done:
    carag_release(everyone);
    carag_release(ends);
    return done;
}

/* ---------------------------------------------------------------- leaves */

/* Where the finds of a membership go: a row is in a group at most once. */
static uint32_t *slots_of(const carag_cover *cover, uint32_t position, uint32_t group)
{
    const uint32_t *nearest = cover->nearest + (size_t)position * cover->fanout;
    uint32_t membership = 0;
    while (nearest[membership] != group)
        membership++;
    return carag_cover_slots(cover, position) + (size_t)membership * cover->per_leaf;
}

/* Where the first member at or after a position stands. */
static size_t member_from(const carag_cover *cover, carag_leaf leaf, uint32_t position)
{
    size_t low = leaf.begin;
    size_t high = leaf.end;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (cover->members[middle] < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

carag_leaf carag_cover_part(const carag_cover *cover, carag_leaf leaf)
{
    return (carag_leaf){leaf.group, member_from(cover, leaf, cover->first), member_from(cover, leaf, cover->end)};
}

static void search_leaf(void *context, size_t item, uint32_t worker)
{
    const carving *work = context;
    const carag_cover *cover = work->cover;
    carver *mine = &work->carvers[worker];
    const carag_leaf leaf = cover->leaves[item];
    const carag_leaf part = carag_cover_part(cover, leaf);
    const uint32_t *members = cover->members + leaf.begin;
    const uint32_t size = (uint32_t)(leaf.end - leaf.begin);
    const uint32_t end = (uint32_t)(part.end - leaf.begin);
    if (part.begin == part.end)
        return;
    load_columns(work, mine, members, size);
    for (uint32_t from = (uint32_t)(part.begin - leaf.begin); from < end; from += BLOCK) {
        const uint32_t count = block_size(end, from);
        multiply(work, mine, members + from, count, size);
        for (uint32_t i = 0; i < count; i++) {
            const int32_t *dots = mine->dots + (size_t)i * size;
            const float scale = mine->scales[from + i];
            scale_products(mine, dots, scale, size);
            const size_t found = nearest_others(mine, size, from + i, cover->per_leaf);
            uint32_t *slots = slots_of(cover, members[from + i], leaf.group);
            for (uint32_t j = 0; j < cover->per_leaf; j++)
                slots[j] = j < found ? members[carag_rank_index(mine->best[j])] : CARAG_NONE;
        }
    }
}

/* ---------------------------------------------------------------- all of it */

static bool carvers_init(carving *work)
{
    const size_t stride = work->cover->codes->stride;
    const size_t workspace = work->kernel->gram8_workspace(BLOCK, MAX_LEADERS, stride);
    work->carvers = carag_allocate_zeroed(work->threads, sizeof *work->carvers);
    if (!work->carvers)
        return false;
    for (uint32_t i = 0; i < work->threads; i++) {
        carver *mine = &work->carvers[i];
        mine->dots = carag_allocate_aligned((size_t)BLOCK * MAX_LEADERS, sizeof *mine->dots);
        mine->workspace = carag_allocate_aligned(workspace, 1);
        mine->a = carag_allocate(BLOCK, sizeof *mine->a);
        mine->b = carag_allocate(MAX_LEADERS, sizeof *mine->b);
        mine->scales = carag_allocate(MAX_LEADERS, sizeof *mine->scales);
        mine->similarities = carag_allocate(MAX_LEADERS, sizeof *mine->similarities);
        mine->best = carag_allocate(MAX_LEADERS, sizeof *mine->best);
        mine->copies = carag_allocate(CARAG_MAX_LEAF_ROWS, sizeof *mine->copies);
        if (!mine->dots || !mine->workspace || !mine->a || !mine->b || !mine->scales ||
            !mine->similarities || !mine->best || !mine->copies)
            return false;
    }
    return true;
}

static void carvers_destroy(carving *work)
{
    for (uint32_t i = 0; work->carvers && i < work->threads; i++) {
        carver *mine = &work->carvers[i];
        carag_release_aligned(mine->dots);
        carag_release_aligned(mine->workspace);
        carag_release(mine->a);
        carag_release(mine->b);
        carag_release(mine->scales);
        carag_release(mine->similarities);
        carag_release(mine->best);
        carag_release(mine->copies);
    }
    carag_release(work->carvers);
}

carag_status carag_cover_init(carag_cover *cover, const carag_codes *codes, const uint32_t *rows,
                              uint32_t count, uint32_t candidates, uint64_t seed, uint32_t threads)
{
    const bool one_leaf = count <= CARAG_MAX_LEAF_ROWS;
    const uint32_t fanout = one_leaf ? 1 : FANOUT;
    const uint64_t groups = one_leaf ? 1 : (uint64_t)count * fanout / LEAF_TARGET;
    *cover = (carag_cover){.codes = codes, .rows = rows, .count = count, .fanout = fanout, .stripe = CARAG_STRIPE_ROWS};
    cover->groups = groups < MAX_LEADERS ? (uint32_t)groups : MAX_LEADERS;
    cover->per_leaf = (candidates + fanout - 1) / fanout;
    const size_t memberships = (size_t)count * fanout;
    cover->leaders = carag_allocate(cover->groups, sizeof *cover->leaders);
    cover->nearest = carag_allocate(memberships, sizeof *cover->nearest);
    cover->members = carag_allocate(memberships, sizeof *cover->members);
    carving work = {.cover = cover, .kernel = carag_kernel_get(), .threads = threads};
    work.seed = carag_mix(seed);
    const bool done = cover->leaders && cover->nearest && cover->members && carvers_init(&work) && cover_rows(&work);
    carvers_destroy(&work);
    return done ? CARAG_OK : CARAG_NO_MEMORY;
}

carag_status carag_cover_next(carag_cover *cover, uint32_t threads, bool *out_more)
{
    const uint32_t stripe = cover->count < cover->stripe ? cover->count : cover->stripe;
    carving work = {.cover = cover, .kernel = carag_kernel_get(), .threads = threads};
    cover->first = cover->end;
    cover->end = cover->count - cover->first < stripe ? cover->count : cover->first + stripe;
    *out_more = cover->first < cover->end;
    if (!*out_more) {
        carag_release(cover->near);
        cover->near = NULL;
        return CARAG_OK;
    }
    if (!cover->near)
        cover->near = carag_allocate((size_t)stripe * cover->fanout, cover->per_leaf * sizeof *cover->near);
    const bool done = cover->near && carvers_init(&work);
    if (done)
        carag_parallel(threads, cover->leaf_count, search_leaf, &work);
    carvers_destroy(&work);
    return done ? CARAG_OK : CARAG_NO_MEMORY;
}

void carag_cover_destroy(carag_cover *cover)
{
    carag_release(cover->leaders);
    carag_release(cover->nearest);
    carag_release(cover->members);
    carag_release(cover->leaves);
    carag_release(cover->near);
    *cover = (carag_cover){0};
}
