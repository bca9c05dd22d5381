/* row/row.h - the rows of an index: their arrays, the classes and cells that group them, and who may read and write them.
 *
 * Arrays, not records. Everything about a row is at its row number in an array of its own, so a word test touches
 * four bytes, an eight-bit distance one code, and a relabel one word.
 *
 * One writer, many readers. All arrays hang on a `carag_view`. Searches and counts enter (carag_read_begin), take the
 * current view and the number of rows, and leave; they take no lock. Writers hold index->writer. They change in
 * place only what a reader may see half done - words (one atomic each), link slots (one atomic each, old and new
 * neighbours are both rows), rows beyond the number published - and otherwise make a new view, publish it, wait
 * until no reader can hold the old one (carag_publish) and release what it alone held.
 */
#ifndef CARAG_ROW_H
#define CARAG_ROW_H

#include "carag_internal.h"
#include "code/code.h"
#include "hnsw/graph.h"
#include "policy.h"
#include "row/kept.h"
#include "slots.h"

#define CARAG_MAX_SLACK 16.0F  /* times a squared distance: the largest slack of a graph search */
#define CARAG_SPARE_CLASSES 64 /* classes that may be made while a call is under way */
#if !defined(CARAG_CELL_ROWS)
#define CARAG_CELL_ROWS 4096 /* rows below which there are no cells, which would not pay; tests make it less */
#endif

_Static_assert(sizeof(float) == 4, "vectors are IEEE binary32");
_Static_assert(sizeof(_Atomic(uint32_t)) == 4, "words are saved, and read by kernels, as they are");

typedef struct carag_moved {
    uint32_t row, home;
} carag_moved;

/* The dictionary of classes, and the rows of each (row/catalog.c). */
typedef struct carag_catalog {
    uint32_t capacity;
    _Atomic(uint32_t) count;     /* classes in use */
    _Atomic(uint32_t) *words;    /* [capacity] never change once counted */
    carag_terms *terms;          /* [capacity] likewise */
    _Atomic(uint32_t) *live;     /* [capacity] rows of the class now */
    uint32_t homes;              /* classes below this one have home rows */
    uint32_t *first;             /* [homes + 1] the home rows of class c are postings[first[c]] .. [first[c + 1]] */
    uint32_t *postings;          /* [rows] row numbers, ascending within a class */
    uint32_t rows;               /* rows from this one on have no home: the tail */
    uint32_t *classes;           /* [view capacity] of each row, CARAG_NONE when deleted: the writer's */
    carag_moved *moved;          /* [moved_capacity] rows relabelled since, each once */
    uint32_t moved_capacity;
    _Atomic(uint32_t) moved_count;
    uint64_t *is_moved;          /* [rows / 64 + 1] the writer's */
    uint32_t *table;             /* [table_capacity] class by (word, terms): the writer's */
    size_t table_capacity;
} carag_catalog;

/* A group of near rows (row/cells.c). */
typedef struct carag_cell {
    float scale;  /* coordinate j of the centre is about scale * (byte j - 128) */
    float spread; /* root mean square distance of its rows to the centre */
    float length; /* of the centre */
    uint32_t end; /* its members are those from the end of the cell before to this one */
} carag_cell;

typedef struct carag_cells {
    uint32_t count;
    uint32_t rows;     /* rows from this one on are in no cell */
    uint32_t centred;  /* rows there were when centres were taken */
    float reach;       /* how many spreads above its centre a cell hardly holds a row */
    carag_cell *cells; /* [count] */
    uint8_t *centres;  /* [count * stride] eight-bit codes */
    size_t stride;
    uint32_t *members; /* [rows] row numbers, cell after cell, ascending within each */
    bool is_ordered;   /* members are 0, 1, 2, ...: rows are in the order of their cells */
} carag_cells;

/* The one-bit codes of rows in cells once more, by word and class (row/sorted.c). */
typedef struct carag_sorted {
    uint32_t count;   /* words */
    uint32_t *words;  /* [count] */
    uint32_t *firsts; /* [count] the place of the first row of a word, the first of a pack */
    uint32_t *sizes;  /* [count] rows of it, which follow each other */
    uint32_t classes; /* numbers of classes from this one on are not in it */
    uint32_t *starts; /* [classes] the place of the first row of a class, */
    uint32_t *ends;   /* [classes] and that after its last */
    uint32_t *rows;   /* [places] */
    uint16_t *cells;  /* [places] */
    carag_bits bits;  /* by place; packs and words alone */
    uint32_t covered; /* rows from this one on are not in it */
} carag_sorted;

