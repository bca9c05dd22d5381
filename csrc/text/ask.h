/* text/ask.h - a question on its way: from terms to runs (text/ask.c), from runs to scores (text/score.c). */
#ifndef CARAG_TEXT_ASK_H
#define CARAG_TEXT_ASK_H

#include "carag_internal.h"
#include "text/text.h"

/* A term of the query. */
typedef struct carag_asked {
    const unsigned char *word;
    size_t size;
    uint64_t frequency; /* admissible chunks that hold it */
    double weight;      /* how often it is carag_asked for, times its inverse document frequency */
    uint32_t times;
    bool is_light;      /* of so little weight that it is added last, where it still matters */
} carag_asked;

/* A run that is to be scored. */
typedef struct carag_scored_run {
    const unsigned char *postings;
    uint32_t bytes, count, heading, most;
    uint32_t term, part;
    uint32_t next; /* run of the same part */
    float bound;   /* the most that it adds to a score, but for rounding */
} carag_scored_run;

typedef struct carag_asking {
    carag_text *text;
    const carag_shelf *shelf;
    const carag_text_query *query;
    const carag_predicate *predicates; /* [predicate_count] of which any may admit */
    size_t predicate_count;
    carag_admission admission;
    carag_asked *terms; /* [term_count] distinct, ascending by bytes */
    uint32_t term_count;
    carag_scored_run *runs;
    uint32_t run_count, run_room;
    uint32_t *first, *last; /* [parts] runs */
    double *norms_least;    /* [parts] of the shortest chunk */
    double *bounds;         /* [parts] the most that a chunk could score, but for rounding */
    uint32_t *parts;        /* those with runs, ascending */
    uint32_t part_count;
    double *scores, *norms;  /* [widest part] */
    uint32_t *frequencies;   /* [widest part] */
    bool *wanted;            /* [widest part] whether a chunk may be in the answer */
    carag_lookup documents;  /* that the query names, if any */
    bool *is_other;          /* [parts] those of other documents: counted, and scored only where others are wanted */
    double mean;             /* of the lengths */
    carag_ranking ranking;   /* of what is scored now */
    carag_text_stats stats;
} carag_asking;

/* text/score.c */
void carag_text_weigh_parts(carag_asking *job);
void carag_text_weigh_term(carag_asking *job, uint32_t number, uint32_t first_run);
carag_status carag_text_score(carag_asking *job);

#endif
