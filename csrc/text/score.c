/* text/score.c - score the parts that have terms of a question, those that could matter.
 *
 * Where only the k best are wanted, the most that a chunk of a part could reach is known before its postings are read:
 * a few parts that could reach the most go first, and later parts that stay below the k-th best are left out. The bound
 * uses the largest frequency of each run and the shortest chunk; it is raised by far more than rounding can lose, and
 * only what lies strictly below is left out, so the answer is the same. It may be that of a hidden chunk, in a part of
 * which some count: then it is too high, and only spares less.
 *
 * Of a part that remains, light terms wait: those of the least weight, which together cannot add a third of the floor, and
 * which have most of the postings. Where no chunk reaches the floor with the most that they could add, they are not read;
 * what is left is scored again, in the order of bytes (MaxScore, Turtle & Flood 1995, a part at a time). A term's frequency
 * and weight are complete before anything is scored, so no bound rests on what was left out.
 */
#include "carag_internal.h"
#include "text/ask.h"
#include "text/text.h"

#include <math.h>

#define FIRST_PARTS 16    /* parts that are scored first, for a floor */
#define LIGHT_SHARE 0.3   /* of the floor: the most that the terms which are added last may make up together */
#define HALVINGS 24       /* of the range of weights, to find them */
#define BOUND_MARGIN 1e-6 /* of a bound: rounding loses less than a tenth of that for any query that is allowed */

typedef struct part_bound {
    double bound;
    uint32_t part;
} part_bound;

/* ---------------------------------------------------------------- one part */

static double norm_of(const carag_asking *job, uint32_t length)
{
    return job->query->k1 * (1.0 - job->query->b + job->query->b * (double)length / job->mean);
}

static double gain(const carag_asking *job, double weight, uint32_t frequency, double norm)
{
    return weight * ((double)frequency * (job->query->k1 + 1.0) / ((double)frequency + norm));
}

/* What a term adds in the part's own text to the scores of chunks that are wanted; false when it is malformed. */
static bool add_postings(carag_asking *job, const carag_part *part, const carag_scored_run *run)
{
    const double weight = job->terms[run->term].weight;
    carag_stream postings = {run->postings, run->postings + run->bytes};
    uint32_t place = CARAG_NONE;
    for (uint32_t i = 0; i < run->count; i++) {
        uint32_t frequency;
        if (!carag_next_posting(&postings, &place, &frequency) || place >= part->size)
            return false;
        if (job->wanted[place])
            job->scores[place] += gain(job, weight, frequency, job->norms[place]);
    }
    return true;
}

/* The same of a term that the heading has: it stands in every chunk. */
static bool add_everywhere(carag_asking *job, const carag_part *part, const carag_scored_run *run)
{
    const double weight = job->terms[run->term].weight;
    carag_stream postings = {run->postings, run->postings + run->bytes};
    uint32_t place = CARAG_NONE;
    for (uint32_t i = 0; i < part->size; i++)
        job->frequencies[i] = run->heading;
    for (uint32_t i = 0; i < run->count; i++) {
        uint32_t frequency;
        if (!carag_next_posting(&postings, &place, &frequency) || place >= part->size ||
            frequency > UINT32_MAX - run->heading)
            return false;
        job->frequencies[place] += frequency;
    }
    for (uint32_t i = 0; i < part->size; i++)
        if (job->wanted[i])
            job->scores[i] += gain(job, weight, job->frequencies[i], job->norms[i]);
    return true;
}

/* The terms of a part in the order of their bytes: all of them, or those that are not light. */
static bool add_runs(carag_asking *job, uint32_t number, bool light_too)
{
    const carag_part *part = &job->shelf->parts[number];
    for (uint32_t at = job->first[number]; at != CARAG_NONE; at = job->runs[at].next) {
        const carag_scored_run *run = &job->runs[at];
        if (!light_too && job->terms[run->term].is_light)
            continue;
        job->stats.postings += run->count;
        if (run->heading > 0 ? !add_everywhere(job, part, run) : !add_postings(job, part, run))
            return false;
    }
    return true;
}

