/* carag.h - the only public header of the CARAG core: a filtered vector index.
 *
 * An index holds rows: a unit vector, a 32-bit policy word, the terms of its release (public from, until, about
 * which entity, to which audience), and the caller's key. A search names a predicate and gets the nearest rows that satisfy it, and no
 * other, however it runs: search/exact.c exactly, search/scan.c over one-bit codes, hnsw/search.c over an HNSW graph.
 * An index of texts (carag_text) holds the words of chunks, and answers with those of highest BM25 score instead.
 *
 * Contract for every function here
 *   - The result is a carag_status. On anything but CARAG_OK outputs are untouched and the index is as
 *     before the call; *out_fault (may be NULL) says what was wrong and where.
 *   - Any thread may call any function at any time. Writers (add, relabel, delete, consolidate, save) take turns;
 *     searches and counts take no lock and never wait. Those of an index of texts share a lock, and wait for the few
 *     stores that make a change visible. The exception is freeing: no other thread may hold the index.
 *   - Same calls, same seed: same file bytes and same answers, for any number of threads, on every kernel and machine.
 *     (Which plan CARAG_PLAN_AUTO takes depends on timings of this machine.)
 *   - All memory comes from the allocator hooks; nothing is printed, no signal raised, no process ended.
 *
 * The text between the two cffi markers is the Python binding's declaration, read from this file.
 */
#ifndef CARAG_H
#define CARAG_H

#include <stddef.h>
#include <stdint.h>

/* cffi: begin */

#define CARAG_MAX_DIM 65536            /* coordinates of a vector */
#define CARAG_MIN_M 2                  /* links that a row asks for, at least */
#define CARAG_MAX_M 256                /* links that a row asks for, at most */
#define CARAG_MAX_EF 1048576           /* rows in the beam of a graph search */
#define CARAG_DEFAULT_EF_SEARCH 96     /* rows in the beam, until an index is large enough to be tuned */
#define CARAG_MAX_PAIRS 8              /* pairs of a predicate */
#define CARAG_MAX_PREDICATES 8         /* predicates of a question to an index of texts */
#define CARAG_MAX_THREADS 1024         /* threads that a call may ask for */
#define CARAG_ALWAYS_PUBLIC 0          /* public_at of a row open from the beginning of time */
#define CARAG_NEVER_PUBLIC 4294967295U /* public_at of a row closed at every as_of */
#define CARAG_NEVER_EXPIRES 4294967295U /* expires_at of a row that stays open to the end of time */
#define CARAG_NO_ENTITY 0              /* entity of a row about none */
#define CARAG_EVERYBODY 0              /* audience of a row that every predicate admits */
#define CARAG_PLANS 5                  /* members of carag_plan */
#define CARAG_FILE_VERSION 3           /* of the files that are saved; those of the version before are loaded, too */

typedef struct carag_index carag_index;

typedef enum carag_status {
    CARAG_OK = 0,
    CARAG_NO_MEMORY,
    CARAG_BAD_ARGUMENT,  /* fault.what says which */
    CARAG_NOT_FINITE,    /* a NaN or infinity in vector fault.row */
    CARAG_ZERO_VECTOR,   /* vector fault.row has no direction */
    CARAG_BAD_WORD,      /* word fault.row carries control bits its caller may not set */
    CARAG_BAD_KEY,       /* key fault.row is negative */
    CARAG_DUPLICATE_KEY, /* key fault.row is in use, or twice in the batch */
    CARAG_UNKNOWN_KEY,   /* key fault.row is not in the index */
    CARAG_BAD_PREDICATE, /* a pair that does not test every control bit, or too many pairs */
    CARAG_FULL,          /* more rows than 32-bit row numbers can name */
    CARAG_IO,            /* fault.os_error is errno */
    CARAG_CORRUPT,       /* the file fails its own checks: fault.where is the section */
    CARAG_BAD_KERNEL,    /* no such kernel here: fault.what says which */
    CARAG_OVERLAP,       /* the window of label fault.row overlaps that of another label of its chunk */
    CARAG_BEHIND         /* a materialised view is not of the rows that are admissible now: ask the index */
} carag_status;

