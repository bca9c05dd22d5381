/* row/catalog.c - count and find admissible rows by class.
 *
 * A class is a distinct (word, public_at, expires_at, entity, audience). A corpus has far fewer classes than rows, so a predicate
 * is asked once a class: that gives the exact number of admissible rows and the list of rows to scan, before any
 * vector is touched.
 *
 *   live      rows of each class now; kept exact by every change
 *   postings  the rows each class had when the catalog was made (their home), ascending, so runs of rows stay runs
 *   moved     rows relabelled since, with their home: a walk visits them after the postings, unless the home class was
 *             walked already
 *   tail      rows added since: a walk visits them all
 *
 * When `moved` is full, or the tail long, the writer makes a new catalog (one pass over the rows) and publishes it.
 *
 * A walk tests the word of every row it yields, so the catalog decides only what is looked at, never what is admitted.
 * It is complete for a row that is admissible all the while: its home class passes, and its home rows never change; or
 * the row was in `moved`, or in the tail, before its word was. The counts are read between two looks at
 * index->generation, which is odd while a relabel is under way, so that a row on its way from one admissible class to
 * another is not missed in both; when relabels never pause, the selection says that its count is not exact.
 */
#include "carag_internal.h"
#include "row/row.h"

#include <sched.h>
#include <string.h>

#define FIRST_CLASSES 64 /* classes that the smallest dictionary has room for */
#define MIN_MOVED_ROOM 1024 /* rows that may be in `moved`, or in the tail, however few there are */
#define MOVED_SHARE 64 /* 1/64 of the rows may be in `moved`, or in the tail, before a new catalog is made */
#define COUNT_ROUNDS 64 /* times classes are counted again because a relabel ran, before the count is inexact */
#define CLASSES_AHEAD 8 /* classes whose rows are brought into cache before they are walked */
#define RECENT_BITS 11 /* bits of a slot number in the cache of recent classes */
#define RECENT_CLASSES (1U << RECENT_BITS) /* slots of the cache of recent classes */

uint32_t carag_catalog_slack(uint32_t rows)
{
    return rows / MOVED_SHARE > MIN_MOVED_ROOM ? rows / MOVED_SHARE : MIN_MOVED_ROOM;
}

/* ---------------------------------------------------------------- the dictionary */

static uint64_t hash_class(uint32_t word, carag_terms terms)
{
    const uint64_t low = carag_mix(((uint64_t)word << 32) | terms.entity);
    const uint64_t middle = carag_mix(low + terms.audience);
    return carag_mix(middle ^ (((uint64_t)terms.public_at << 32) | terms.expires_at));
}

static uint32_t *class_slot(const carag_catalog *catalog, uint32_t word, carag_terms terms)
{
    size_t slot = (size_t)hash_class(word, terms) & (catalog->table_capacity - 1);
    for (;; slot = (slot + 1) & (catalog->table_capacity - 1)) {
        const uint32_t class = catalog->table[slot];
        if (class == CARAG_NONE)
            return &catalog->table[slot];
        const carag_terms other = catalog->terms[class];
        if (atomic_load_explicit(&catalog->words[class], memory_order_relaxed) == word &&
            other.public_at == terms.public_at && other.expires_at == terms.expires_at &&
            other.entity == terms.entity && other.audience == terms.audience)
            return &catalog->table[slot];
    }
}

uint32_t carag_catalog_find(const carag_catalog *catalog, uint32_t word, carag_terms terms)
{
    return *class_slot(catalog, word, terms);
}

/* CARAG_NONE when the dictionary is full. */
uint32_t carag_catalog_add(carag_catalog *catalog, uint32_t word, carag_terms terms)
{
    const uint32_t class = atomic_load_explicit(&catalog->count, memory_order_relaxed);
    if (class == catalog->capacity)
        return CARAG_NONE;
    atomic_init(&catalog->words[class], word);
    atomic_init(&catalog->live[class], 0);
    catalog->terms[class] = terms;
    *class_slot(catalog, word, terms) = class;
    atomic_store_explicit(&catalog->count, class + 1, memory_order_release);
    return class;
}