static carag_status offer(carag_asking *job, uint32_t chunk, double score)
{
    job->stats.matched++;
    if (score < job->ranking.floor || (job->ranking.limit > 0 && job->ranking.count == job->ranking.limit &&
                                       score < job->ranking.items[0].score))
        return CARAG_OK;
    const int64_t key = carag_admitting_label(job->shelf, job->admission.passes, chunk);
    if (key < 0 || !carag_rank_wants(&job->ranking, score, key))
        return CARAG_OK;
    return carag_rank_keep(&job->ranking, (carag_ranked){.score = score, .key = key, .chunk = chunk});
}

/* Below this, no score is wanted any more. */
static double present_floor(const carag_asking *job)
{
    const carag_ranking *ranking = &job->ranking;
    const bool is_full = ranking->limit > 0 && ranking->count == ranking->limit;
    return is_full && ranking->items[0].score > ranking->floor ? ranking->items[0].score : ranking->floor;
}

/* Leave out the chunks that stay below the floor even with the most that light terms could add; false when the
 * postings are malformed. *out_any: whether one is left. */
static bool sift(carag_asking *job, uint32_t number, bool *out_any)
{
    const uint32_t size = job->shelf->parts[number].size;
    const double floor = present_floor(job);
    double rest = 0.0;
    for (uint32_t at = job->first[number]; at != CARAG_NONE; at = job->runs[at].next)
        if (job->terms[job->runs[at].term].is_light)
            rest += (double)job->runs[at].bound;
    *out_any = true;
    if (floor <= 0.0 || rest <= 0.0)
        return true;
    if (!add_runs(job, number, false))
        return false;
    *out_any = false;
    for (uint32_t i = 0; i < size; i++) {
        job->wanted[i] = job->wanted[i] && (job->scores[i] + rest) * (1.0 + BOUND_MARGIN) >= floor;
        job->scores[i] = 0.0;
        *out_any |= job->wanted[i];
    }
    return true;
}

static carag_status score_part(carag_asking *job, uint32_t number, bool may_skip)
{
    const carag_part *part = &job->shelf->parts[number];
    const bool is_whole = job->admission.shares[number] == CARAG_ALL;
    bool any = true;
    for (uint32_t i = 0; i < part->size; i++) {
        job->scores[i] = 0.0;
        job->norms[i] = norm_of(job, job->shelf->lengths[part->first + i]);
        job->wanted[i] = is_whole || carag_is_admitted(&job->admission, part->first + i);
    }
    if (may_skip && !sift(job, number, &any))
        return CARAG_CORRUPT;
    if (!any) {
        job->stats.parts_skipped++;
        return CARAG_OK;
    }
    if (!add_runs(job, number, true))
        return CARAG_CORRUPT;
    carag_status status = CARAG_OK;
    for (uint32_t i = 0; status == CARAG_OK && i < part->size; i++)
        if (job->scores[i] > 0.0)
            status = offer(job, part->first + i, job->scores[i]);
    return status;
}

/* ---------------------------------------------------------------- all parts */

/* Before terms are read: of each part, the norm of its shortest chunk. */
void carag_text_weigh_parts(carag_asking *job)
{
    job->mean = (double)job->admission.length / (double)job->admission.chunks;
    for (uint32_t part = 0; part < job->shelf->part_count; part++) {
        job->first[part] = CARAG_NONE;
        job->bounds[part] = 0.0;
        if (job->admission.shares[part] != CARAG_NOTHING)
            job->norms_least[part] = norm_of(job, job->shelf->parts[part].shortest);
    }
}

/* When all runs of a term were read, from first_run on: its weight, and the most that each adds. */
void carag_text_weigh_term(carag_asking *job, uint32_t number, uint32_t first_run)
{
    const double chunks = (double)job->admission.chunks;
    carag_asked *term = &job->terms[number];
    const double with = (double)term->frequency;
    term->weight = (double)term->times * log(1.0 + (chunks - with + 0.5) / (with + 0.5));
    for (uint32_t at = first_run; at < job->run_count; at++) {
        carag_scored_run *run = &job->runs[at];
        const double frequency = (double)run->most + (double)run->heading;
        const double most =
            term->weight * (frequency * (job->query->k1 + 1.0) / (frequency + job->norms_least[run->part]));
        run->bound = (float)most;
        job->bounds[run->part] += most;
    }
}

