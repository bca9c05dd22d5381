/* A disk that is slow, fails or remembers: preloaded between a process and its C library.
 *
 *   DISK_ROOT=dir       only files below this directory are touched (required)
 *   DISK_SYNC_US=n      every sync takes n microseconds longer
 *   DISK_COUNT=file     the number of syncs so far, as 8 bytes in this file
 *   DISK_FAIL_SYNC=n    the n-th sync fails with EIO, and every one after it
 *   DISK_FULL_AFTER=n   writes fail with ENOSPC once n bytes have been written
 *   DISK_TRACE=file     every change and every sync is appended to this file, in order
 *
 * A trace is a sequence of: op (1 byte), path length (4), path, offset (8), data length (4), data, in the byte
 * order of the machine. Ops: c created, u unlinked, r renamed (data: the new path), w written, t truncated to
 * offset, b a sync began, s it ended well. A write that no sync covers that began after it and ended well may be
 * lost by a power cut; that is for the reader of the trace to play out.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *root;
static long sync_us, fail_sync, full_after = -1;
static long syncs, written;
static volatile uint64_t *count;
static int trace = -1;

static long number(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

__attribute__((constructor)) static void start(void) {
    const char *path;
    root = getenv("DISK_ROOT");
    sync_us = number("DISK_SYNC_US", 0);
    fail_sync = number("DISK_FAIL_SYNC", 0);
    full_after = number("DISK_FULL_AFTER", -1);
    if ((path = getenv("DISK_TRACE")))
        trace = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if ((path = getenv("DISK_COUNT"))) {
        int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0 && syscall(SYS_ftruncate, fd, 8) == 0)
            count = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
}

static int ours(const char *path) {
    return root && strncmp(path, root, strlen(root)) == 0;
}

static int path_of(int fd, char *path) {
    char link[64];
    ssize_t length;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, PATH_MAX - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return ours(path);
}

static void put(const void *data, size_t size) {
    while (size) {
        ssize_t done = syscall(SYS_write, trace, data, size);
        if (done <= 0)
            abort(); /* a trace with a hole proves nothing */
        data = (const char *)data + done;
        size -= (size_t)done;
    }
}

static void note(char op, const char *path, uint64_t offset, const void *data, size_t size) {
    uint32_t length = (uint32_t)strlen(path), bytes = (uint32_t)size;
    if (trace < 0)
        return;
    put(&op, 1);
    put(&length, 4);
    put(path, length);
    put(&offset, 8);
    put(&bytes, 4);
    put(data, size);
}

static int full(size_t size) {
    written += (long)size;
    return full_after >= 0 && written > full_after;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static ssize_t written_at(int fd, const void *data, size_t size, off64_t offset, int seek) {
    char path[PATH_MAX];
    ssize_t done;
    if (!path_of(fd, path))
        return seek ? syscall(SYS_write, fd, data, size) : syscall(SYS_pwrite64, fd, data, size, offset);
    pthread_mutex_lock(&lock);
    if (full(size)) {
        pthread_mutex_unlock(&lock);
        errno = ENOSPC;
        return -1;
    }
    if (seek) {
        struct stat state;
        int append = (int)syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND;
        offset = append && fstat(fd, &state) == 0 ? state.st_size : lseek64(fd, 0, SEEK_CUR);
        done = syscall(SYS_write, fd, data, size);
    } else {
        done = syscall(SYS_pwrite64, fd, data, size, offset);
    }
    if (done > 0)
        note('w', path, (uint64_t)offset, data, (size_t)done);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t write(int fd, const void *data, size_t size) { return written_at(fd, data, size, 0, 1); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return written_at(fd, data, size, at, 0); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return written_at(fd, data, size, at, 0); }

static int truncated(int fd, off64_t size) {
    char path[PATH_MAX];
    int result;
    pthread_mutex_lock(&lock);
    result = (int)syscall(SYS_ftruncate, fd, size);
    if (result == 0 && path_of(fd, path))
        note('t', path, (uint64_t)size, "", 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int ftruncate(int fd, off_t size) { return truncated(fd, size); }
int ftruncate64(int fd, off64_t size) { return truncated(fd, size); }

static int synced(int fd, long call) {
    char path[PATH_MAX];
    int result, fail;
    if (!path_of(fd, path))
        return (int)syscall(call, fd);
    pthread_mutex_lock(&lock);
    note('b', path, 0, "", 0);
    fail = ++syncs >= fail_sync && fail_sync > 0;
    if (count)
        *count = (uint64_t)syncs;
    pthread_mutex_unlock(&lock);
    if (sync_us)
        usleep((useconds_t)sync_us);
    if (fail) {
        errno = EIO;
        return -1;
    }
    result = (int)syscall(call, fd);
    pthread_mutex_lock(&lock);
    if (result == 0)
        note('s', path, 0, "", 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

static int opened(const char *path, int flags, mode_t mode) {
    int fd, made;
    pthread_mutex_lock(&lock);
    made = (flags & O_CREAT) && ours(path) && faccessat(AT_FDCWD, path, F_OK, 0) != 0;
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && made)
        note('c', path, 0, "", 0);
    pthread_mutex_unlock(&lock);
    return fd;
}

#define OPEN(name)                                                                                                  \
    int name(const char *path, int flags, ...) {                                                                    \
        va_list rest;                                                                                               \
        mode_t mode = 0;                                                                                            \
        if (flags & (O_CREAT | __O_TMPFILE)) {                                                                      \
            va_start(rest, flags);                                                                                  \
            mode = va_arg(rest, mode_t);                                                                            \
            va_end(rest);                                                                                           \
        }                                                                                                           \
        return opened(path, flags, mode);                                                                           \
    }
OPEN(open)
OPEN(open64)

int unlink(const char *path) {
    int result;
    pthread_mutex_lock(&lock);
    result = REAL(unlink)(path);
    if (result == 0 && ours(path))
        note('u', path, 0, "", 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int rename(const char *from, const char *to) {
    int result;
    pthread_mutex_lock(&lock);
    result = REAL(rename)(from, to);
    if (result == 0 && ours(from))
        note('r', from, 0, to, strlen(to));
    pthread_mutex_unlock(&lock);
    return result;
}
