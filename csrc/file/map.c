/* file/map.c - map an index file instead of reading it.
 *
 * Mapping reads little: the header and its table, and with their checksums the sections that decide what may be
 * answered, or end a loop: words, terms, keys, levels, cells, centre. Words, terms, levels and cells are copied, so
 * that a later change of the file does not reach them; the members of cells, so that a scan need not look twice at each.
 * Everything else is read from the file as needed and not trusted: a link is compared with the number of rows before it
 * is followed, a score that is not a number ranks last, and every row's word is tested before it is emitted.
 * carag_index_verify checks the rest, and so does the first change that builds on it (carag_verify_if_mapped). Keys are found in a map made
 * when one is first asked for (row/keymap.c).
 *
 * Searches jump about in codes and links, and wait longer for the addresses of a file's small pages than for those of
 * the large pages of memory. carag_index_preload copies these sections, beside searches. Rejected: copying them when
 * the file is opened, which then takes seconds a gigabyte; advising the system to use large pages for the mapping, which
 * changed a fifth of it, on the newest kernels and file systems alone.
 *
 * The mapping is never written to, and keeps the file alive when another is saved over it. A file that is
 * truncated while it is mapped ends the process (SIGBUS): replace files, as saving does, and never edit them.
 */
#include "carag_internal.h"
#include "cost/cost.h"
#include "file/file.h"
#include "row/row.h"

#include <string.h>
#include <sys/mman.h>

#define COPY_BYTES ((size_t)1 << 18) /* bytes copied at a time: they stay in cache until they are summed */

/* Copy a section, unless `to` is NULL, and compare its checksum: of the copy, which no other process can change. */
static carag_status take_section(const carag_reading *job, const carag_index *index, int section, void *to,
                                 carag_fault *out_fault)
{
    const carag_section *entry = &job->header.sections[section];
    const unsigned char *from = index->mapping + entry->offset;
    const unsigned char *taken = to ? to : from;
    uint32_t crc = 0;
    for (size_t done = 0, size; done < entry->size; done += size) {
        size = entry->size - done < COPY_BYTES ? entry->size - done : COPY_BYTES;
        if (to)
            memcpy((unsigned char *)to + done, from + done, size);
        crc = carag_crc(&job->tables, crc, taken + done, size);
    }
    if (crc != entry->crc)
        return carag_corrupt(out_fault, carag_section_names[section], "the checksum does not match");
    return CARAG_OK;
}

static void point_into_file(const carag_reading *job, const carag_index *index, carag_view *view)
{
    unsigned char *at[SECTIONS];
    for (int section = 0; section < SECTIONS; section++)
        at[section] = index->mapping + job->header.sections[section].offset;
    view->vectors = index->vector_bytes ? at[VECTORS] : NULL;
    view->keys = (int64_t *)at[KEYS];
    view->codes.bytes = at[CODES];
    view->codes.scales = (float *)at[SCALES];
    view->codes.errors = (float *)at[ERRORS];
    view->bits.packs = at[PACKS];
    view->bits.centre = (float *)at[CENTRE];
    view->graph.links = (_Atomic(uint32_t) *)at[LINKS];
    view->graph.parents = (uint32_t *)at[PARENTS];
    view->graph.upper_links = (_Atomic(uint32_t) *)at[UPPER_LINKS];
    view->graph.upper_parents = (uint32_t *)at[UPPER_PARENTS];
}

static carag_status open_mapping(const carag_reading *job, carag_index *index, carag_fault *out_fault)
{
    index->sums = carag_allocate(SECTIONS, sizeof *index->sums);
    if (!index->sums || job->length > SIZE_MAX)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    void *mapping = mmap(NULL, (size_t)job->length, PROT_READ, MAP_PRIVATE, job->file, 0);
    if (mapping == MAP_FAILED)
        return carag_io_failed(out_fault, "", "cannot map the file");
    index->mapping = mapping;
    index->mapping_size = (size_t)job->length;
    for (int section = 0; section < SECTIONS; section++)
        index->sums[section] = job->header.sections[section].crc;
    return CARAG_OK;
}

carag_status carag_map_view(const carag_reading *job, carag_index *index, carag_view **out_view, carag_fault *out_fault)
{
    const uint32_t rows = (uint32_t)job->header.rows;
    carag_status status = open_mapping(job, index, out_fault);
    if (status != CARAG_OK)
        return status;
    carag_view *view = carag_view_share(atomic_load(&index->view));
    if (!view)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    *out_view = view;
    if (carag_room_for_cells(&job->header, view) != CARAG_OK)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    point_into_file(job, index, view);
    view->capacity = rows;
    view->graph.upper_capacity = (uint32_t)job->header.upper_slots;
    view->words = carag_allocate_aligned(rows, sizeof *view->words);
    view->terms = carag_allocate_aligned(rows, sizeof *view->terms);
    view->graph.levels = carag_allocate_aligned(rows, 1);
    view->graph.upper_first = carag_allocate_aligned(rows, sizeof *view->graph.upper_first);
    if (!view->words || !view->terms || !view->graph.levels || !view->graph.upper_first ||
        carag_room_for_classes(&job->header, view) != CARAG_OK)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    const struct {
        int section;
        void *to;
    } taken[] = {{WORDS, (void *)view->words}, {CLASSES, view->catalog->classes}, {TERMS, view->catalog->terms},
                 {LEVELS, view->graph.levels}, {KEYS, NULL}, {CENTRE, NULL}};
    for (size_t i = 0; status == CARAG_OK && i < sizeof taken / sizeof *taken; i++)
        status = take_section(job, index, taken[i].section, taken[i].to, out_fault);
    const int of_cells[] = {CELLS, CENTRES, MEMBERS};
    for (size_t i = 0; status == CARAG_OK && view->cells && i < sizeof of_cells / sizeof *of_cells; i++)
        status = take_section(job, index, of_cells[i], carag_section_data(view, of_cells[i]), out_fault);
    view->bits.centred = job->header.centred;
    if (status == CARAG_OK && !carag_centre_is_sound(&view->bits, rows))
        status = carag_corrupt(out_fault, "centre", "not a mean of unit vectors");
    return status;
}

