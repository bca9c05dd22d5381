/* words.h - small indexes of words, and a plain account of what they must answer.
 *
 * Include it before any header of the system: the core's say which of its functions there are.
 */
#ifndef CARAG_TEST_WORDS_H
#define CARAG_TEST_WORDS_H

#define CARAG_ALLOW_LIBC
#include "text/format.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "file/crc32c.h"

enum { VOCABULARY = 6, MOST_CHUNKS = 64, MOST_LABELS = 256 };

static const char *const terms[VOCABULARY] = {"a", "ab", "b", "ba", "c", "\xC3\xA9"}; /* ascending by their bytes */

/* ---------------------------------------------------------------- the account */

typedef struct chunk {
    int64_t key; /* -1: deleted */
    int64_t document;
    uint32_t counts[VOCABULARY];   /* with the heading's */
    uint32_t own[VOCABULARY];
} chunk;

typedef struct label {
    int64_t key; /* -1: closed */
    int64_t chunk;
    uint32_t word;
    carag_terms terms;
} label;

typedef struct account {
    chunk chunks[MOST_CHUNKS];
    size_t chunk_count;
    label labels[MOST_LABELS];
    size_t label_count;
    int64_t next_key;
} account;

typedef struct hit {
    int64_t key, chunk, document;
    double score;
} hit;

/* The smallest key of a label of the chunk that any of the tests admits; -1: none does. */
static inline int64_t admitted_by(const account *all, const carag_test *tests, size_t count, int64_t key)
{
    int64_t best = -1;
    for (size_t i = 0; i < all->label_count; i++) {
        const label *one = &all->labels[i];
        bool passes = false;
        for (size_t test = 0; test < count; test++)
            passes |= carag_is_admissible(&tests[test], one->word, one->terms);
        if (one->key >= 0 && one->chunk == key && passes && (best < 0 || one->key < best))
            best = one->key;
    }
    return best;
}

static inline uint32_t length_of(const chunk *one)
{
    uint32_t length = 0;
    for (size_t term = 0; term < VOCABULARY; term++)
        length += one->counts[term];
    return length;
}