void carag_catalog_free(carag_catalog *catalog)
{
    if (!catalog)
        return;
    carag_release((void *)catalog->words);
    carag_release(catalog->terms);
    carag_release((void *)catalog->live);
    carag_release(catalog->first);
    carag_release_aligned(catalog->postings);
    carag_release_aligned(catalog->classes);
    carag_release(catalog->moved);
    carag_release(catalog->is_moved);
    carag_release(catalog->table);
    carag_release(catalog);
}

/* An empty dictionary with room for `classes`, and for the class of `capacity` rows; NULL when out of memory. */
carag_catalog *carag_catalog_room(uint32_t classes, uint32_t capacity)
{
    carag_catalog *catalog = carag_allocate_zeroed(1, sizeof *catalog);
    if (!catalog)
        return NULL;
    catalog->capacity = classes;
    catalog->table_capacity = FIRST_CLASSES;
    while (catalog->table_capacity / 2 < (size_t)classes + 1)
        catalog->table_capacity *= 2;
    catalog->words = carag_allocate(classes, sizeof *catalog->words);
    catalog->terms = carag_allocate(classes, sizeof *catalog->terms);
    catalog->live = carag_allocate(classes, sizeof *catalog->live);
    catalog->table = carag_allocate(catalog->table_capacity, sizeof *catalog->table);
    catalog->classes = carag_allocate_aligned(capacity, sizeof *catalog->classes);
    if (!catalog->words || !catalog->terms || !catalog->live || !catalog->table || !catalog->classes) {
        carag_catalog_free(catalog);
        return NULL;
    }
    memset(catalog->table, 0xFF, catalog->table_capacity * sizeof *catalog->table); /* CARAG_NONE everywhere */
    return catalog;
}

/* More rows of a class, in a catalog that is not published yet: a locked addition would cost more than all else. */
static void count_rows(carag_catalog *catalog, uint32_t class, uint32_t more)
{
    const uint32_t live = atomic_load_explicit(&catalog->live[class], memory_order_relaxed);
    atomic_store_explicit(&catalog->live[class], live + more, memory_order_relaxed);
}

static size_t recent_slot(uint32_t word, carag_terms terms)
{
    return carag_scatter(word ^ (terms.entity << 7) ^ (terms.public_at << 3) ^ (terms.audience << 11), RECENT_BITS);
}

static bool is_class(const carag_catalog *catalog, uint32_t class, uint32_t word, carag_terms terms)
{
    return class != CARAG_NONE && atomic_load_explicit(&catalog->words[class], memory_order_relaxed) == word &&
           memcmp(&terms, &catalog->terms[class], sizeof terms) == 0;
}

/* Find the class of every row, in row order; false when there are more classes than room. Deleted rows have none. */
static bool classify(carag_catalog *catalog, const _Atomic(uint32_t) *words, const carag_terms *terms, uint32_t rows)
{
    uint32_t recent[RECENT_CLASSES]; /* where a class was seen last, by a hash that costs next to nothing */
    memset(recent, 0xFF, sizeof recent); /* CARAG_NONE everywhere */
    for (uint32_t row = 0; row < rows; row++) {
        const uint32_t word = atomic_load_explicit(&words[row], memory_order_relaxed);
        catalog->classes[row] = CARAG_NONE;
        if (carag_word_is_deleted(word))
            continue;
        uint32_t *class = &recent[recent_slot(word, terms[row])];
        if (!is_class(catalog, *class, word, terms[row])) {
            *class = carag_catalog_find(catalog, word, terms[row]);
            if (*class == CARAG_NONE)
                *class = carag_catalog_add(catalog, word, terms[row]);
            if (*class == CARAG_NONE)
                return false;
        }
        catalog->classes[row] = *class;
        count_rows(catalog, *class, 1);
    }
    return true;
}

