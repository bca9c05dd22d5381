/* text/list.c - the documents and the chunks that any of some predicates admits, without a question: no posting is read.
 *
 * Predicates are asked once a class, as for a search. An even part is then told by its classes; of an uneven one, chunks are
 * looked at until one is admissible, or where the chunks themselves are wanted, all of them.
 */
#include "carag_internal.h"
#include "text/text.h"

typedef struct listing {
    const carag_shelf *shelf;
    bool *passes;       /* [classes] */
    carag_lookup asked; /* documents whose chunks are wanted */
    carag_ranking ranking;
} listing;

/* The first admissible chunk of a part; CARAG_NONE: none is. */
static uint32_t first_open(const listing *job, const carag_part *part)
{
    if (!carag_part_may_pass(part, job->passes))
        return CARAG_NONE;
    for (uint32_t chunk = part->first; chunk < part->first + part->size; chunk++)
        if (carag_admitting_label(job->shelf, job->passes, chunk) >= 0)
            return chunk;
    return CARAG_NONE;
}

static carag_status keep_document(listing *job, const carag_part *part)
{
    const uint32_t chunk = first_open(job, part);
    if (chunk == CARAG_NONE)
        return CARAG_OK;
    return carag_rank_keep(&job->ranking, (carag_ranked){.key = part->document, .chunk = chunk});
}

static carag_status keep_chunks(listing *job, const carag_part *part)
{
    carag_status status = CARAG_OK;
    if (carag_lookup_find(&job->asked, part->document) == CARAG_NONE || !carag_part_may_pass(part, job->passes))
        return CARAG_OK;
    for (uint32_t chunk = part->first; status == CARAG_OK && chunk < part->first + part->size; chunk++) {
        const int64_t key = carag_admitting_label(job->shelf, job->passes, chunk);
        if (key >= 0)
            status = carag_rank_keep(&job->ranking, (carag_ranked){.key = key, .chunk = chunk});
    }
    return status;
}

/* Labels have one key each, documents a part's for each part: the first of equals stays. */
static void drop_equals(carag_ranking *ranking)
{
    size_t kept = 0;
    for (size_t i = 0; i < ranking->count; i++)
        if (kept == 0 || ranking->items[kept - 1].key != ranking->items[i].key)
            ranking->items[kept++] = ranking->items[i];
    ranking->count = kept;
}

/* What `keep` keeps of every part, ascending by key: scores are equal, all 0. */
static carag_status list(listing *job, const carag_predicate *predicates, size_t count,
                         carag_status (*keep)(listing *, const carag_part *), carag_text_found **out_found)
{
    const carag_shelf *shelf = job->shelf;
    const carag_text_stats none = {0};
    job->passes = carag_allocate(atomic_load(&shelf->classes->count), sizeof *job->passes);
    if (!job->passes)
        return CARAG_NO_MEMORY;
    carag_admit_classes(shelf, predicates, count, job->passes);
    carag_status status = CARAG_OK;
    for (uint32_t part = 0; status == CARAG_OK && part < shelf->part_count; part++)
        status = keep(job, &shelf->parts[part]);
    if (status == CARAG_OK)
        status = carag_rank_sort(&job->ranking);
    if (status != CARAG_OK)
        return status;
    drop_equals(&job->ranking);
    return carag_rank_give(shelf, &job->ranking, &none, out_found);
}

static carag_status answer(carag_text *text, listing *job, const carag_predicate *predicates, size_t count,
                           carag_status (*keep)(listing *, const carag_part *), carag_text_found **out_found,
                           carag_fault *out_fault)
{
    job->shelf = &text->shelf;
    pthread_rwlock_rdlock(&text->lock);
    const carag_status status = list(job, predicates, count, keep, out_found);
    pthread_rwlock_unlock(&text->lock);
    carag_release(job->passes);
    carag_release(job->ranking.items);
    return status == CARAG_OK ? status : carag_fail(out_fault, status, 0, "");
}

carag_status carag_text_documents(carag_text *text, const carag_predicate *predicates, size_t predicate_count,
                                  carag_text_found **out_found, carag_fault *out_fault)
{
    const carag_status status = carag_predicates_verify(predicates, predicate_count, out_fault);
    if (status != CARAG_OK)
        return status;
    listing job = {.passes = NULL};
    return answer(text, &job, predicates, predicate_count, keep_document, out_found, out_fault);
}

carag_status carag_text_admissible(carag_text *text, const carag_predicate *predicates, size_t predicate_count,
                                   const int64_t *documents, size_t count, carag_text_found **out_found,
                                   carag_fault *out_fault)
{
    listing job = {.passes = NULL};
    carag_status status = carag_predicates_verify(predicates, predicate_count, out_fault);
    if (status == CARAG_OK)
        status = carag_lookup_of(documents, count, &job.asked, out_fault);
    if (status != CARAG_OK)
        return status;
    status = answer(text, &job, predicates, predicate_count, keep_chunks, out_found, out_fault);
    carag_release(job.asked.slots);
    return status;
}
