/* test_save.c - a save that fails, is killed at any byte or time, or meets a full disk leaves the old file as it was. */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static void a_failed_save_keeps_the_old_file(void)
{
    carag_fault fault = {0};
    carag_index *index = small_index(CARAG_FLOAT32, 6);
    blob before = saved(index);
    char elsewhere[600];
    CHECK(snprintf(elsewhere, sizeof elsewhere, "%s.no/such/directory", path) > 0);
    CHECK(carag_index_save(index, elsewhere, &fault) == CARAG_IO && fault.os_error != 0);
    CHECK(carag_index_save(index, "/dev/null/x", &fault) == CARAG_IO);
    CHECK(snprintf(elsewhere, sizeof elsewhere, "%s.d", path) > 0);
    CHECK(mkdir(elsewhere, 0700) == 0);
    CHECK(carag_index_save(index, elsewhere, &fault) == CARAG_IO); /* a directory is in the way */
    blob after = read_file(path);
    CHECK(same(before, after));
    for (int map = 0; map < 2; map++) {
        carag_index *got = NULL;
        CHECK(carag_index_load(elsewhere, map, &got, &fault) != CARAG_OK && got == NULL);
        CHECK(carag_index_load("/dev/zero", map, &got, &fault) == CARAG_CORRUPT && got == NULL);
    }
    CHECK(rmdir(elsewhere) == 0); /* nothing was left beside or in it */
    carag_index_free(index);
    free(before.bytes);
    free(after.bytes);
}

/* Files in the directory of `path` whose names begin with its own and a dot: what a killed save leaves. */
static int litter(void)
{
    char directory[512];
    const char *name = strrchr(path, '/') + 1;
    int count = 0;
    CHECK(snprintf(directory, sizeof directory, "%.*s", (int)(name - path), path) > 0);
    DIR *open_directory = opendir(directory);
    CHECK(open_directory);
    for (struct dirent *entry; (entry = readdir(open_directory));)
        if (strncmp(entry->d_name, name, strlen(name)) == 0 && entry->d_name[strlen(name)] == '.') {
            CHECK(unlinkat(dirfd(open_directory), entry->d_name, 0) == 0);
            count++;
        }
    closedir(open_directory);
    return count;
}

/* The system ends the process at the write that passes a limit: so at any byte of the file. */
static void a_process_killed_while_writing_leaves_the_old_file(void)
{
    carag_index *small = small_index(CARAG_FLOAT32, 17);
    carag_index *large = small_index(CARAG_FLOAT32, 300);
    blob new = saved(large);
    blob old = saved(small);
    CHECK(litter() == 0);
    for (size_t limit = 0; limit < new.size; limit += new.size / 40 + 1) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            signal(SIGXFSZ, SIG_DFL);
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit});
            carag_index_save(large, path, NULL);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        blob now = read_file(path);
        CHECK(same(old, now));
        free(now.bytes);
        CHECK(litter() == 1);
    }
    carag_index_free(small);
    carag_index_free(large);
    free(old.bytes);
    free(new.bytes);
}

static void a_process_killed_at_any_time_leaves_a_whole_file(void)
{
    carag_index *a = small_index(CARAG_FLOAT32, 300);
    carag_index *b = small_index(CARAG_FLOAT32, 17);
    blob other_file = saved(b);
    blob first = saved(a);
    uint64_t state = 1;
    for (int round = 0; round < 40; round++) {
        const pid_t child = fork();
        CHECK(child >= 0);
        while (child == 0) {
            carag_index_save(b, path, NULL);
            carag_index_save(a, path, NULL);
        }
        nanosleep(&(struct timespec){0, (long)(draw(&state) % 5000000)}, NULL);
        CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
        blob now = read_file(path);
        CHECK(same(now, first) || same(now, other_file));
        free(now.bytes);
        litter();
    }
    carag_index_free(a);
    carag_index_free(b);
    free(first.bytes);
    free(other_file.bytes);
}

/* In a file system of 64 KB, of a child's own: needs the right to mount one. */
static void a_full_disk_keeps_the_old_file(void)
{
    enum { SKIPPED = 77 };
    char directory[600];
    CHECK(snprintf(directory, sizeof directory, "%s.full", path) > 0);
    CHECK(mkdir(directory, 0700) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("tmpfs", directory, "tmpfs", 0, "size=64k") != 0)
            _exit(SKIPPED);
        CHECK(snprintf(path, sizeof path, "%.480s/a.carag", directory) > 0);
        carag_index *small = small_index(CARAG_FLOAT32, 17);
        carag_index *large = small_index(CARAG_FLOAT32, 300);
        carag_fault fault = {0};
        blob old = saved(small);
        CHECK(carag_index_save(large, path, &fault) == CARAG_IO && fault.os_error == ENOSPC);
        blob now = read_file(path);
        CHECK(same(old, now) && litter() == 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == SKIPPED)
        fprintf(stderr, "test_save: no right to mount a small file system: the full disk was not tried\n");
    else
        CHECK(WEXITSTATUS(status) == 0);
    CHECK(rmdir(directory) == 0);
}

int main(int argc, char **argv)
{
    temporary(argc, argv, path, "test_save.carag");
    a_failed_save_keeps_the_old_file();
    a_process_killed_while_writing_leaves_the_old_file();
    a_process_killed_at_any_time_leaves_a_whole_file();
    a_full_disk_keeps_the_old_file();
    unlink(path);
    return 0;
}
