/* file/save.c - save an index to a file.
 *
 * The file is replaced whole (file/disk.c). Searches go on meanwhile; words do not change, since a change of them waits
 * for the writer's lock.
 *
 * A section still in the file it was mapped from is saved with the checksum it came with, so that saving never makes
 * damage look sound.
 */
#include "carag_internal.h"
#include "file/file.h"
#include "row/row.h"

#include <string.h>

static void fill_header(const carag_index *index, const carag_view *view, const carag_crc_tables *tables,
                        carag_header *header)
{
    const uint32_t entry = atomic_load(&view->graph.entry_point);
    uint64_t end;
    *header = (carag_header){
        .version = CARAG_FILE_VERSION,
        .section_count = SECTIONS,
        .dim = index->params.dim,
        .M = index->params.M,
        .ef_construction = index->params.ef_construction,
        .dtype = (uint32_t)index->params.dtype,
        .seed = index->params.seed,
        .rows = atomic_load(&view->rows),
        .live = atomic_load(&index->live),
        .upper_slots = view->graph.upper_count,
        .entry_point = entry,
        .max_level = entry == CARAG_NONE ? 0 : view->graph.levels[entry],
        .ef = view->costs.ef,
        .slack = view->costs.slack,
        .distances = view->costs.distances,
        .seeds = view->costs.seeds,
        .reached = {view->costs.reached[0], view->costs.reached[1]},
        .scored = view->costs.scored,
        .centred = view->bits.centred,
        .classes = atomic_load(&view->catalog->count),
    };
    if (view->cells) {
        header->cells = view->cells->count;
        header->listed = view->cells->rows;
        header->cells_centred = view->cells->centred;
        header->reach = view->cells->reach;
    }
    memcpy(header->magic, carag_magic, sizeof carag_magic);
    carag_lay_out(index, header, header->sections, &end); /* what is in memory fits */
    for (int section = 0; section < SECTIONS; section++) {
        const void *data = carag_section_data(view, section);
        header->sections[section].crc = carag_is_in_file(index, data)
                                            ? index->sums[section]
                                            : carag_crc(tables, 0, data, header->sections[section].size);
    }
    header->crc = carag_crc(tables, 0, header, offsetof(carag_header, crc));
}

typedef struct saving {
    const carag_index *index;
    carag_view view;
} saving;

static bool write_view(int file, const void *context)
{
    const saving *job = context;
    const carag_index *index = job->index;
    const carag_view *view = &job->view;
    static const unsigned char zeros[CARAG_ALIGNMENT];
    carag_crc_tables tables;
    carag_header header;
    carag_crc_tables_init(&tables);
    fill_header(index, view, &tables, &header);
    if (!carag_write_all(file, &header, sizeof header))
        return false;
    for (int section = 0; section < SECTIONS; section++) {
        const uint64_t size = header.sections[section].size;
        if (!carag_write_all(file, carag_section_data(view, section), size) ||
            !carag_write_all(file, zeros, carag_aligned(size) - size))
            return false;
    }
    return true;
}

/* The view as it is saved: with a fresh catalog, since the present one depends on how rows came and changed. */
static carag_status view_to_save(const carag_index *index, carag_view *out_view)
{
    *out_view = *atomic_load(&index->view);
    const uint32_t rows = atomic_load(&out_view->rows);
    const uint32_t classes = atomic_load(&out_view->catalog->count);
    out_view->catalog = carag_catalog_new(out_view->words, out_view->terms, rows, rows, classes, 0);
    return out_view->catalog ? CARAG_OK : CARAG_NO_MEMORY;
}

carag_status carag_index_save(carag_index *index, const char *path, carag_fault *out_fault)
{
    saving job = {.index = index};
    pthread_mutex_lock(&index->writer);
    carag_status status = view_to_save(index, &job.view);
    if (status == CARAG_OK)
        status = carag_replace_file(path, write_view, &job, out_fault);
    else
        carag_fail(out_fault, status, 0, "");
    carag_catalog_free(job.view.catalog);
    pthread_mutex_unlock(&index->writer);
    return status;
}
