/* file/save.c - save an index to a file.
 *
 * Saving writes a temporary file beside the target, syncs it, renames it over the target and syncs the directory: a
 * reader sees the old file or the new one, whatever fails. Searches go on meanwhile; words do not change, since a
 * change of them waits for the writer's lock.
 *
 * A section still in the file it was mapped from is saved with the checksum it came with, so that saving never makes
 * damage look sound.
 */
#include "carag_internal.h"
#include "file/file.h"
#include "row/row.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
        .distances = {view->costs.distances[0], view->costs.distances[1]},
        .sketched = {view->costs.sketched[0], view->costs.sketched[1]},
        .centred = view->bits.centred,
        .classes = atomic_load(&view->catalog->count),
    };
    if (view->cells) {
        header->cells = view->cells->count;
        header->listed = view->cells->rows;
        header->cells_centred = view->cells->centred;
        header->reach = view->cells->reach;
        header->reached[0] = view->costs.reached[0];
        header->reached[1] = view->costs.reached[1];
        header->scored = view->costs.scored;
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

static bool write_view(int file, const carag_index *index, const carag_view *view)
{
    static const unsigned char zeros[CARAG_ALIGNMENT];
    carag_crc_tables tables;
    carag_header header;
    carag_crc_tables_init(&tables);
    fill_header(index, view, &tables, &header);
    if (!write_all(file, &header, sizeof header))
        return false;
    for (int section = 0; section < SECTIONS; section++) {
        const uint64_t size = header.sections[section].size;
        if (!write_all(file, carag_section_data(view, section), size) ||
            !write_all(file, zeros, carag_aligned(size) - size))
            return false;
    }
    return fsync(file) == 0;
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
    carag_view view;
    int file = -1;
    pthread_mutex_lock(&index->writer);
    status = view_to_save(index, &view);
    if (status != CARAG_OK) {
        carag_fail(out_fault, status, 0, "");
        goto done;
    }
    file = mkstemp(temporary);
    if (file < 0) {
        status = carag_io_failed(out_fault, "", "cannot make a temporary file beside the target");
        goto done;
    }
    if (!write_view(file, index, &view)) {
        status = carag_io_failed(out_fault, "", "cannot write the temporary file");
        goto abandon;
    }
    if (close(file) != 0) {
        file = -1;
        status = carag_io_failed(out_fault, "", "cannot close the temporary file");
        goto abandon;
    }
    file = -1;
    if (rename(temporary, path) != 0) {
        status = carag_io_failed(out_fault, "", "cannot rename the temporary file over the target");
        goto abandon;
    }
    if (!sync_directory(path, temporary))
        status = carag_io_failed(out_fault, "", "saved, but cannot sync the directory");
    goto done;
abandon:
    if (file >= 0)
        close(file);
    unlink(temporary);
done:
    carag_catalog_free(view.catalog);
    pthread_mutex_unlock(&index->writer);
    carag_release(temporary);
    return status;
}