static bool post_rows(carag_catalog *catalog, uint32_t rows)
{
    const uint32_t homes = atomic_load_explicit(&catalog->count, memory_order_relaxed);
    catalog->homes = homes;
    catalog->rows = rows;
    catalog->moved_capacity = carag_catalog_slack(rows);
    catalog->first = carag_allocate_zeroed((size_t)homes + 1, sizeof *catalog->first);
    catalog->postings = carag_allocate_aligned(rows, sizeof *catalog->postings);
    catalog->moved = carag_allocate(catalog->moved_capacity, sizeof *catalog->moved);
    catalog->is_moved = carag_allocate_zeroed(rows / 64 + 1, sizeof *catalog->is_moved);
    if (!catalog->first || !catalog->postings || !catalog->moved || !catalog->is_moved)
        return false;
    for (uint32_t class = 0; class < homes; class ++)
        catalog->first[class + 1] =
            catalog->first[class] + atomic_load_explicit(&catalog->live[class], memory_order_relaxed);
    uint32_t last = CARAG_NONE; /* runs of one class are counted in a register */
    uint32_t at = 0;
    for (uint32_t row = 0; row < rows; row++) {
        const uint32_t class = catalog->classes[row];
        if (class != last) {
            if (last != CARAG_NONE)
                catalog->first[last] = at;
            last = class;
            at = class == CARAG_NONE ? 0 : catalog->first[class];
        }
        if (class != CARAG_NONE)
            catalog->postings[at++] = row;
    }
    if (last != CARAG_NONE)
        catalog->first[last] = at;
    for (uint32_t class = homes; class > 0; class --)
        catalog->first[class] = catalog->first[class - 1]; /* each was advanced to the next one's begin */
    catalog->first[0] = 0;
    return true;
}

/* The catalog of rows 0 .. rows - 1, with room for `capacity` rows, and for `spare` classes more than there are now;
 * NULL when out of memory. A good guess at how many there are saves passes. */
carag_catalog *carag_catalog_new(const _Atomic(uint32_t) *words, const carag_terms *terms, uint32_t rows,
                                 uint32_t capacity, uint32_t expected, uint32_t spare)
{
    const uint64_t limit = (uint64_t)rows + spare + FIRST_CLASSES;
    for (uint64_t room = (uint64_t)expected + spare + FIRST_CLASSES;; room *= 2) {
        carag_catalog *catalog = carag_catalog_room((uint32_t)(room < limit ? room : limit), capacity);
        if (!catalog)
            return NULL;
        if (classify(catalog, words, terms, rows) &&
            catalog->capacity - atomic_load(&catalog->count) >= (uint64_t)spare + FIRST_CLASSES / 2) {
            if (post_rows(catalog, rows))
                return catalog;
            carag_catalog_free(catalog);
            return NULL;
        }
        carag_catalog_free(catalog);
    }
}

/* Whether a row of this word may begin a run of the class; one that is new is added. */
static bool enter_class(carag_catalog *catalog, uint32_t class, uint32_t classes, uint32_t word)
{
    const uint32_t known = atomic_load_explicit(&catalog->count, memory_order_relaxed);
    if (class < known)
        return atomic_load_explicit(&catalog->words[class], memory_order_relaxed) == word;
    if (class > known || class >= classes || carag_word_is_deleted(word) ||
        carag_catalog_find(catalog, word, catalog->terms[class]) != CARAG_NONE)
        return false;
    carag_catalog_add(catalog, word, catalog->terms[class]);
    return true;
}

/* Complete a catalog of which a file gave the class of each row (catalog->classes) and the terms of each class
 * (catalog->terms), numbered as carag_catalog_new numbers them: where they first occur. Writes the terms of the rows.
 * Several times faster than finding the classes, and trusts nothing: CARAG_CORRUPT when a class is not that of its
 * row's word, out of order, or like another. Requires room for `classes`. */
carag_status carag_catalog_complete(carag_catalog *catalog, const _Atomic(uint32_t) *words, carag_terms *out_terms,
                                    uint32_t rows, uint32_t classes)
{
    uint32_t class = CARAG_NONE; /* of the run of rows that `row` belongs to; deleted ones have none */
    uint32_t begin = 0;
    carag_terms terms = {0};
    uint32_t word = CARAG_TOMBSTONE;
    for (uint32_t row = 0; row < rows; row++) {
        const uint32_t own = atomic_load_explicit(&words[row], memory_order_relaxed);
        if (catalog->classes[row] != class) {
            if (class != CARAG_NONE)
                count_rows(catalog, class, row - begin);
            class = catalog->classes[row];
            begin = row;
            if (class != CARAG_NONE && !enter_class(catalog, class, classes, own))
                return CARAG_CORRUPT;
            terms = class == CARAG_NONE ? (carag_terms){0} : catalog->terms[class];
            word = own;
        }
        if (class == CARAG_NONE ? !carag_word_is_deleted(own) : own != word)
            return CARAG_CORRUPT;
        out_terms[row] = terms;
    }
    if (class != CARAG_NONE)
        count_rows(catalog, class, rows - begin);
    if (atomic_load_explicit(&catalog->count, memory_order_relaxed) != classes)
        return CARAG_CORRUPT;
    return post_rows(catalog, rows) ? CARAG_OK : CARAG_NO_MEMORY;
}