static inline int by_score(const void *a, const void *b)
{
    const hit *x = a;
    const hit *y = b;
    if (x->score > y->score || x->score < y->score)
        return x->score > y->score ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

#define MOST_PREDICATES 3

/* Of each chunk, the label that admits it; -1: none does. */
static inline void admitting(const account *all, const carag_predicate *predicates, size_t count,
                             int64_t out_keys[MOST_CHUNKS])
{
    static carag_test tests[MOST_PREDICATES];
    for (size_t i = 0; i < count; i++)
        carag_test_init(&tests[i], &predicates[i]);
    for (size_t i = 0; i < all->chunk_count; i++)
        out_keys[i] = all->chunks[i].key < 0 ? -1 : admitted_by(all, tests, count, all->chunks[i].key);
}

/* Every admissible chunk that holds a term, best first; times: how often the query names each. */
static inline size_t expected(const account *all, const carag_predicate *predicates, size_t predicate_count,
                              const uint32_t times[VOCABULARY], double k1, double b, hit out[MOST_CHUNKS],
                              uint64_t *out_admissible)
{
    int64_t keys[MOST_CHUNKS];
    uint64_t length = 0;
    uint64_t admissible = 0;
    size_t count = 0;
    admitting(all, predicates, predicate_count, keys);
    for (size_t i = 0; i < all->chunk_count; i++) {
        admissible += keys[i] >= 0;
        length += keys[i] >= 0 ? length_of(&all->chunks[i]) : 0;
    }
    const double mean = (double)length / (double)admissible;
    for (size_t i = 0; i < all->chunk_count; i++) {
        const chunk *one = &all->chunks[i];
        double score = 0.0;
        bool matches = false;
        const double norm = k1 * (1.0 - b + b * (double)length_of(one) / mean);
        for (size_t term = 0; keys[i] >= 0 && term < VOCABULARY; term++) {
            uint64_t with = 0;
            if (times[term] == 0 || one->counts[term] == 0)
                continue;
            for (size_t j = 0; j < all->chunk_count; j++)
                with += keys[j] >= 0 && all->chunks[j].counts[term] > 0;
            const double n = (double)with;
            const double weight = (double)times[term] * log(1.0 + ((double)admissible - n + 0.5) / (n + 0.5));
            const double f = (double)one->counts[term];
            score += weight * (f * (k1 + 1.0) / (f + norm));
            matches = true;
        }
        if (matches)
            out[count++] = (hit){keys[i], one->key, one->document, score};
    }
    qsort(out, count, sizeof *out, by_score);
    *out_admissible = admissible;
    return count;
}

/* ---------------------------------------------------------------- changes */

static inline size_t below(uint64_t *state, size_t most)
{
    return (size_t)((draw(state) >> 32) % most);
}

/* A batch of up to three parts of up to four chunks, put into the account if it is added. */
typedef struct drawn_batch {
    int64_t keys[12], documents[3];
    uint32_t sizes[3], tokens[12 * 9], headings[3 * 2];
    uint64_t token_ends[12], heading_ends[3], word_ends[VOCABULARY];
    char words[16];
    carag_text_batch given;
    chunk chunks[12];
} drawn_batch;

static inline void draw_batch(drawn_batch *out, uint64_t *state, const account *all)
{
    size_t size = 0;
    size_t tokens = 0;
    size_t headings = 0;
    size_t count = 0;
    const size_t parts = 1 + below(state, 3);
    memset(out, 0, sizeof *out);
    for (size_t term = 0; term < VOCABULARY; term++) {
        memcpy(out->words + size, terms[term], strlen(terms[term]));
        size += strlen(terms[term]);
        out->word_ends[term] = size;
    }
    for (size_t part = 0; part < parts; part++) {
        uint32_t heading[VOCABULARY] = {0};
        out->documents[part] = (int64_t)below(state, 5);
        out->sizes[part] = 1 + (uint32_t)below(state, 4);
        for (size_t i = below(state, 3); i > 0; i--) {
            out->headings[headings] = (uint32_t)below(state, VOCABULARY);
            heading[out->headings[headings++]]++;
        }
        out->heading_ends[part] = headings;
        for (uint32_t i = 0; i < out->sizes[part]; i++, count++) {
            chunk *one = &out->chunks[count];
            one->key = all->next_key + (int64_t)((count * 7) % 13);
            one->document = out->documents[part];
            memcpy(one->counts, heading, sizeof heading);
            for (size_t t = below(state, 10); t > 0; t--) {
                out->tokens[tokens] = (uint32_t)(below(state, VOCABULARY) * below(state, VOCABULARY) / VOCABULARY);
                one->own[out->tokens[tokens]]++;
                one->counts[out->tokens[tokens++]]++;
            }
            out->keys[count] = one->key;
            out->token_ends[count] = tokens;
        }
    }
    out->given = (carag_text_batch){.keys = out->keys, .chunks = count, .documents = out->documents,
                                    .sizes = out->sizes, .parts = parts, .words = (const uint8_t *)out->words,
                                    .word_ends = out->word_ends, .terms = VOCABULARY, .tokens = out->tokens,
                                    .token_ends = out->token_ends, .headings = out->headings,
                                    .heading_ends = out->heading_ends};
}

static inline void account_for(account *all, const drawn_batch *added)
{
    memcpy(all->chunks + all->chunk_count, added->chunks, added->given.chunks * sizeof *added->chunks);
    all->chunk_count += added->given.chunks;
    all->next_key += 13;
}

static inline void add_some(carag_text *text, account *all, uint64_t *state)
{
    drawn_batch some;
    draw_batch(&some, state, all);
    if (all->chunk_count + some.given.chunks > MOST_CHUNKS)
        return;
    CHECK_OK(carag_text_add(text, &some.given, NULL));
    account_for(all, &some);
}

/* Close the labels of some chunks, and give them others: all of a part's, or some of them. */
static inline void label_some(carag_text *text, account *all, uint64_t *state)
{
    int64_t keys[MOST_CHUNKS], on[MOST_CHUNKS], closes[MOST_LABELS];
    uint32_t words[MOST_CHUNKS], public_at[MOST_CHUNKS], expires_at[MOST_CHUNKS], entities[MOST_CHUNKS];
    uint32_t audiences[MOST_CHUNKS];
    size_t count = 0;
    size_t closed = 0;
    const int64_t document = (int64_t)below(state, 5);
    const uint32_t word = WORD(below(state, 4));
    const uint32_t begin = (uint32_t)below(state, 3) * 100;
    const uint32_t entity = (uint32_t)below(state, 3);
    const uint32_t audience = (uint32_t)(below(state, 2) * below(state, 4));
    const bool all_of_it = below(state, 3) > 0;
    if (all->label_count + MOST_CHUNKS > MOST_LABELS)
        return;
    for (size_t i = 0; i < all->chunk_count; i++) {
        const chunk *one = &all->chunks[i];
        if (one->key < 0 || one->document != document || (!all_of_it && below(state, 2)))
            continue;
        for (size_t j = 0; j < all->label_count; j++)
            if (all->labels[j].key >= 0 && all->labels[j].chunk == one->key &&
                all->labels[j].terms.expires_at > begin && all->labels[j].terms.public_at < begin + 100)
                closes[closed++] = all->labels[j].key;
        keys[count] = 1000000 - all->next_key++;
        on[count] = one->key;
        words[count] = below(state, 12) ? word : WORD(1) | QUARANTINE;
        public_at[count] = begin;
        expires_at[count] = begin + 100;
        audiences[count] = audience;
        entities[count++] = entity;
    }
    const carag_text_labels given = {.keys = keys, .chunks = on, .words = words, .public_at = public_at,
                                     .expires_at = expires_at, .entities = entities, .audiences = audiences,
                                     .count = count, .closes = closes, .close_count = closed, .allow_quarantine = 1};
    CHECK_OK(carag_text_label(text, &given, NULL));
    for (size_t i = 0; i < closed; i++)
        for (size_t j = 0; j < all->label_count; j++)
            if (all->labels[j].key == closes[i])
                all->labels[j].key = -1;
    for (size_t i = 0; i < count; i++)
        all->labels[all->label_count++] =
            (label){keys[i], on[i], words[i], {public_at[i], expires_at[i], entities[i], audiences[i]}};
}

static inline void close_one(carag_text *text, account *all, uint64_t *state)
{
    if (all->label_count == 0)
        return;
    label *one = &all->labels[below(state, all->label_count)];
    if (one->key < 0)
        return;
    const carag_text_labels given = {.closes = &one->key, .close_count = 1};
    CHECK_OK(carag_text_label(text, &given, NULL));
    one->key = -1;
}

static inline void delete_one(carag_text *text, account *all, uint64_t *state)
{
    if (all->chunk_count == 0)
        return;
    chunk *one = &all->chunks[below(state, all->chunk_count)];
    if (one->key < 0)
        return;
    CHECK_OK(carag_text_delete(text, &one->key, 1, NULL));
    for (size_t i = 0; i < all->label_count; i++)
        if (all->labels[i].chunk == one->key)
            all->labels[i].key = -1;
    one->key = -1;
}

/* ---------------------------------------------------------------- questions */

typedef struct question {
    uint8_t words[64];
    uint64_t ends[24];
    carag_text_query query;
    uint32_t times[VOCABULARY];
    uint32_t entities[2];
    uint64_t audiences;
    carag_predicate predicates[MOST_PREDICATES];
    size_t predicate_count;
    int64_t documents[6];
} question;

static inline void draw_question(question *out, uint64_t *state)
{
    size_t size = 0;
    const size_t count = below(state, 7);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        const size_t term = below(state, VOCABULARY);
        memcpy(out->words + size, terms[term], strlen(terms[term]));
        size += strlen(terms[term]);
        out->ends[i] = size;
        out->times[term]++;
    }
    memcpy(out->words + size, "zz", 2); /* which no chunk holds */
    out->ends[count] = size + 2;
    out->query = (carag_text_query){.words = out->words, .word_ends = out->ends, .terms = count + 1,
                                    .k1 = (double)below(state, 3), .b = (double)below(state, 3) / 2.0};
    if (below(state, 3) == 0) { /* some documents alone: named twice, not there, or none at all */
        out->query.documents = out->documents;
        out->query.document_count = below(state, 6);
        for (size_t i = 0; i < out->query.document_count; i++)
            out->documents[i] = below(state, 9) ? (int64_t)below(state, 6) : INT64_MAX;
    }
    out->entities[1] = 1 + (uint32_t)below(state, 2);
    out->audiences = below(state, 16);
    out->predicate_count = 1 + below(state, MOST_PREDICATES);
    for (size_t i = 0; i < out->predicate_count; i++) {
        carag_predicate *predicate = &out->predicates[i];
        *predicate = one_mask((uint32_t)below(state, 4) & (uint32_t)below(state, 4), 0);
        ask_aged(predicate, (uint32_t)below(state, 4) * 90, (uint32_t)(below(state, 2) * below(state, 120)));
        predicate->entities = out->entities;
        predicate->entity_count = 2;
        predicate->entity_rule = (carag_entity_rule)below(state, 3);
        share_with(predicate, &out->audiences, below(state, 6) == 0);
        predicate->audience_count = 1 + (uint32_t)below(state, 4);
    }
}

