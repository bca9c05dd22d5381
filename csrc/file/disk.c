/* file/disk.c - read, write and replace whole files.
 *
 * Replacing writes a temporary file next to the target, syncs it, renames it over the target and syncs the directory: a
 * reader sees the old file or the new one, whatever fails.
 */
#include "carag_internal.h"
#include "file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How much was read, less than asked for when the file ends; -1 with errno on failure. */
ssize_t carag_read_all(int file, void *data, size_t size)
{
    unsigned char *bytes = data;
    size_t done = 0;
    while (done < size) {
        const ssize_t got = read(file, bytes + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

bool carag_write_all(int file, const void *data, size_t size)
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

/* `write_to` writes the content; it returns false, with errno, on failure. */
carag_status carag_replace_file(const char *path, carag_write_fn write_to, const void *context, carag_fault *out_fault)
{
    static const char suffix[] = ".XXXXXX";
    const size_t length = strlen(path);
    carag_status status = CARAG_OK;
    char *temporary = carag_allocate(length + sizeof suffix, 1);
    if (!temporary)
        return carag_fail(out_fault, CARAG_NO_MEMORY, 0, "");
    memcpy(temporary, path, length);
    memcpy(temporary + length, suffix, sizeof suffix);
    int file = mkstemp(temporary);
    if (file < 0) {
        status = carag_io_failed(out_fault, "", "cannot create a temporary file next to the target");
        goto done;
    }
    if (!write_to(file, context) || fsync(file) != 0) {
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
    carag_release(temporary);
    return status;
}