/* What a plan is made of, in nanoseconds on this machine; 0 before it was measured (cost/measure.c). Those above
 * `sketch` depend on the rows alone and are kept in the file. */
typedef struct carag_costs {
    uint32_t ef;           /* of a graph search that reaches the target recall */
    float slack;           /* likewise; 0: not tuned */
    uint32_t distances;    /* that a walk over the graph computes; 0: not counted */
    uint32_t seeds;        /* rows scored by then, from which it began */
    uint32_t reached[2];   /* rows that a scan looks at for few neighbours, and for many */
    uint32_t scored;       /* rows that survive it, for few; 0: none of the three was counted */
    double sketch;         /* a query made ready for one-bit codes */
    double word;           /* a row by its word, neighbours following each other */
    double pack;           /* a pack of rows by their one-bit codes */
    double ranking;        /* all cells put in order */
    double code;           /* a row by its eight-bit code, at random */
    double exact_row;      /* a row of an exact search, class by class */
    double vector;         /* a row by what is kept of its vector, at random */
    double scan_factor;    /* what a scan takes, in units of what its parts do: a number, not a time */
    double graph_distance; /* a distance of a graph search, all included */
} carag_costs;

/* What a reader needs, reached by one pointer. */
struct carag_view {
    _Atomic(uint32_t) rows;   /* stored after what they hold */
    uint32_t capacity;        /* rows there is room for */
    void *vectors;            /* [capacity * vector_bytes]: float or binary16, padded with zeros; NULL for CARAG_INT8 */
    _Atomic(uint32_t) *words; /* relaxed in loops, acquire at emission, release on relabel */
    carag_terms *terms;
    int64_t *keys;
    carag_codes codes;
    carag_bits bits;
    carag_graph graph;
    carag_catalog *catalog;
    carag_cells *cells; /* NULL: too few rows */
    carag_sorted *sorted; /* NULL: it would not pay, or rows are in a mapped file */
    carag_costs costs;
};

/* The row at a position: first those in cells, in the order of their members, then the others. One-bit codes are in this
 * order. */
static inline uint32_t carag_row_at(const carag_view *view, uint32_t position)
{
    return view->cells && position < view->cells->rows ? view->cells->members[position] : position;
}

struct carag_index {
    carag_params params;
    uint32_t M0;
    size_t stride;       /* floats, or halves, from one vector to the next: dim rounded up to 16 */
    size_t vector_bytes; /* the same in bytes; 0 for CARAG_INT8 */

    _Atomic(carag_view *) view;
    _Atomic(uint32_t) live;

    /* Readers, counted on the side they entered on; a writer flips the side and waits for the other to empty. */
    _Atomic(uint32_t) side;
    _Atomic(uint32_t) readers[2];
    _Atomic(uint64_t) generation; /* another after every change; odd while words and class counts are being changed */
    pthread_mutex_t writer;

    /* Key to row: open addressing, linear probing, live rows only */
    pthread_rwlock_t map_lock;
    uint32_t *map;       /* [map_capacity] rows, or CARAG_NONE */
    size_t map_capacity; /* a power of two, more than twice `live` */
    atomic_bool map_waits; /* an index was opened from a file, and its map is made when a key is first asked for */

    /* A file's bytes under some arrays of the view; released with the index */
    unsigned char *mapping;
    size_t mapping_size;
    uint32_t *sums; /* the checksum each section was opened with, NULL when not mapped (file/map.c) */

    carag_slots scratches; /* working memory between calls (search/scratch.c) */
    carag_kept kept;       /* selections between calls (row/kept.c) */
};

/* What a search works on from begin to end. */
typedef struct carag_reader {
    carag_index *index;
    const carag_view *view;
    uint32_t rows;
    uint32_t side;
} carag_reader;

