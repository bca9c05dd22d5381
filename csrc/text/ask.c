/* text/ask.c - score the admissible chunks by BM25 (Robertson & Zaragoza 2009, section 3), as if no other existed.
 *
 *   1  The predicates are asked (text/admit.c): N, the mean length, and of each part whether all, some or none counts.
 *   2  The runs of the query's terms are read, in the order of the terms' bytes: their counts give the exact number of
 *      admissible chunks that hold each term, without a posting where a part is admissible whole or not at all.
 *      Where the query names documents, runs of others are counted and then left out, unless it wants the best of them.
 *   3  Parts are scored one after the other (text/score.c), all terms of a part together; what a posting adds is computed
 *      and added in the order of the terms' bytes, so that a score does not depend on how anything came in.
 *
 * Postings of a hidden part are not read. In a part of which some chunks count, those of the others are passed over: they
 * cost time, and no number of theirs is used.
 */
#include "carag_internal.h"
#include "text/ask.h"
#include "text/text.h"

#include <math.h>
#include <string.h>

#define MAX_TERMS 4096  /* of a query */
#define MAX_K1 1000.0   /* of a query */
#define MIN_RUN_BYTES 3 /* of a stream */

/* ---------------------------------------------------------------- the query */

static int by_bytes(const void *a, const void *b)
{
    const carag_asked *x = a;
    const carag_asked *y = b;
    const int order = memcmp(x->word, y->word, x->size < y->size ? x->size : y->size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

static carag_status verify(const carag_asking *job, carag_fault *out_fault)
{
    const carag_text_query *query = job->query;
    const carag_status status = carag_predicates_verify(job->predicates, job->predicate_count, out_fault);
    if (status != CARAG_OK)
        return status;
    if (!(query->k1 >= 0.0 && query->k1 <= MAX_K1))
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "k1 must be 0 to 1000");
    if (!(query->b >= 0.0 && query->b <= 1.0))
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "b must be 0 to 1");
    if (!(query->floor >= 0.0 && query->floor < INFINITY))
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "floor must be 0 or more, and finite");
    if (query->others && !query->documents)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "others needs documents");
    if (query->terms > MAX_TERMS)
        return carag_fail(out_fault, CARAG_BAD_ARGUMENT, 0, "a query has at most 4096 terms");
    for (size_t i = 0; i < query->terms; i++) {
        const uint64_t begin = i > 0 ? query->word_ends[i - 1] : 0;
        if (query->word_ends[i] <= begin || query->word_ends[i] - begin > CARAG_MAX_TERM)
            return carag_fail(out_fault, CARAG_BAD_ARGUMENT, i, "terms must be 1 to 65,535 bytes long");
    }
    return CARAG_OK;
}

/* Sorted, each once. */
static carag_status take_terms(carag_asking *job)
{
    const carag_text_query *query = job->query;
    job->terms = carag_allocate(query->terms, sizeof *job->terms);
    if (!job->terms)
        return CARAG_NO_MEMORY;
    for (size_t i = 0; i < query->terms; i++) {
        const uint64_t begin = i > 0 ? query->word_ends[i - 1] : 0;
        job->terms[i] = (carag_asked){.word = query->words + begin, .size = (size_t)(query->word_ends[i] - begin), .times = 1};
    }
    if (query->terms > 1)
        qsort(job->terms, query->terms, sizeof *job->terms, by_bytes);
    for (size_t i = 0; i < query->terms; i++) {
        if (job->term_count > 0 && by_bytes(&job->terms[job->term_count - 1], &job->terms[i]) == 0)
            job->terms[job->term_count - 1].times++;
        else
            job->terms[job->term_count++] = job->terms[i];
    }
    return CARAG_OK;
}

/* ---------------------------------------------------------------- working memory */

/* An upper bound on the runs of the terms. CARAG_CORRUPT if a mapped file's ends are not in order. */
static carag_status count_runs(const carag_asking *job, uint64_t *out_runs)
{
    *out_runs = 0;
    for (uint32_t i = 0; i < job->term_count; i++)
        for (uint32_t s = 0; s < job->shelf->segment_count; s++) {
            const carag_segment *segment = job->shelf->segments[s];
            uint64_t term;
            bool found;
            carag_stream runs;
            if (!carag_segment_find(segment, job->terms[i].word, job->terms[i].size, &term, &found))
                return CARAG_CORRUPT;
            if (found && !carag_segment_term(segment, term, CARAG_RUNS, &runs))
                return CARAG_CORRUPT;
            if (!found)
                continue;
            const uint64_t most = (uint64_t)(runs.end - runs.at) / MIN_RUN_BYTES;
            *out_runs += most < job->shelf->part_count ? most : job->shelf->part_count;
        }
    return *out_runs < CARAG_NONE ? CARAG_OK : CARAG_NO_MEMORY;
}