/* Those with runs, of the documents that are named or of all others. */
static void list_parts(carag_asking *job, bool others)
{
    job->part_count = 0;
    for (uint32_t part = 0; part < job->shelf->part_count; part++)
        if (job->first[part] != CARAG_NONE && job->is_other[part] == others) {
            job->bounds[part] *= 1.0 + BOUND_MARGIN;
            job->parts[job->part_count++] = part;
        }
    job->stats.parts += job->part_count;
}

/* Those of the parts that could reach the most, the highest bound first. */
static uint32_t choose_first(const carag_asking *job, part_bound first[FIRST_PARTS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        const part_bound item = {job->bounds[job->parts[i]], job->parts[i]};
        if (count == FIRST_PARTS && item.bound <= first[count - 1].bound)
            continue;
        uint32_t place = count < FIRST_PARTS ? count++ : FIRST_PARTS - 1;
        for (; place > 0 && first[place - 1].bound < item.bound; place--)
            first[place] = first[place - 1];
        first[place] = item;
    }
    return count;
}

/* The terms of the least weight are light, as many as can add less than a third of the floor together. */
static void choose_light(carag_asking *job)
{
    const double most = LIGHT_SHARE * present_floor(job);
    double low = 0.0;
    double high = 0.0;
    for (uint32_t i = 0; i < job->term_count; i++)
        high = job->terms[i].weight > high ? job->terms[i].weight : high;
    for (int step = 0; step < HALVINGS; step++) {
        const double middle = low + (high - low) / 2.0;
        double sum = 0.0;
        for (uint32_t i = 0; i < job->term_count; i++)
            sum += job->terms[i].weight <= middle ? job->terms[i].weight * (job->query->k1 + 1.0) : 0.0;
        if (sum <= most)
            low = middle;
        else
            high = middle;
    }
    for (uint32_t i = 0; i < job->term_count; i++)
        job->terms[i].is_light = job->terms[i].weight <= low;
}

/* Score the listed parts, for the best `limit`; 0: for all. */
static carag_status score_parts(carag_asking *job, size_t limit)
{
    const bool may_skip = !job->query->count_matched && (limit > 0 || job->query->floor > 0.0);
    carag_status status = CARAG_OK;
    job->ranking.limit = limit;
    if (may_skip && job->part_count > FIRST_PARTS && limit > 0) {
        part_bound first[FIRST_PARTS];
        const uint32_t count = choose_first(job, first);
        for (uint32_t i = 0; status == CARAG_OK && i < count; i++) {
            status = score_part(job, first[i].part, may_skip);
            job->first[first[i].part] = CARAG_NONE; /* done */
        }
    }
    if (may_skip)
        choose_light(job);
    for (uint32_t i = 0; status == CARAG_OK && i < job->part_count; i++) {
        if (job->first[job->parts[i]] == CARAG_NONE)
            continue;
        if (may_skip && job->bounds[job->parts[i]] < present_floor(job))
            job->stats.parts_skipped++;
        else
            status = score_part(job, job->parts[i], may_skip);
    }
    if (may_skip)
        job->stats.matched = 0;
    return status;
}

/* Score the other documents by themselves, and keep their best with what was found. */
static carag_status add_others(carag_asking *job)
{
    carag_ranking found = job->ranking;
    job->ranking = (carag_ranking){.floor = found.floor};
    list_parts(job, true);
    carag_status status = score_parts(job, job->query->k);
    for (size_t i = 0; status == CARAG_OK && i < job->ranking.count; i++)
        status = carag_rank_keep(&found, job->ranking.items[i]);
    carag_release(job->ranking.items);
    job->ranking = found;
    return status;
}

carag_status carag_text_score(carag_asking *job)
{
    const bool others = job->query->others;
    list_parts(job, false);
    carag_status status = score_parts(job, others ? 0 : job->query->k);
    if (status == CARAG_OK && others)
        status = add_others(job);
    return status == CARAG_OK ? carag_rank_sort(&job->ranking) : status;
}