typedef struct carag_fault {
    uint64_t row;      /* position in the caller's batch, or row number in a file */
    const char *where; /* file section, or "" */
    const char *what;  /* one static sentence, or "" */
    int32_t os_error;  /* errno, or 0 */
} carag_fault;

/* What is kept of a vector besides its codes; answers are exact over what is kept. */
typedef enum carag_dtype { CARAG_FLOAT32 = 0, CARAG_FLOAT16 = 1, CARAG_INT8 = 2 } carag_dtype;

typedef struct carag_params {
    uint32_t dim;             /* 1 .. CARAG_MAX_DIM */
    uint32_t M;               /* links a row asks for; layer 0 holds up to M0 = 2 M */
    uint32_t ef_construction; /* beam width while inserting, 1 .. CARAG_MAX_EF */
    uint64_t seed;            /* decides the layers of every row */
    carag_dtype dtype;
} carag_params;

typedef struct carag_info {
    carag_params params;
    uint32_t rows;      /* stored, deleted ones included */
    uint32_t live;      /* not deleted */
    uint32_t classes;   /* distinct (word, terms) of the live rows, at most */
    uint32_t max_level; /* top layer of the graph */
} carag_info;

/* A row satisfies a pair iff (word & mask) == value. */
typedef struct carag_pair {
    uint32_t mask;
    uint32_t value;
} carag_pair;

typedef enum carag_entity_rule {
    CARAG_ANY_ENTITY = 0,
    CARAG_ONLY_ENTITIES = 1, /* rows about a listed entity, no other */
    CARAG_NOT_ENTITIES = 2   /* rows about any entity but a listed one */
} carag_entity_rule;

typedef enum carag_audience_rule {
    CARAG_LISTED_AUDIENCES = 0, /* rows for everybody, or for an audience whose bit is set */
    CARAG_ANY_AUDIENCE = 1      /* for work on all rows that shows none of them */
} carag_audience_rule;

/* A row is admissible iff any pair is satisfied, public_at <= as_of and alive_at < expires_at, and the rules admit its
 * entity and its audience. No pairs: nothing is. Two different instants ask for what has been public for some time and
 * has not expired. */
typedef struct carag_predicate {
    carag_pair pairs[8];
    uint32_t pair_count;      /* 0 .. CARAG_MAX_PAIRS */
    uint32_t as_of;           /* minutes since 1970-01-01T00:00Z; public by then */
    uint32_t alive_at;        /* not expired then; as_of .. CARAG_NEVER_PUBLIC - 1 */
    const uint32_t *entities; /* (entity_count,), ascending, none twice */
    size_t entity_count;
    carag_entity_rule entity_rule;
    const uint64_t *audiences; /* (audience_count + 63) / 64 words: audience a is bit a % 64 of word a / 64 */
    uint32_t audience_count;   /* bits; greater audiences are not listed */
    carag_audience_rule audience_rule;
} carag_predicate;

typedef enum carag_plan {
    CARAG_PLAN_AUTO = 0,
    CARAG_PLAN_EXACT = 1,    /* the exact answer */
    CARAG_PLAN_GRAPH = 2,    /* HNSW with the word test in its inner loop */
    CARAG_PLAN_SCAN = 3,     /* one-bit codes first, nearest cells first, then eight-bit, then vectors */
    CARAG_PLAN_CERTIFIED = 4 /* the exact answer, reading no vector or code of an inadmissible row */
} carag_plan;

/* Why the plan that answered is the one that did. */
typedef enum carag_why {
    CARAG_WHY_ASKED = 0,
    CARAG_WHY_NOTHING,  /* no row is admissible */
    CARAG_WHY_CHEAPEST, /* by the cost model */
    CARAG_WHY_ALL,      /* every admissible row is wanted: no graph can touch fewer */
    CARAG_WHY_BUDGET,   /* a walk over the graph was given up, and the scan that it came from went on */
    CARAG_WHY_FILL,     /* the graph, or the estimate, ended with too few rows */
    CARAG_WHY_NEAR      /* by how many rows near the query are admissible */
} carag_why;

