/* file.c - one file per index; FORMAT.md draws every byte.
 *
 * Saving writes a temporary file beside the target, syncs it, renames it over the target and syncs the
 * directory: a reader sees the old file or the new one, whatever fails. Loading trusts nothing: the layout of
 * the sections is computed from the header's counts and must equal the table and the length of the file before
 * anything is allocated, so no count can ask for more memory than the file is long; every byte is under a
 * checksum or must be zero; and the loaded index must satisfy every invariant of check.c.
 */
#include "carag_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc32c.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the file is little-endian and read without conversion"
#endif

#define FORMAT_VERSION 1
#define ALIGNMENT 64

static const char magic[8] = {'C', 'A', 'R', 'A', 'G', 'I', 'D', 'X'};

enum { VECTORS, WORDS, PUBLIC_AT, KEYS, LEVELS, LINKS, PARENTS, UPPER_LINKS, UPPER_PARENTS, SECTIONS };

static const char *const section_names[SECTIONS] = {"vectors", "words",   "public",  "keys",    "levels",
                                                    "links",   "parents", "uplinks", "uparents"};

typedef struct file_section {
    char name[8];
    uint64_t offset; /* from the start of the file, a multiple of ALIGNMENT */
    uint64_t size;   /* bytes, the zeros that follow to the next section not counted */
    uint32_t crc;
    uint32_t zero;
} file_section;

typedef struct file_header {
    char magic[8];
    uint32_t version;
    uint32_t section_count;
    uint32_t dim;
    uint32_t M;
    uint32_t ef_construction;
    uint32_t zero;
    uint64_t seed;
    uint64_t rows;
    uint64_t live;
    uint64_t upper_slots;
    uint32_t entry_point;
    uint32_t max_level;
    file_section sections[SECTIONS];
    uint8_t zeros[20];
    uint32_t crc; /* of everything before */
} file_header;

_Static_assert(sizeof(file_section) == 32, "no padding");
_Static_assert(sizeof(file_header) == 384, "no padding, and a multiple of ALIGNMENT");
_Static_assert(offsetof(file_header, crc) == 380, "the checksum is last");
_Static_assert(sizeof(_Atomic(uint32_t)) == 4, "words are saved as they are");