/* Cut the block into arrays, or with no block say how large it must be. */
static size_t carve(carag_asking *job, unsigned char *block, uint64_t runs)
{
    const carag_shelf *shelf = job->shelf;
    const size_t parts = shelf->part_count;
    const size_t widest = shelf->widest;
    size_t size = 0;
#define CARVE(array, count)                                                                    \
    do {                                                                                       \
        if (block)                                                                             \
            (array) = (void *)(block + size);                                                  \
        size += ((size_t)(count) * sizeof *(array) + 63) / 64 * 64; /* whole cache lines */     \
    } while (0)
    CARVE(job->admission.passes, atomic_load(&shelf->classes->count));
    CARVE(job->admission.shares, parts);
    CARVE(job->admission.counts, parts);
    CARVE(job->admission.bits, (size_t)shelf->chunk_count / 64 + 1);
    CARVE(job->runs, runs);
    CARVE(job->first, parts);
    CARVE(job->last, parts);
    CARVE(job->norms_least, parts);
    CARVE(job->bounds, parts);
    CARVE(job->parts, parts);
    CARVE(job->scores, widest);
    CARVE(job->norms, widest);
    CARVE(job->frequencies, widest);
    CARVE(job->wanted, widest);
    CARVE(job->is_other, parts);
#undef CARVE
    return size;
}

/* ---------------------------------------------------------------- terms */

/* How many admissible chunks of a part have the run's term in their own text; false when the postings are malformed. */
static bool count_admitted(const carag_asking *job, const carag_run *run, carag_stream postings, uint32_t *out_count)
{
    const carag_part *part = &job->shelf->parts[run->part];
    uint32_t place = CARAG_NONE;
    *out_count = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        uint32_t frequency;
        if (!carag_next_posting(&postings, &place, &frequency) || place >= part->size)
            return false;
        *out_count += carag_is_admitted(&job->admission, part->first + place);
    }
    return true;
}

/* Pass over the runs of hidden parts, those that are four numbers of a byte each: nearly all. False when they claim more
 * postings than there are. */
static bool skip_hidden(carag_asking *job, carag_stream *runs, uint32_t *part, carag_stream *postings)
{
    const uint8_t *shares = job->admission.shares;
    const uint32_t parts = job->shelf->part_count;
    const unsigned char *at = runs->at;
    uint32_t here = *part;
    size_t passed = 0; /* bytes of postings */
    for (; runs->end - at >= 4; at += 4) {
        uint32_t four; /* gap, 2 * count, bytes, most */
        memcpy(&four, at, sizeof four);
        if ((four & 0x80808180) != 0 || (four & 0x7F) == 0 || (four & 0x7E00) == 0)
            break;
        const uint32_t next = here + (four & 0x7F);
        if (next >= parts || shares[next] != CARAG_NOTHING)
            break;
        here = next;
        passed += four >> 16 & 0x7F;
    }
    if (passed > (size_t)(postings->end - postings->at))
        return false;
    job->stats.runs_skipped += (uint64_t)(at - runs->at) / 4;
    runs->at = at;
    postings->at += passed;
    *part = here;
    return true;
}

/* The parts that the term's runs name and the predicate admits are kept for scoring, and their chunks are counted. */
static bool read_runs(carag_asking *job, uint32_t number, carag_stream runs, carag_stream postings)
{
    const carag_shelf *shelf = job->shelf;
    carag_asked *term = &job->terms[number];
    carag_run run = {.part = CARAG_NONE};
    for (;;) {
        if (!skip_hidden(job, &runs, &run.part, &postings))
            return false;
        if (runs.at == runs.end)
            return true;
        if (!carag_next_run(&runs, &run) || run.part >= shelf->part_count ||
            run.bytes > (size_t)(postings.end - postings.at))
            return false;
        const carag_stream own = {postings.at, postings.at + run.bytes};
        postings.at = own.end;
        const carag_share share = (carag_share)job->admission.shares[run.part];
        uint32_t admitted = run.count;
        if (share == CARAG_NOTHING) {
            job->stats.runs_skipped++;
            continue;
        }
        if (run.count > shelf->parts[run.part].size || job->run_count == job->run_room)
            return false;
        if (run.heading > 0)
            admitted = job->admission.counts[run.part];
        else if (share == CARAG_SOME && !count_admitted(job, &run, own, &admitted))
            return false;
        if (admitted == 0)
            continue;
        term->frequency += admitted;
        if (job->is_other[run.part] && !job->query->others)
            continue;
        job->stats.runs++;
        const uint32_t at = job->run_count++;
        job->runs[at] = (carag_scored_run){.postings = own.at,
                                           .bytes = run.bytes,
                                           .count = run.count,
                                           .heading = run.heading,
                                           .most = run.most,
                                           .term = number,
                                           .part = run.part,
                                           .next = CARAG_NONE};
        if (job->first[run.part] == CARAG_NONE)
            job->first[run.part] = at;
        else
            job->runs[job->last[run.part]].next = at;
        job->last[run.part] = at;
    }
}

static bool read_term(carag_asking *job, uint32_t number)
{
    const carag_asked *term = &job->terms[number];
    for (uint32_t s = 0; s < job->shelf->segment_count; s++) {
        const carag_segment *segment = job->shelf->segments[s];
        uint64_t at;
        bool found;
        carag_stream runs;
        carag_stream postings;
        if (!carag_segment_find(segment, term->word, term->size, &at, &found))
            return false;
        if (!found)
            continue;
        if (!carag_segment_term(segment, at, CARAG_RUNS, &runs) ||
            !carag_segment_term(segment, at, CARAG_POSTINGS, &postings) || !read_runs(job, number, runs, postings))
            return false;
    }
    return true;
}