typedef struct carag_search_params {
    size_t k;           /* rows wanted per query, >= 1; more than exist is fine */
    uint32_t ef_search; /* beam width over the graph, 1 .. CARAG_MAX_EF; k is used when larger */
    carag_plan plan;
    uint32_t threads;   /* 1 .. CARAG_MAX_THREADS: how many share the queries */
    int no_fallback;    /* for measurements: a graph search keeps what it found, over budget or short */
    uint64_t exact_limit; /* admissible rows up to which CARAG_PLAN_AUTO runs the certified plan; 0: never */
} carag_search_params;

/* Arrays of the caller; (nq, k) means row-major. Slots beyond counts[q]: key -1, similarity -inf. */
typedef struct carag_results {
    int64_t *keys;                     /* (nq, k), nearest first, ties by smaller key */
    float *similarities;               /* (nq, k), dot product of what is kept of the unit vectors */
    int64_t *counts;                   /* (nq,), min(k, admissible) */
    int64_t *estimates;                /* (nq,) rows scored by their one-bit code; of a scan, the admissible among them */
    int64_t *distance_computations;    /* (nq,) rows scored by their eight-bit code or vector */
    int64_t *hops;                     /* (nq,) rows expanded in the graph */
    int64_t *ef;                       /* (nq,) widest beam used; 0 without the graph */
    uint8_t *plans;                    /* (nq,) the carag_plan that made the answer */
    uint8_t *whys;                     /* (nq,) carag_why */
    uint64_t admissible;               /* rows that satisfied the predicate when the call began */
    uint64_t rows;                     /* live rows at that moment */
    uint32_t classes;                  /* admissible classes */
    uint32_t materialised;             /* 1: answered over a materialised view; 0: over the index */
    double nanoseconds[CARAG_PLANS];   /* predicted for one query by plan; 0: was not considered */
} carag_results;

/* A second, wider predicate whose nearest rows the same call finds, so that those refused by the first are known. It is
 * searched after the first answer is written, which it does not change. Arrays of the caller. */
typedef struct carag_wider {
    const carag_predicate *predicate;
    size_t k;               /* rows wanted per query, >= 1 */
    carag_results *results; /* with k of these: as carag_index_search would answer under this predicate */
    uint32_t *words;        /* (nq, k) of the rows, as they were when written; 0 beyond counts[q] */
    uint8_t *refused;       /* (nq, k) 1 where the first predicate did not admit the row then; 0 beyond counts[q] */
} carag_wider;

typedef struct carag_rows {
    const float *vectors;       /* (count, dim), any length; stored as unit vectors */
    const uint32_t *words;      /* (count,) */
    const uint32_t *public_at;  /* (count,), or NULL: always public */
    const uint32_t *expires_at; /* (count,), or NULL: never expires */
    const uint32_t *entities;   /* (count,), or NULL: about no entity */
    const uint32_t *audiences;  /* (count,), or NULL: for everybody */
    const int64_t *keys;        /* (count,), or NULL: the next free numbers */
    size_t count;
    int allow_quarantine;       /* whether words may carry the quarantine bit */
    uint32_t threads;           /* 1 .. CARAG_MAX_THREADS */
} carag_rows;

/* Where carag_index_get writes; NULL members are skipped. */
typedef struct carag_columns {
    float *vectors;       /* (count, dim) as kept */
    uint32_t *words;      /* (count,) */
    uint32_t *public_at;  /* (count,) */
    uint32_t *expires_at; /* (count,) */
    uint32_t *entities;   /* (count,) */
    uint32_t *audiences;  /* (count,) */
} carag_columns;

/* Life */
carag_status carag_index_new(const carag_params *params, carag_index **out_index, carag_fault *out_fault);
void carag_index_free(carag_index *index);
void carag_index_info(carag_index *index, carag_info *out_info);

/* Change. out_keys (count,) receives the keys given to the new rows; may be NULL.
 * reserve makes room for a total number of rows, so that adding them copies none; consolidate releases the spare room.
 * relabel_where gives every row the predicate admits the word (word & ~clear) | set; policy bits only.
 * consolidate drops deleted rows, orders the rest by class and builds graph and one-bit codes again. */
carag_status carag_index_add(carag_index *index, const carag_rows *rows, int64_t *out_keys,
                             carag_fault *out_fault);