/* ---------------------------------------------------------------- asking */

static void select_classes(const carag_catalog *catalog, carag_selection *selection)
{
    const carag_test *test = &selection->test;
    const carag_predicate *predicate = test->predicate;
    const carag_kernel *kernel = carag_kernel_get();
    const uint32_t count = atomic_load_explicit(&catalog->count, memory_order_acquire);
    const uint32_t room = selection->classes ? selection->room : 0;
    uint32_t listed = 0;
    uint64_t labelled = 0;
    uint64_t admissible = 0;
    bool test_terms = false;
    for (uint32_t first = 0; first < count; first += CARAG_PACK) {
        const uint32_t some = count - first < CARAG_PACK ? count - first : CARAG_PACK;
        const uint32_t passing =
            kernel->open(catalog->words + first, carag_iota, some, predicate->pairs, predicate->pair_count);
        uint32_t open = 0; /* first as bits, without a branch: a processor cannot foresee whom a class is for */
        for (uint32_t left = passing; left; left &= left - 1) {
            const uint32_t lane = (uint32_t)__builtin_ctz(left);
            labelled += atomic_load_explicit(&catalog->live[first + lane], memory_order_acquire);
            open |= (uint32_t)carag_terms_pass(test, catalog->terms[first + lane]) << lane;
        }
        test_terms |= open != passing;
        for (; open; open &= open - 1) {
            const uint32_t class = first + (uint32_t)__builtin_ctz(open);
            if (listed < room)
                selection->classes[listed++] = class;
            admissible += atomic_load_explicit(&catalog->live[class], memory_order_acquire);
        }
    }
    selection->count = listed;
    selection->labelled = labelled;
    selection->admissible = admissible;
    selection->test_terms = test_terms;
}

/* Ask every class. Requires selection->test made, and in selection->classes, unless it is NULL, room for every class
 * that was counted when the call began: classes made since have no home rows, so a walk does not miss them in the
 * list. */
void carag_select(const carag_reader *reader, carag_selection *selection)
{
    const carag_catalog *catalog = reader->view->catalog;
    for (int round = 0; round < COUNT_ROUNDS; round++) {
        const uint64_t before = atomic_load_explicit(&reader->index->generation, memory_order_acquire);
        select_classes(catalog, selection);
        atomic_thread_fence(memory_order_acquire);
        selection->is_exact =
            before % 2 == 0 && atomic_load_explicit(&reader->index->generation, memory_order_relaxed) == before;
        if (selection->is_exact)
            break;
        sched_yield();
    }
    if (!selection->is_exact)
        selection->test_terms = true;
}

static bool is_selected(const carag_selection *selection, uint32_t class)
{
    uint32_t low = 0;
    uint32_t high = selection->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (selection->classes[middle] < class)
            low = middle + 1;
        else
            high = middle;
    }
    return low < selection->count && selection->classes[low] == class;
}

/* Mark the rows that may be admissible: home rows of the selected classes, and all that were moved or added since. No
 * word is read: who looks at a marked row tests it. */
void carag_mark(const carag_reader *reader, const carag_selection *selection, uint64_t *marks)
{
    const carag_catalog *catalog = reader->view->catalog;
    for (uint32_t i = 0; i < selection->count && selection->classes[i] < catalog->homes; i++) {
        const uint32_t end = catalog->first[selection->classes[i] + 1];
        for (uint32_t at = catalog->first[selection->classes[i]]; at < end;) {
            const uint32_t word = catalog->postings[at] / 64; /* runs are put together in a register */
            uint64_t bits = 0;
            for (; at < end && catalog->postings[at] / 64 == word; at++)
                bits |= (uint64_t)1 << catalog->postings[at] % 64;
            marks[word] |= bits;
        }
    }
    const uint32_t moved = atomic_load_explicit(&catalog->moved_count, memory_order_acquire);
    for (uint32_t i = 0; i < moved; i++)
        marks[catalog->moved[i].row / 64] |= (uint64_t)1 << catalog->moved[i].row % 64;
    for (uint32_t row = catalog->rows; row < reader->rows; row++)
        marks[row / 64] |= (uint64_t)1 << row % 64;
}

