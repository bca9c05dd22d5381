/* text/text.h - the words of an index of texts: chunks in parts, labels on chunks, postings in segments.
 *
 * A chunk is text that never changes: a key, and how often each term stands in it. A part is the chunks of one document
 * that were added together; its heading counts as if it stood at the beginning of each of them. A label is a policy word
 * with the terms of a release, on a chunk; labels come and go, and postings never hear of it.
 *
 * One writer, many readers. Writers take turns under `writer` and prepare what they can without hindering anybody; what
 * readers see they change under `lock`, which readers share, so that a search sees all of a change or nothing of it.
 */
#ifndef CARAG_TEXT_H
#define CARAG_TEXT_H

#include "carag_internal.h"
#include "policy.h"
#include "row/row.h"

#define CARAG_PART_CLASSES 4     /* classes that the labels of an even part may have */
#define CARAG_TEXT_SEGMENTS 64   /* segments at once; each is at least twice the next, so there are fewer */
#define CARAG_MAX_TERM 65535     /* bytes of a term */
#define CARAG_MAX_PART (1U << 24) /* chunks of a part */
#define CARAG_MAX_LABELS 4096    /* live labels of a chunk: each new one is compared with all */

typedef struct carag_chunk {
    int64_t key; /* -1: deleted */
    uint32_t part;
    uint32_t label; /* its first label, CARAG_NONE: none; they ascend by key */
} carag_chunk;

/* Even: every chunk has labels of the same classes, so that one of them stands for all. */
typedef struct carag_part {
    int64_t document;
    uint64_t length; /* of the live chunks together */
    uint32_t first, size; /* chunks */
    uint32_t live;
    uint32_t shortest; /* least length of its chunks */
    uint32_t changes; /* of its labels since it was last asked whether it is even */
    uint32_t classes[CARAG_PART_CLASSES];
    uint32_t class_count;
    bool is_even;
} carag_part;

typedef struct carag_label {
    int64_t key; /* -1: not in use */
    uint32_t chunk, class;
    uint32_t next; /* label of the chunk; of one not in use, the next such slot */
    bool is_closing; /* by the call under way: the writer's */
} carag_label;

/* Key to number. */
typedef struct carag_lookup {
    struct carag_lookup_slot {
        int64_t key; /* -1: empty */
        uint32_t number;
    } *slots;
    size_t capacity; /* 0, or a power of two, more than twice `count` */
    size_t count;
} carag_lookup;

/* Memory that several segments' arrays lie in: of a batch, or a file. */
typedef struct carag_blob {
    unsigned char *bytes;
    size_t size;
    bool is_mapped;
} carag_blob;

/* Terms, ascending by their bytes, and where they stand. For each term a stream of runs, one a part, and a stream of
 * postings: text/segment.c says how they are coded. */
typedef struct carag_segment {
    uint64_t terms;
    const uint64_t *ends[3];         /* [terms] where each term's stream ends */
    const unsigned char *streams[3]; /* CARAG_WORDS, CARAG_RUNS, CARAG_POSTINGS */
    uint64_t sizes[3];               /* of the streams */
    carag_blob blob;                 /* in which all of them lie */
} carag_segment;

enum { CARAG_WORDS, CARAG_RUNS, CARAG_POSTINGS };

/* What a text index holds; replaced as a whole by consolidation. */
typedef struct carag_shelf {
    carag_chunk *chunks;
    uint32_t *lengths; /* tokens of each chunk, its heading's included */
    uint32_t chunk_count, chunk_room;
    carag_part *parts;
    uint32_t part_count, part_room;
    uint32_t widest; /* chunks of the largest part */
    carag_label *labels;
    uint32_t label_count, label_room; /* slots in use or used before */
    uint32_t free_label;              /* the first slot not in use, CARAG_NONE: none below label_count */
    uint32_t live_chunks, live_labels;
    carag_catalog *classes; /* a dictionary only; classes->live counts labels */
    carag_lookup chunk_of, label_of;
    carag_segment *segments[CARAG_TEXT_SEGMENTS];
    uint32_t segment_count;
} carag_shelf;