carag_status carag_index_reserve(carag_index *index, size_t rows, carag_fault *out_fault);
carag_status carag_index_relabel(carag_index *index, const int64_t *keys, const uint32_t *words,
                                 size_t count, int allow_quarantine, carag_fault *out_fault);
carag_status carag_index_relabel_where(carag_index *index, const carag_predicate *predicate, uint32_t set,
                                       uint32_t clear, uint64_t *out_relabelled, carag_fault *out_fault);
carag_status carag_index_delete(carag_index *index, const int64_t *keys, size_t count,
                                carag_fault *out_fault);
carag_status carag_index_consolidate(carag_index *index, uint32_t threads, carag_fault *out_fault);

/* Search. carag_index_search_both is carag_index_search and also finds the rows of `wider`, unless that is NULL.
 * carag_index_similarities writes the similarities that a search would report for live rows, whatever their words and
 * terms: for a caller that already knows what is admissible. carag_index_keys writes the keys of live rows, ascending, at most
 * `room`, and returns their number. */
carag_status carag_index_search(carag_index *index, const float *queries, size_t nq,
                                const carag_predicate *predicate, const carag_search_params *params,
                                carag_results *results, carag_fault *out_fault);
carag_status carag_index_search_both(carag_index *index, const float *queries, size_t nq,
                                     const carag_predicate *predicate, const carag_search_params *params,
                                     carag_results *results, const carag_wider *wider, carag_fault *out_fault);
carag_status carag_index_count(carag_index *index, const carag_predicate *predicate,
                               uint64_t *out_admissible, carag_fault *out_fault);
carag_status carag_index_get(carag_index *index, const int64_t *keys, size_t count,
                             const carag_columns *out_columns, carag_fault *out_fault);
carag_status carag_index_similarities(carag_index *index, const float *query, const int64_t *keys, size_t count,
                                      float *out_similarities, carag_fault *out_fault);
size_t carag_index_keys(carag_index *index, int64_t *out_keys, size_t room);
int carag_index_contains(carag_index *index, int64_t key);

/* Materialised views. A view is a separate index of the rows that a predicate admits, made for a predicate that is asked
 * repeatedly: where few rows are admissible, it is as fast as an unfiltered index of few rows.
 *
 * It answers only under that predicate, at instants between which no row opens or expires, and only until the index
 * changes. Otherwise the status is CARAG_BEHIND, the output is void, and the caller asks the index. Every row found is
 * tested against the index before it is returned, so even an outdated view returns nothing inadmissible.
 *
 * _bytes tells how much memory a view of a number of rows takes. _copy copies the rows in a fraction of a second, while
 * changes that replace arrays wait and searches do not; CARAG_FULL if the view would take more than max_bytes,
 * CARAG_BEHIND if the index changed meanwhile or nothing is admissible. _build takes long and does not touch the index;
 * a view cannot answer before it. Searches of a view may run concurrently with each other and with changes of the index,
 * but not with _build. A view must not outlive its index. */
typedef struct carag_materialised carag_materialised;

carag_status carag_materialised_copy(carag_index *index, const carag_predicate *predicate, uint64_t max_bytes,
                                     carag_materialised **out_view, carag_fault *out_fault);
carag_status carag_materialised_build(carag_materialised *view, uint32_t threads, carag_fault *out_fault);
carag_status carag_materialised_search(carag_materialised *view, const float *queries, size_t nq,
                                       const carag_predicate *predicate, const carag_search_params *params,
                                       carag_results *results, carag_fault *out_fault);
int carag_materialised_is_current(const carag_materialised *view);
uint64_t carag_materialised_bytes(const carag_index *index, uint32_t rows);
uint32_t carag_materialised_rows(const carag_materialised *view);
void carag_materialised_free(carag_materialised *view);

/* Files. Saving replaces `path` atomically; loading trusts nothing it reads. A mapped index reads vectors, codes and
 * graph from the file as needed, and leaves their checksums to carag_index_verify. preload copies codes and links into
 * memory and compares their checksums, while searches run; it does nothing if everything is in memory. */
carag_status carag_index_save(carag_index *index, const char *path, carag_fault *out_fault);
carag_status carag_index_load(const char *path, int map, carag_index **out_index, carag_fault *out_fault);
carag_status carag_index_preload(carag_index *index, carag_fault *out_fault);
carag_status carag_index_verify(carag_index *index, carag_fault *out_fault);