/* Whether a question asks for a document's chunks. */
static inline bool is_wanted(const carag_text_query *query, int64_t document)
{
    for (size_t i = 0; query->documents && i < query->document_count; i++)
        if (query->documents[i] == document)
            return true;
    return query->documents == NULL;
}

/* Which hits a question asks for: above its floor, the k best; of the documents named, where some are, or all of those
 * and the k best of others. */
static inline size_t asked_for(const carag_text_query *query, const hit *every, size_t count, hit *out)
{
    size_t taken = 0;
    size_t limited = 0;
    for (size_t i = 0; i < count; i++) {
        const bool is_named = is_wanted(query, every[i].document);
        if (every[i].score < query->floor || !(is_named || query->others))
            continue;
        if (query->k > 0 && !(is_named && query->others) && limited++ >= query->k)
            continue;
        out[taken++] = every[i];
    }
    return taken;
}

/* All, then the k best, then those above a floor; of the documents named, where some are, and then with others. */
static inline void answers_as_expected(carag_text *text, const account *all, question *asked)
{
    hit every[MOST_CHUNKS], wanted[MOST_CHUNKS];
    uint64_t admissible;
    const size_t count = expected(all, asked->predicates, asked->predicate_count, asked->times, asked->query.k1,
                                  asked->query.b, every, &admissible);
    uint64_t frequencies[24];
    carag_text_stats stats;
    CHECK_OK(carag_text_count(text, &asked->query, asked->predicates, asked->predicate_count, frequencies, &stats,
                              NULL));
    for (size_t k = 0; k < 10; k++)
        for (size_t at = 0; at <= count; at += count / 2 + 1) {
            carag_text_found *found = NULL;
            asked->query.k = k / 2;
            asked->query.others = asked->query.documents && k % 2 == 1;
            asked->query.floor = at == count ? 0.0 : every[at].score;
            CHECK_OK(carag_text_search(text, &asked->query, asked->predicates, asked->predicate_count, &found, NULL));
            const size_t left = asked_for(&asked->query, every, count, wanted);
            CHECK(found->count == left && found->stats.admissible == admissible);
            CHECK(memcmp(found->frequencies, frequencies, asked->query.terms * sizeof *frequencies) == 0);
            CHECK(found->stats.matched == (asked->query.k == 0 && asked->query.floor <= 0.0 ? left : 0));
            for (size_t i = 0; i < left; i++) {
                CHECK(found->keys[i] == wanted[i].key && found->chunks[i] == wanted[i].chunk);
                CHECK(found->documents[i] == wanted[i].document);
                CHECK(memcmp(&found->scores[i], &wanted[i].score, sizeof(double)) == 0);
            }
            carag_text_found_free(found);
        }
}