/* ---------------------------------------------------------------- walking */

carag_walk carag_walk_begin(const carag_reader *reader, const carag_selection *selection)
{
    const carag_catalog *catalog = reader->view->catalog;
    return (carag_walk){.reader = reader,
                        .selection = selection,
                        .moved_end = atomic_load_explicit(&catalog->moved_count, memory_order_acquire),
                        .tail = catalog->rows};
}

bool carag_is_open(const carag_reader *reader, const carag_test *test, uint32_t row, memory_order order)
{
    const uint32_t word = atomic_load_explicit(&reader->view->words[row], order);
    return carag_is_admissible(test, word, reader->view->terms[row]);
}

/* The same while searching: by the word as it is now, and by the terms only where they can fail a row whose word
 * passes. */
bool carag_passes(const carag_reader *reader, const carag_selection *selection, uint32_t row)
{
    const carag_test *test = &selection->test;
    const uint32_t word = atomic_load_explicit(&reader->view->words[row], memory_order_relaxed);
    return carag_word_passes(test->predicate, word) &&
           (!selection->test_terms || carag_terms_pass(test, reader->view->terms[row]));
}

/* Have in cache what the classes after this one need: a class of few rows lies anywhere. */
static void fetch_homes(const carag_catalog *catalog, const carag_selection *selection, uint32_t at)
{
    if (at + 2 * CLASSES_AHEAD >= selection->count || selection->classes[at + 2 * CLASSES_AHEAD] >= catalog->homes)
        return;
    __builtin_prefetch(&catalog->first[selection->classes[at + 2 * CLASSES_AHEAD]]);
    __builtin_prefetch(&catalog->postings[catalog->first[selection->classes[at + CLASSES_AHEAD]]]);
}

/* The next home rows, at most CARAG_BLOCK, their words not yet tested. */
static size_t next_homes(carag_walk *walk, uint32_t *out_rows)
{
    const carag_catalog *catalog = walk->reader->view->catalog;
    size_t count = 0;
    while (walk->class_at < walk->selection->count && count < CARAG_BLOCK) {
        const uint32_t class = walk->selection->classes[walk->class_at];
        if (class >= catalog->homes) { /* classes are ascending: no later one has home rows */
            walk->class_at = walk->selection->count;
            break;
        }
        fetch_homes(catalog, walk->selection, walk->class_at);
        const uint32_t begin = catalog->first[class] + walk->offset;
        const uint32_t left = catalog->first[class + 1] - begin;
        const uint32_t room = (uint32_t)(CARAG_BLOCK - count);
        const uint32_t taken = left < room ? left : room;
        for (uint32_t i = 0; i < taken; i++)
            out_rows[count + i] = catalog->postings[begin + i];
        count += taken;
        walk->offset += taken;
        if (taken == left) {
            walk->class_at++;
            walk->offset = 0;
        }
    }
    return count;
}

/* Up to CARAG_BLOCK rows whose words pass; 0 when there are no more. */
size_t carag_walk_next(carag_walk *walk, const carag_kernel *kernel, uint32_t *out_rows)
{
    const carag_reader *reader = walk->reader;
    const carag_catalog *catalog = reader->view->catalog;
    const carag_test *test = &walk->selection->test;
    size_t count = 0;
    for (size_t found; count == 0 && (found = next_homes(walk, out_rows)) > 0;)
        count = kernel->admit(reader->view->words, out_rows, found, test->predicate->pairs,
                              test->predicate->pair_count, out_rows);
    if (count > 0)
        return count;
    for (; walk->moved < walk->moved_end && count < CARAG_BLOCK; walk->moved++) {
        const carag_moved moved = catalog->moved[walk->moved];
        if (!is_selected(walk->selection, moved.home) &&
            carag_is_open(reader, test, moved.row, memory_order_relaxed))
            out_rows[count++] = moved.row;
    }
    for (; walk->tail < reader->rows && count < CARAG_BLOCK; walk->tail++)
        if (carag_is_open(reader, test, walk->tail, memory_order_relaxed))
            out_rows[count++] = walk->tail;
    return count;
}