/* Check. One bit per broken invariant, 0 when sound; carag_invariant_name(bit) describes it. */
uint32_t carag_index_check(carag_index *index, carag_fault *out_fault);
const char *carag_invariant_name(uint32_t bit);

/* ---- Words: an index of texts, searched by BM25 under the same predicates (text/text.h says what it is made of).
 *
 * A question has 1 to CARAG_MAX_PREDICATES predicates. For it only the admissible chunks exist: one of their live
 * labels satisfies one of the predicates; a chunk that several admit counts once. With N of them, L the mean
 * of their lengths, n the number of them that hold a term, f how often a chunk holds it, and q how often the query
 * names it, a chunk's score is the sum, over the terms in the order of their bytes, of
 *
 *     q * log(1 + (N - n + 0.5) / (n + 0.5)) * (f * (k1 + 1) / (f + k1 * (1 - b + b * length / L)))
 *
 * in double, each operation rounded; log is the C library's, so that another one may give another last bit. The heading
 * of a part counts in f and length of each of its chunks. */

typedef struct carag_text carag_text;

/* Chunks to add, part after part. */
typedef struct carag_text_batch {
    const int64_t *keys;          /* (chunks,) */
    size_t chunks;
    const int64_t *documents;     /* (parts,) */
    const uint32_t *sizes;        /* (parts,) chunks of each, 1 or more */
    size_t parts;
    const uint8_t *words;         /* the terms one after the other, ascending by their bytes, none twice or empty */
    const uint64_t *word_ends;    /* (terms,) */
    size_t terms;
    const uint32_t *tokens;       /* numbers of terms, chunk after chunk */
    const uint64_t *token_ends;   /* (chunks,) */
    const uint32_t *headings;     /* likewise, of the parts */
    const uint64_t *heading_ends; /* (parts,) */
} carag_text_batch;

/* Labels to open, and to close; readers see all of it at once, or nothing. */
typedef struct carag_text_labels {
    const int64_t *keys;        /* (count,) */
    const int64_t *chunks;      /* (count,) keys of chunks */
    const uint32_t *words;      /* (count,) */
    const uint32_t *public_at;  /* (count,), or NULL: always public */
    const uint32_t *expires_at; /* (count,), or NULL: never expires */
    const uint32_t *entities;   /* (count,), or NULL: about no entity */
    const uint32_t *audiences;  /* (count,), or NULL: for everybody */
    size_t count;
    const int64_t *closes;      /* (close_count,) keys of labels */
    size_t close_count;
    int allow_quarantine;       /* whether words may carry the quarantine bit */
} carag_text_labels;

typedef struct carag_text_query {
    const uint8_t *words;      /* the terms one after the other, in any order; one named twice counts twice */
    const uint64_t *word_ends; /* (terms,) */
    size_t terms;
    double k1;                 /* 0 .. 1000 */
    double b;                  /* 0 .. 1 */
    size_t k;                  /* chunks wanted; 0: all that match */
    double floor;              /* least score of a chunk that is wanted; 0: any */
    int count_matched;         /* count all that match, which costs reading what could not be among the k */
    const int64_t *documents;  /* (document_count,) whose chunks alone are found; statistics stay those of all. NULL: all */
    size_t document_count;
    int others;                /* find all chunks of the documents, and the k best of others */
} carag_text_query;

typedef struct carag_text_stats {
    uint64_t admissible;   /* chunks that satisfied a predicate */
    uint64_t length;       /* their tokens, headings included, together */
    uint64_t matched;      /* admissible chunks with a term of the query; 0 unless all are wanted, or counted */
    uint64_t chunks;       /* live */
    uint64_t runs;         /* of a term in a part: read */
    uint64_t runs_skipped; /* because nothing of the part is admissible */
    uint64_t postings;     /* of chunks: read */
    uint64_t parts;        /* with an admissible chunk and a term of the query */
    uint64_t parts_skipped; /* of those: not scored, since none of their chunks could be among the k */
} carag_text_stats;