static uint64_t aligned(uint64_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Where each section lies, given the counts; false if the sizes do not fit 64 bits. Returns the file's length. */
static bool lay_out(const carag_index *index, uint64_t rows, uint64_t upper_slots, file_section sections[SECTIONS],
                    uint64_t *out_end)
{
    const uint64_t counts[SECTIONS] = {rows, rows, rows, rows, rows, rows, rows, upper_slots, upper_slots};
    const uint64_t sizes[SECTIONS] = {index->stride * sizeof(float), 4, 4, 8, 1, (uint64_t)index->M0 * 4, 4,
                                      (uint64_t)index->params.M * 4, 4};
    uint64_t end = sizeof(file_header);
    for (int s = 0; s < SECTIONS; s++) {
        uint64_t size;
        if (__builtin_mul_overflow(counts[s], sizes[s], &size) || size > INT64_MAX / 2 - end)
            return false;
        sections[s] = (file_section){.offset = end, .size = size};
        memcpy(sections[s].name, section_names[s], strlen(section_names[s]));
        end = aligned(end + size);
    }
    *out_end = end;
    return true;
}

static void *section_data(const carag_index *index, int section)
{
    switch (section) {
    case VECTORS: return index->at.vectors;
    case WORDS: return (void *)index->at.words;
    case PUBLIC_AT: return index->at.public_at;
    case KEYS: return index->at.keys;
    case LEVELS: return index->at.levels;
    case LINKS: return index->at.links0;
    case PARENTS: return index->at.parents0;
    case UPPER_LINKS: return index->upper_links;
    default: return index->upper_parents;
    }
}

static carag_status io_failed(carag_fault *out_fault, const char *where, const char *what)
{
    const int os_error = errno;
    carag_fail(out_fault, CARAG_IO, 0, what);
    if (out_fault) {
        out_fault->where = where;
        out_fault->os_error = os_error;
    }
    return CARAG_IO;
}

static carag_status corrupt(carag_fault *out_fault, const char *where, const char *what)
{
    carag_fail(out_fault, CARAG_CORRUPT, 0, what);
    if (out_fault)
        out_fault->where = where;
    return CARAG_CORRUPT;
}

/* ---------------------------------------------------------------- saving */

static bool write_all(int file, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    while (size > 0) {
        const ssize_t written = write(file, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

static void fill_header(const carag_index *index, const carag_crc_tables *tables, file_header *header)
{
    uint64_t end;
    memset(header, 0, sizeof *header);
    memcpy(header->magic, magic, sizeof magic);
    header->version = FORMAT_VERSION;
    header->section_count = SECTIONS;
    header->dim = index->params.dim;
    header->M = index->params.M;
    header->ef_construction = index->params.ef_construction;
    header->seed = index->params.seed;
    header->rows = index->rows;
    header->live = index->live;
    header->upper_slots = index->upper_count;
    header->entry_point = index->entry_point;
    header->max_level = index->max_level;
    lay_out(index, index->rows, index->upper_count, header->sections, &end); /* what is in memory fits */
    for (int s = 0; s < SECTIONS; s++)
        header->sections[s].crc = carag_crc(tables, 0, section_data(index, s), header->sections[s].size);
    header->crc = carag_crc(tables, 0, header, offsetof(file_header, crc));
}

static bool write_index(int file, const carag_index *index)
{
    static const unsigned char zeros[ALIGNMENT];
    carag_crc_tables tables;
    file_header header;
    carag_crc_tables_init(&tables);
    fill_header(index, &tables, &header);
    if (!write_all(file, &header, sizeof header))
        return false;
    for (int s = 0; s < SECTIONS; s++) {
        const uint64_t size = header.sections[s].size;
        if (!write_all(file, section_data(index, s), size) || !write_all(file, zeros, aligned(size) - size))
            return false;
    }
    return fsync(file) == 0;
}

/* Make a rename durable: sync the directory that holds the path. `room` has strlen(path) + 2 bytes. */
static bool sync_directory(const char *path, char *room)
{
    const char *slash = strrchr(path, '/');
    if (slash) {
        const size_t length = slash == path ? 1 : (size_t)(slash - path);
        memcpy(room, path, length);
        room[length] = '\0';
    } else {
        memcpy(room, ".", 2);
    }
    const int directory = open(room, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return false;
    const bool synced = fsync(directory) == 0;
    const int os_error = errno;
    close(directory);
    errno = os_error;
    return synced;
}

carag_status carag_index_save(carag_index *index, const char *path, carag_fault *out_fault)
{
    static const char suffix[] = ".XXXXXX";
    const size_t length = strlen(path);
    carag_status status = CARAG_OK;
    char *temporary = carag_allocate(length + sizeof suffix, 1);
    if (!temporary)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    memcpy(temporary, path, length);
    memcpy(temporary + length, suffix, sizeof suffix);
    pthread_rwlock_wrlock(&index->lock);
    int file = mkstemp(temporary);
    if (file < 0) {
        status = io_failed(out_fault, "", "cannot make a temporary file beside the target");
        goto done;
    }
    if (!write_index(file, index)) {
        status = io_failed(out_fault, "", "cannot write the temporary file");
        goto abandon;
    }
    if (close(file) != 0) {
        file = -1;
        status = io_failed(out_fault, "", "cannot close the temporary file");
        goto abandon;
    }
    file = -1;
    if (rename(temporary, path) != 0) {
        status = io_failed(out_fault, "", "cannot rename the temporary file over the target");
        goto abandon;
    }
    if (!sync_directory(path, temporary))
        status = io_failed(out_fault, "", "saved, but cannot sync the directory");
    goto done;
abandon:
    if (file >= 0)
        close(file);
    unlink(temporary);
done:
    pthread_rwlock_unlock(&index->lock);
    carag_release(temporary);
    return status;
}

/* ---------------------------------------------------------------- loading */

/* 1 when all was read, 0 when the file ended first, -1 with errno on failure. */
static int read_all(int file, void *data, size_t size)
{
    unsigned char *bytes = data;
    while (size > 0) {
        const ssize_t got = read(file, bytes, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -1 : 0;
        bytes += got;
        size -= (size_t)got;
    }
    return 1;
}

static carag_status read_part(int file, const char *where, void *data, size_t size, carag_fault *out_fault)
{
    const int outcome = read_all(file, data, size);
    if (outcome < 0)
        return io_failed(out_fault, where, "cannot read");
    return outcome ? CARAG_OK : corrupt(out_fault, where, "the file ends too early");
}

static bool are_zero(const uint8_t *bytes, size_t size)
{
    uint8_t any = 0;
    for (size_t i = 0; i < size; i++)
        any |= bytes[i];
    return any == 0;
}

static carag_status read_header(int file, const carag_crc_tables *tables, file_header *header, carag_fault *out_fault)
{
    const carag_status status = read_part(file, "header", header, sizeof *header, out_fault);
    if (status != CARAG_OK)
        return status;
    if (memcmp(header->magic, magic, sizeof magic) != 0)
        return corrupt(out_fault, "header", "this is no CARAG index");
    if (header->version != FORMAT_VERSION)
        return corrupt(out_fault, "header", "the format version is not 1, the one this library reads");
    if (header->crc != carag_crc(tables, 0, header, offsetof(file_header, crc)))
        return corrupt(out_fault, "header", "the checksum does not match");
    if (header->section_count != SECTIONS || header->zero != 0 || !are_zero(header->zeros, sizeof header->zeros))
        return corrupt(out_fault, "header", "the section count is not 9, or a reserved byte is not zero");
    return CARAG_OK;
}

/* The table must be the layout the counts demand, and the file exactly so long. */
static carag_status verify_layout(const carag_index *index, const file_header *header, uint64_t length,
                                  carag_fault *out_fault)
{
    file_section expected[SECTIONS];
    uint64_t end;
    if (header->rows > CARAG_MAX_ROWS || header->live > header->rows || header->upper_slots > CARAG_MAX_ROWS)
        return corrupt(out_fault, "header", "more rows than an index can hold");
    if (!lay_out(index, header->rows, header->upper_slots, expected, &end))
        return corrupt(out_fault, "header", "sections larger than any file");
    for (int s = 0; s < SECTIONS; s++) {
        expected[s].crc = header->sections[s].crc;
        if (memcmp(&expected[s], &header->sections[s], sizeof *expected) != 0)
            return corrupt(out_fault, section_names[s], "the section table does not match the counts");
    }
    if (length != end)
        return corrupt(out_fault, "header", "the file is not as long as its sections");
    return CARAG_OK;
}

static carag_status read_sections(int file, const carag_crc_tables *tables, const file_header *header,
                                  carag_index *index, carag_fault *out_fault)
{
    for (int s = 0; s < SECTIONS; s++) {
        const uint64_t size = header->sections[s].size;
        uint8_t padding[ALIGNMENT];
        carag_status status = read_part(file, section_names[s], section_data(index, s), size, out_fault);
        if (status == CARAG_OK)
            status = read_part(file, section_names[s], padding, aligned(size) - size, out_fault);
        if (status != CARAG_OK)
            return status;
        if (carag_crc(tables, 0, section_data(index, s), size) != header->sections[s].crc)
            return corrupt(out_fault, section_names[s], "the checksum does not match");
        if (!are_zero(padding, aligned(size) - size))
            return corrupt(out_fault, section_names[s], "a byte between sections is not zero");
    }
    return CARAG_OK;
}

/* Number the upper slots and map the live keys, both derived; the rest is check.c's. */
static carag_status adopt(carag_index *index, const file_header *header, carag_fault *out_fault)
{
    uint64_t slots = 0;
    for (uint32_t node = 0; node < header->rows; node++) {
        index->at.upper_first[node] = (uint32_t)slots;
        slots += index->at.levels[node];
        if (slots > header->upper_slots)
            return corrupt(out_fault, "levels", "more upper slots than the header counts");
        if (!carag_word_is_deleted(atomic_load_explicit(&index->at.words[node], memory_order_relaxed)) &&
            !carag_map_insert(index, node))
            return corrupt(out_fault, "keys", "two live rows have the same key");
    }
    index->rows = (uint32_t)header->rows;
    index->live = (uint32_t)header->live;
    index->upper_count = (uint32_t)header->upper_slots;
    index->entry_point = header->entry_point;
    index->max_level = header->max_level;
    carag_fault broken = {0};
    if (carag_check_unlocked(index, &broken))
        return corrupt(out_fault, "graph", broken.what);
    return CARAG_OK;
}

static carag_status load(int file, carag_index **index, carag_fault *out_fault)
{
    carag_crc_tables tables;
    file_header header;
    struct stat stat;
    carag_crc_tables_init(&tables);
    if (fstat(file, &stat) != 0)
        return io_failed(out_fault, "", "cannot look at the file");
    if (!S_ISREG(stat.st_mode))
        return corrupt(out_fault, "", "this is no regular file");
    carag_status status = read_header(file, &tables, &header, out_fault);
    if (status != CARAG_OK)
        return status;
    const carag_params params = {header.dim, header.M, header.ef_construction, header.seed};
    status = carag_params_verify(&params, NULL);
    if (status != CARAG_OK)
        return corrupt(out_fault, "header", "dim, M or ef_construction is out of range");
    status = carag_index_new(&params, index, out_fault);
    if (status == CARAG_OK)
        status = verify_layout(*index, &header, (uint64_t)stat.st_size, out_fault);
    if (status != CARAG_OK)
        return status;
    status = carag_index_reserve(*index, header.rows, header.upper_slots);
    if (status != CARAG_OK)
        return carag_fail(out_fault, status, 0, "");
    status = read_sections(file, &tables, &header, *index, out_fault);
    return status == CARAG_OK ? adopt(*index, &header, out_fault) : status;
}

carag_status carag_index_load(const char *path, carag_index **out_index, carag_fault *out_fault)
{
    carag_index *index = NULL;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return io_failed(out_fault, "", "cannot open");
    const carag_status status = load(file, &index, out_fault);
    close(file);
    if (status == CARAG_OK)
        *out_index = index;
    else
        carag_index_free(index);
    return status;
}