/* Working memory of a search. */
typedef struct carag_block {
    size_t size;
    unsigned char *bytes; /* aligned to a cache line */
} carag_block;

struct carag_text {
    carag_shelf shelf;
    pthread_mutex_t writer;
    pthread_rwlock_t lock;
    carag_slots scratches;
};

/* A stream being read, or written. */
typedef struct carag_stream {
    const unsigned char *at, *end;
} carag_stream;

typedef struct carag_bytes {
    unsigned char *data;
    size_t size, room;
} carag_bytes;

/* A term in one part. */
typedef struct carag_run {
    uint32_t part;
    uint32_t count;   /* chunks of the part whose own text has the term */
    uint32_t heading; /* how often it stands in the heading */
    uint32_t bytes;   /* of the postings; 0 when count is 0 */
    uint32_t most;    /* how often it stands in one of the chunks at most; likewise */
} carag_run;

/* The next number of a stream; false at its end, or if it exceeds 32 bits. */
static inline bool carag_next_number(carag_stream *stream, uint32_t *out)
{
    if (stream->at < stream->end && *stream->at < 128) {
        *out = *stream->at++;
        return true;
    }
    uint64_t number = 0;
    for (int shift = 0; shift < 35 && stream->at < stream->end; shift += 7) {
        const unsigned char byte = *stream->at++;
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *out = (uint32_t)number;
            return number <= UINT32_MAX && (byte > 0 || shift == 0); /* one way to write each */
        }
    }
    return false;
}

/* The next run; *run is the one before, of the first {.part = CARAG_NONE}. False when the stream is malformed: ask for
 * no more than there are. */
static inline bool carag_next_run(carag_stream *runs, carag_run *run)
{
    uint32_t gap;
    uint32_t count;
    if (runs->end - runs->at >= 4) { /* nearly all: four numbers of a byte each, none of them the heading's */
        const unsigned char *at = runs->at;
        if (((at[0] | at[1] | at[2] | at[3]) & 128) == 0 && at[0] > 0 && at[1] > 1 && (at[1] & 1) == 0 &&
            run->part + at[0] < CARAG_MAX_ROWS) {
            *run = (carag_run){.part = run->part + at[0], .count = at[1] >> 1, .bytes = at[2], .most = at[3]};
            runs->at += 4;
            return true;
        }
    }
    if (!carag_next_number(runs, &gap) || !carag_next_number(runs, &count) || gap == 0)
        return false;
    const uint64_t part = (uint64_t)(uint32_t)(run->part + 1) + gap - 1; /* CARAG_NONE + 1 is 0 */
    *run = (carag_run){.part = (uint32_t)part, .count = count >> 1};
    if (part >= CARAG_NONE || count == 0)
        return false;
    if ((count & 1) && (!carag_next_number(runs, &run->heading) || run->heading == 0))
        return false;
    return run->count == 0 || (carag_next_number(runs, &run->bytes) && carag_next_number(runs, &run->most));
}

/* The next posting; *place is that of the one before, of the first CARAG_NONE. */
static inline bool carag_next_posting(carag_stream *postings, uint32_t *place, uint32_t *out_frequency)
{
    uint32_t gap;
    if (postings->end - postings->at >= 2 && ((postings->at[0] | postings->at[1]) & 128) == 0) { /* nearly all */
        gap = postings->at[0];
        *out_frequency = postings->at[1];
        postings->at += 2;
        *place += gap;
        return gap > 0 && *out_frequency > 0 && *place < CARAG_NONE;
    }
    if (!carag_next_number(postings, &gap) || !carag_next_number(postings, out_frequency) || gap == 0)
        return false;
    const uint64_t next = (uint64_t)(uint32_t)(*place + 1) + gap - 1;
    *place = (uint32_t)next;
    return next < CARAG_NONE && *out_frequency > 0;
}

/* text/lookup.c */
uint32_t carag_lookup_find(const carag_lookup *lookup, int64_t key);
bool carag_lookup_insert(carag_lookup *lookup, int64_t key, uint32_t number);
void carag_lookup_remove(carag_lookup *lookup, int64_t key);
carag_status carag_lookup_grown(const carag_lookup *from, size_t wanted, carag_lookup *out);
carag_status carag_lookup_of(const int64_t *documents, size_t count, carag_lookup *out, carag_fault *out_fault);