/* What the predicates admit, and how many admissible chunks hold each term. */
static bool look_up(carag_asking *job)
{
    const carag_shelf *shelf = job->shelf;
    carag_admit(shelf, job->predicates, job->predicate_count, &job->admission);
    for (uint32_t i = 0; i < shelf->part_count; i++)
        job->is_other[i] = job->query->documents &&
                           carag_lookup_find(&job->documents, shelf->parts[i].document) == CARAG_NONE;
    carag_text_weigh_parts(job);
    for (uint32_t i = 0; i < job->term_count; i++) {
        const uint32_t first_run = job->run_count;
        if (!read_term(job, i))
            return false;
        carag_text_weigh_term(job, i, first_run);
    }
    job->stats.admissible = job->admission.chunks;
    job->stats.length = job->admission.length;
    job->stats.chunks = shelf->live_chunks;
    return true;
}

/* ---------------------------------------------------------------- answers */

/* Look terms up and, unless out_found is NULL, score; the lock is the caller's. */
static carag_status ask(carag_asking *job, carag_text_found **out_found)
{
    uint64_t runs;
    carag_status status = take_terms(job);
    if (status == CARAG_OK)
        status = count_runs(job, &runs);
    if (status != CARAG_OK)
        return status;
    carag_block *block = carag_block_take(job->text, carve(job, NULL, runs));
    if (!block)
        return CARAG_NO_MEMORY;
    carve(job, block->bytes, runs);
    job->run_room = (uint32_t)runs;
    if (!look_up(job))
        status = CARAG_CORRUPT;
    if (status == CARAG_OK && out_found) {
        status = carag_text_score(job);
        if (status == CARAG_OK)
            status = carag_rank_give(job->shelf, &job->ranking, &job->stats, out_found);
    }
    carag_block_give(job->text, block);
    return status;
}

static carag_status answer(carag_asking *job, carag_text_found **out_found, carag_fault *out_fault)
{
    carag_status status = verify(job, out_fault);
    if (status == CARAG_OK && job->query->documents)
        status = carag_lookup_of(job->query->documents, job->query->document_count, &job->documents, out_fault);
    if (status != CARAG_OK)
        return status;
    job->ranking.floor = job->query->floor;
    job->shelf = &job->text->shelf;
    pthread_rwlock_rdlock(&job->text->lock);
    status = ask(job, out_found);
    pthread_rwlock_unlock(&job->text->lock);
    carag_release(job->ranking.items);
    carag_release(job->documents.slots);
    if (status == CARAG_CORRUPT) {
        carag_fail(out_fault, status, 0, "the postings of the mapped file are damaged");
        if (out_fault)
            out_fault->where = "postings";
    } else if (status != CARAG_OK) {
        carag_fail(out_fault, status, 0, "");
    }
    return status;
}

/* Of each term of the query, in its order; of one that is named twice, the number is written twice. */
static void give_frequencies(const carag_asking *job, uint64_t *out_frequencies)
{
    const carag_text_query *query = job->query;
    for (size_t i = 0; i < query->terms; i++) {
        const uint64_t begin = i > 0 ? query->word_ends[i - 1] : 0;
        const carag_asked wanted = {.word = query->words + begin, .size = (size_t)(query->word_ends[i] - begin)};
        const carag_asked *term = bsearch(&wanted, job->terms, job->term_count, sizeof *job->terms, by_bytes);
        out_frequencies[i] = term ? term->frequency : 0;
    }
}

carag_status carag_text_search(carag_text *text, const carag_text_query *query, const carag_predicate *predicates,
                               size_t predicate_count, carag_text_found **out_found, carag_fault *out_fault)
{
    carag_asking job = {.text = text, .query = query, .predicates = predicates, .predicate_count = predicate_count};
    carag_text_found *found = NULL;
    carag_status status = answer(&job, &found, out_fault);
    if (status == CARAG_OK) {
        found->frequencies = carag_allocate(query->terms, sizeof *found->frequencies);
        if (!found->frequencies)
            status = carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    }
    if (status == CARAG_OK) {
        give_frequencies(&job, found->frequencies);
        *out_found = found;
    } else {
        carag_text_found_free(found);
    }
    carag_release(job.terms);
    return status;
}

carag_status carag_text_count(carag_text *text, const carag_text_query *query, const carag_predicate *predicates,
                              size_t predicate_count, uint64_t *out_frequencies, carag_text_stats *out_stats,
                              carag_fault *out_fault)
{
    carag_asking job = {.text = text, .query = query, .predicates = predicates, .predicate_count = predicate_count};
    const carag_status status = answer(&job, NULL, out_fault);
    if (status == CARAG_OK) {
        give_frequencies(&job, out_frequencies);
        *out_stats = job.stats;
    }
    carag_release(job.terms);
    return status;
}