/* A view that shares everything with the present one but these sections, which are copied; on failure `*out_view` is to
 * be freed, too. */
static carag_status copy_sections(const carag_reading *job, const carag_index *index, const carag_view *present,
                                  carag_view **out_view, carag_fault *out_fault)
{
    carag_view *view = *out_view = carag_view_share(present);
    if (!view)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    view->catalog = present->catalog;
    const struct {
        int section;
        void *at; /* the pointer in the view */
    } hot[] = {{LINKS, &view->graph.links}, {CODES, &view->codes.bytes}, {SCALES, &view->codes.scales},
               {ERRORS, &view->codes.errors}, {PACKS, &view->bits.packs}};
    carag_status status = CARAG_OK;
    for (size_t i = 0; status == CARAG_OK && i < sizeof hot / sizeof *hot; i++) {
        if (!carag_is_in_file(index, carag_section_data(present, hot[i].section)))
            continue;
        void *copy = carag_allocate_aligned(1, job->header.sections[hot[i].section].size);
        if (!copy)
            return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
        memcpy(hot[i].at, &copy, sizeof copy);
        status = take_section(job, index, hot[i].section, copy, out_fault);
    }
    return status;
}

carag_status carag_index_preload(carag_index *index, carag_fault *out_fault)
{
    pthread_mutex_lock(&index->writer);
    carag_view *present = atomic_load(&index->view);
    carag_view *view = NULL;
    carag_status status = CARAG_OK;
    if (carag_is_in_file(index, present->keys)) {
        carag_reading job = {.length = index->mapping_size};
        carag_crc_tables_init(&job.tables);
        status = carag_parse_header(&job, index->mapping, index->mapping_size, out_fault);
        if (status == CARAG_OK)
            status = carag_verify_layout(&job, index, out_fault);
        for (int section = 0; status == CARAG_OK && section < SECTIONS; section++)
            if (job.header.rows != present->capacity || job.header.sections[section].crc != index->sums[section])
                status = carag_corrupt(out_fault, "header", "the file was changed after it was opened");
        if (status == CARAG_OK)
            status = copy_sections(&job, index, present, &view, out_fault);
        if (status == CARAG_OK && carag_sort_words(view) != CARAG_OK)
            status = carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
        if (status == CARAG_OK) {
            carag_costs_measure(index, view);
            carag_publish(index, view);
        } else {
            carag_view_free(index, view, present);
        }
    }
    pthread_mutex_unlock(&index->writer);
    return status;
}

/* Everything that mapping left out, against the checksums of when the file was opened. */
static carag_status verify_mapping(const carag_index *index, carag_fault *out_fault)
{
    carag_reading job = {.length = index->mapping_size};
    carag_crc_tables_init(&job.tables);
    carag_status status = carag_parse_header(&job, index->mapping, index->mapping_size, out_fault);
    if (status == CARAG_OK)
        status = carag_verify_layout(&job, index, out_fault);
    for (int section = 0; status == CARAG_OK && section < SECTIONS; section++) {
        const carag_section *entry = &job.header.sections[section];
        const char *name = carag_section_names[section];
        const unsigned char *data = index->mapping + entry->offset;
        if (entry->crc != index->sums[section])
            status = carag_corrupt(out_fault, name, "the file was changed after it was opened");
        else if (entry->crc != carag_crc(&job.tables, 0, data, entry->size))
            status = carag_corrupt(out_fault, name, "the checksum does not match");
        else if (!carag_are_zero(data + entry->size, carag_aligned(entry->size) - entry->size))
            status = carag_corrupt(out_fault, name, "a byte between sections is not zero");
    }
    return status;
}

/* The writer's. */
carag_status carag_verify_all(carag_index *index, carag_fault *out_fault)
{
    const carag_view *view = atomic_load(&index->view);
    carag_status status = CARAG_OK;
    if (carag_is_in_file(index, view->keys))
        status = verify_mapping(index, out_fault);
    if (status == CARAG_OK)
        status = carag_map_ready(index, out_fault);
    if (status != CARAG_OK)
        return status;
    pthread_rwlock_rdlock(&index->map_lock);
    const uint32_t broken = carag_check_view(index, view, out_fault);
    pthread_rwlock_unlock(&index->map_lock);
    return broken ? CARAG_CORRUPT : CARAG_OK;
}

carag_status carag_index_verify(carag_index *index, carag_fault *out_fault)
{
    pthread_mutex_lock(&index->writer);
    const carag_status status = carag_verify_all(index, out_fault);
    pthread_mutex_unlock(&index->writer);
    return status;
}

/* Before the arrays of a mapped index are copied, or a graph is built on them: what was not verified yet must be sound
 * now. The writer's; nothing to do where the arrays are in memory. */
carag_status carag_verify_if_mapped(carag_index *index, carag_fault *out_fault)
{
    return carag_is_in_file(index, atomic_load(&index->view)->keys) ? carag_verify_all(index, out_fault) : CARAG_OK;
}