static inline int by_key(const void *a, const void *b)
{
    const hit *x = a;
    const hit *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* The admissible chunks of the documents below a number, and all documents that have one. */
static inline void lists_as_expected(carag_text *text, const account *all, const question *asked, int64_t most)
{
    const int64_t documents[] = {3, 99, 1, 0, 2, 1, 4}; /* one is not there, one is named twice */
    int64_t keys[MOST_CHUNKS], named[7];
    hit wanted[MOST_CHUNKS];
    bool has[5] = {false};
    size_t count = 0;
    size_t names = 0;
    carag_text_found *found = NULL;
    admitting(all, asked->predicates, asked->predicate_count, keys);
    for (size_t i = 0; i < all->chunk_count; i++) {
        const int64_t document = all->chunks[i].document;
        if (keys[i] >= 0)
            has[document] = true;
        if (keys[i] >= 0 && document < most)
            wanted[count++] = (hit){keys[i], all->chunks[i].key, document, 0.0};
    }
    qsort(wanted, count, sizeof *wanted, by_key);
    for (size_t i = 0; i < 7; i++)
        if (documents[i] < most || documents[i] == 99)
            named[names++] = documents[i];
    CHECK_OK(carag_text_admissible(text, asked->predicates, asked->predicate_count, named, names, &found, NULL));
    CHECK(found->count == count);
    for (size_t i = 0; i < count; i++)
        CHECK(found->keys[i] == wanted[i].key && found->chunks[i] == wanted[i].chunk &&
              found->documents[i] == wanted[i].document);
    carag_text_found_free(found);
    CHECK_OK(carag_text_documents(text, asked->predicates, asked->predicate_count, &found, NULL));
    size_t at = 0;
    for (int64_t document = 0; document < 5; document++)
        if (has[document])
            CHECK(at < found->count && found->keys[at] == document && found->documents[at++] == document);
    CHECK(at == found->count);
    carag_text_found_free(found);
}

/* An index with parts even and uneven, a deleted chunk and several segments. */
static inline carag_text *some_text(account *all, uint64_t seed, int steps)
{
    carag_text *text;
    uint64_t state = seed * 2 + 1;
    memset(all, 0, sizeof *all);
    CHECK_OK(carag_text_new(&text, NULL));
    for (int i = 0; i < steps; i++) {
        add_some(text, all, &state);
        label_some(text, all, &state);
        label_some(text, all, &state);
        if (i % 3 == 2)
            delete_one(text, all, &state);
    }
    return text;
}

/* ---------------------------------------------------------------- files */

static inline void put_sums_right(unsigned char *bytes, size_t size)
{
    carag_crc_tables tables;
    carag_text_header header;
    carag_crc_tables_init(&tables);
    if (size < sizeof header)
        return;
    memcpy(&header, bytes, sizeof header);
    for (int s = 0; s < TEXT_SECTIONS; s++) {
        carag_section *section = &header.sections[s];
        if (section->offset <= size && section->size <= size - section->offset)
            section->crc = carag_crc(&tables, 0, bytes + section->offset, section->size);
    }
    header.crc = carag_crc(&tables, 0, &header, offsetof(carag_text_header, crc));
    memcpy(bytes, &header, sizeof header);
}

#endif