/* A predicate made ready: policy.h tests rows and classes against it. */
typedef struct carag_selection {
    carag_test test;
    uint32_t *classes; /* [room] admissible classes that have or had rows */
    uint32_t count;
    uint32_t room;
    uint64_t admissible;
    uint64_t labelled; /* rows whose word passes, whatever their terms */
    bool is_exact;     /* false: relabels ran all the while, so `admissible` may be off */
    bool test_terms;   /* some class passes the pairs and not the terms: rows must be asked about both */
} carag_selection;

/* A walk over the rows a selection may admit, block by block, their words tested. */
typedef struct carag_walk {
    const carag_reader *reader;
    const carag_selection *selection;
    uint32_t class_at, offset; /* the class in selection->classes, and how many of its home rows are done */
    uint32_t moved, moved_end;
    uint32_t tail;
} carag_walk;

/* index.c */
carag_status carag_params_verify(const carag_params *params, carag_fault *out_fault);

/* row/view.c */
carag_reader carag_read_begin(carag_index *index);
void carag_read_end(const carag_reader *reader);
carag_view *carag_view_new(const carag_index *index, uint32_t capacity, uint32_t upper_capacity);
carag_view *carag_view_share(const carag_view *view);
carag_status carag_view_new_bits(const carag_index *index, carag_view *view);
carag_status carag_view_new_graph(const carag_index *index, carag_view *view, uint32_t upper_capacity);
void carag_view_free(const carag_index *index, carag_view *view, const carag_view *successor);
void carag_publish(carag_index *index, carag_view *view);

/* row/keymap.c */
uint32_t carag_map_find(const carag_index *index, const int64_t *keys, uint32_t rows, int64_t key);
void carag_map_find_many(const carag_index *index, const int64_t *keys, uint32_t rows, const int64_t *wanted,
                         size_t count, uint32_t *out_rows);
carag_status carag_map_ready(carag_index *index, carag_fault *out_fault);
carag_status carag_map_reserve(carag_index *index, const carag_view *view, uint32_t rows, size_t wanted);
bool carag_map_insert(carag_index *index, const int64_t *keys, uint32_t row);
void carag_map_remove(carag_index *index, const int64_t *keys, int64_t key);

/* row/catalog.c */
carag_catalog *carag_catalog_new(const _Atomic(uint32_t) *words, const carag_terms *terms, uint32_t rows,
                                 uint32_t capacity, uint32_t expected, uint32_t spare);
carag_catalog *carag_catalog_room(uint32_t classes, uint32_t capacity);
carag_status carag_catalog_complete(carag_catalog *catalog, const _Atomic(uint32_t) *words, carag_terms *out_terms,
                                    uint32_t rows, uint32_t classes);
void carag_catalog_free(carag_catalog *catalog);
uint32_t carag_catalog_slack(uint32_t rows); /* how many rows may be moved, or in the tail */
uint32_t carag_catalog_find(const carag_catalog *catalog, uint32_t word, carag_terms terms);
uint32_t carag_catalog_add(carag_catalog *catalog, uint32_t word, carag_terms terms);
void carag_select(const carag_reader *reader, carag_selection *selection);
bool carag_is_open(const carag_reader *reader, const carag_test *test, uint32_t row, memory_order order);
bool carag_passes(const carag_reader *reader, const carag_selection *selection, uint32_t row);
void carag_mark(const carag_reader *reader, const carag_selection *selection, uint64_t *marks);
carag_walk carag_walk_begin(const carag_reader *reader, const carag_selection *selection);
size_t carag_walk_next(carag_walk *walk, const carag_kernel *kernel, uint32_t *out_rows);

/* row/cells.c */
carag_cells *carag_cells_room(uint32_t count, uint32_t rows, size_t stride);
carag_status carag_cells_new(const carag_codes *codes, uint32_t rows, uint32_t threads, carag_cells **out_cells);
carag_status carag_cells_extend(const carag_cells *from, const carag_codes *codes, uint32_t rows,
                                carag_cells **out_cells);
void carag_cells_note_order(carag_cells *cells);
void carag_cells_free(carag_cells *cells);
bool carag_cells_are_sound(const carag_cells *cells);

/* row/sorted.c */
carag_status carag_sort_words(carag_view *view);
void carag_sorted_free(carag_sorted *sorted);

/* index_check.c */
bool carag_centre_is_sound(const carag_bits *bits, uint32_t rows);
uint32_t carag_check_view(const carag_index *index, const carag_view *view, carag_fault *out_fault);

#endif