/* text/segment.c */
carag_status carag_segment_build(const carag_text_batch *batch, uint32_t first_part, carag_segment **out);
carag_status carag_segment_merge(const carag_shelf *shelf, carag_segment *const *segments, uint32_t count,
                                 const uint32_t *parts, const uint32_t *places, carag_segment **out,
                                 carag_fault *out_fault);
void carag_segment_free(carag_segment *segment);
void carag_blob_free(carag_blob *blob);
bool carag_segment_term(const carag_segment *segment, uint64_t term, int which, carag_stream *out);
bool carag_segment_find(const carag_segment *segment, const unsigned char *word, size_t size, uint64_t *out_term,
                        bool *out_found);

/* text/text.c */
carag_status carag_shelf_init(carag_shelf *shelf);
void carag_shelf_free(carag_shelf *shelf);
carag_status carag_text_reserve(carag_text *text, size_t chunks, size_t parts, size_t labels);
void carag_text_replace(carag_text *text, carag_shelf *shelf);

/* text/labels.c */
bool carag_windows_overlap(carag_terms a, carag_terms b);
void carag_shelf_open(carag_shelf *shelf, uint32_t slot, int64_t key, uint32_t chunk, uint32_t class);
void carag_shelf_close(carag_shelf *shelf, uint32_t slot);
void carag_part_settle(const carag_shelf *shelf, carag_part *part);

/* text/compact.c; the writer's */
carag_status carag_text_compact_now(carag_text *text, carag_fault *out_fault);

/* text/admit.c */
typedef enum carag_share { CARAG_NOTHING, CARAG_SOME, CARAG_ALL } carag_share;

/* What any of some predicates admits. */
typedef struct carag_admission {
    bool *passes;    /* [classes] */
    uint8_t *shares;   /* [parts] a carag_share */
    uint32_t *counts;  /* [parts] admissible chunks */
    uint64_t *bits;    /* [chunks / 64 + 1] by chunk, of parts that are admissible in part */
    uint64_t chunks;   /* admissible */
    uint64_t length;   /* of them together */
} carag_admission;

carag_status carag_predicates_verify(const carag_predicate *predicates, size_t count, carag_fault *out_fault);
void carag_admit_classes(const carag_shelf *shelf, const carag_predicate *predicates, size_t count, bool *out_passes);
int64_t carag_admitting_label(const carag_shelf *shelf, const bool *passes, uint32_t chunk);
bool carag_part_may_pass(const carag_part *part, const bool *passes);
void carag_admit(const carag_shelf *shelf, const carag_predicate *predicates, size_t count, carag_admission *admission);

static inline bool carag_is_admitted(const carag_admission *admission, uint32_t chunk)
{
    return admission->bits[chunk / 64] >> (chunk % 64) & 1;
}

/* text/block.c */
carag_block *carag_block_take(carag_text *text, size_t size);
void carag_block_give(carag_text *text, carag_block *block);
void carag_block_free(carag_block *block);

/* text/rank.c */
typedef struct carag_ranked {
    double score;
    int64_t key; /* of the label */
    uint32_t chunk;
} carag_ranked;

typedef struct carag_ranking {
    carag_ranked *items;
    size_t count, room;
    size_t limit; /* how many are wanted; 0: all */
    double floor; /* below this no item is wanted */
} carag_ranking;

bool carag_rank_wants(const carag_ranking *ranking, double score, int64_t key);
carag_status carag_rank_keep(carag_ranking *ranking, carag_ranked item);
carag_status carag_rank_sort(carag_ranking *ranking);
carag_status carag_rank_give(const carag_shelf *shelf, const carag_ranking *ranking, const carag_text_stats *stats,
                             carag_text_found **out_found);

/* text/sound.c */
carag_status carag_shelf_verify(const carag_shelf *shelf, carag_fault *out_fault);
bool carag_shelf_is_mapped(const carag_shelf *shelf);

#endif