/* Highest score first, ties by smaller key. Of what was not searched for but listed, scores and stats are 0. */
typedef struct carag_text_found {
    size_t count;
    int64_t *keys;         /* (count,) of the label that admitted the chunk; the smallest if there are several */
    int64_t *chunks;       /* (count,) */
    int64_t *documents;    /* (count,) */
    double *scores;        /* (count,) */
    uint64_t *frequencies; /* (terms,) as carag_text_count writes them; NULL of what was listed */
    carag_text_stats stats;
} carag_text_found;

typedef struct carag_text_info {
    uint64_t chunks; /* live */
    uint64_t labels; /* live */
    uint64_t parts;
    uint64_t terms;  /* kept, in each segment; those of deleted chunks until they are compacted away */
    uint64_t bytes;  /* of terms, runs and postings */
    uint32_t segments;
    uint32_t classes; /* distinct (word, terms) of the live labels, at most */
} carag_text_info;

carag_status carag_text_new(carag_text **out_text, carag_fault *out_fault);
void carag_text_free(carag_text *text);
void carag_text_get_info(carag_text *text, carag_text_info *out_info);

/* Change. Deleting a chunk closes its labels; its words stay in memory, unsearchable, until carag_text_compact. */
carag_status carag_text_add(carag_text *text, const carag_text_batch *batch, carag_fault *out_fault);
carag_status carag_text_label(carag_text *text, const carag_text_labels *labels, carag_fault *out_fault);
carag_status carag_text_delete(carag_text *text, const int64_t *chunks, size_t count, carag_fault *out_fault);
carag_status carag_text_compact(carag_text *text, carag_fault *out_fault);

/* Search. carag_text_count writes for each term of the query how many admissible chunks hold it. carag_text_documents
 * lists each document with an admissible chunk once, ascending, and one such chunk; its keys are the documents.
 * carag_text_admissible lists the admissible chunks of some documents, ascending by the keys of their labels; a
 * document that is not there has none. Neither reads a posting. The key functions write the keys of live chunks, or
 * labels, ascending, at most `room`, and return how many there are. */
carag_status carag_text_search(carag_text *text, const carag_text_query *query, const carag_predicate *predicates,
                               size_t predicate_count, carag_text_found **out_found, carag_fault *out_fault);
void carag_text_found_free(carag_text_found *found);
carag_status carag_text_count(carag_text *text, const carag_text_query *query, const carag_predicate *predicates,
                              size_t predicate_count, uint64_t *out_frequencies, carag_text_stats *out_stats,
                              carag_fault *out_fault);
carag_status carag_text_documents(carag_text *text, const carag_predicate *predicates, size_t predicate_count,
                                  carag_text_found **out_found, carag_fault *out_fault);
carag_status carag_text_admissible(carag_text *text, const carag_predicate *predicates, size_t predicate_count,
                                   const int64_t *documents, size_t count, carag_text_found **out_found,
                                   carag_fault *out_fault);
size_t carag_text_chunks(carag_text *text, int64_t *out_keys, size_t room);
size_t carag_text_label_keys(carag_text *text, int64_t *out_keys, size_t room);

/* Files. Saving compacts first, so a file holds no word of a deleted chunk. Loading checks every checksum and, unless it
 * maps, everything that carag_text_verify does. */
carag_status carag_text_save(carag_text *text, const char *path, carag_fault *out_fault);
carag_status carag_text_load(const char *path, int map, carag_text **out_text, carag_fault *out_fault);
carag_status carag_text_verify(carag_text *text, carag_fault *out_fault);

/* Kernels: bit-identical implementations of the dot product, one per instruction set. */
size_t carag_kernel_count(void);
const char *carag_kernel_name(size_t which);
int carag_kernel_is_available(size_t which);
carag_status carag_kernel_active(const char **out_name, carag_fault *out_fault);
carag_status carag_set_kernel(const char *name, carag_fault *out_fault);
carag_status carag_dot(const float *a, const float *b, size_t n, float *out_dot, carag_fault *out_fault);

const char *carag_status_text(carag_status status);

/* cffi: end */

/* Replace the allocator of the whole process. Call it before anything is allocated. NULL restores libc. */
typedef void *(*carag_allocate_fn)(size_t size);
typedef void (*carag_release_fn)(void *memory);
void carag_set_allocator(carag_allocate_fn allocate, carag_release_fn release);

#endif
