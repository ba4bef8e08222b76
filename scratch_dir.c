/* scratch_dir.c -- see scratch_dir.h. */
#include "scratch_dir.h"

#include "diag.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    REMOVE_TRIES = 100,
    RETRY_MICROSECONDS = 10000,
    MAX_BASE_BYTES = 200,       /* of the 255 that a name may have */
};

static int is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *scratch_dir_create(const char *prefix, const char *output)
{
    struct stat st;
    /* Beside a device or a pipe, or where a URL points, is no place for files. */
    bool exists = output && stat(output, &st) == 0;
    if (output && (strstr(output, "://") ||
                   (exists && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))))
        output = NULL;
    const char *base = prefix ? prefix : output;
    if (!base) {
        base = getenv("TMPDIR");
        if (!base || !*base) base = ".";
    }
    const char *joint = "/";
    if (!is_directory(base) || (!prefix && output)) joint = ".";
    /* A name may be too long for more to be added. */
    const char *slash = strrchr(base, '/');
    size_t n = strlen(base), dir_bytes = slash ? (size_t)(slash + 1 - base) : 0;
    if (strcmp(joint, ".") == 0 && n > dir_bytes + MAX_BASE_BYTES) n = dir_bytes + MAX_BASE_BYTES;
    size_t room = n + 64;
    char *path = malloc(room);
    if (!path) {
        diag_error("out of memory");
        return NULL;
    }
    if (strcmp(joint, "/") == 0 && base[n - 1] == '/') joint = "";
    (void)snprintf(path, room, "%.*s%srocksort.%ld.XXXXXX", (int)n, base, joint, (long)getpid());
    if (!mkdtemp(path)) {
        diag_error("cannot create the temporary directory '%s': %s; choose another place with -T",
                   path, strerror(errno));
        free(path);
        return NULL;
    }
    return path;
}

/* Unlinks every file but the lock of the directory that is open as dir_fd, which it closes; if
   `below`, also those of its subdirectories. */
static void remove_files(int dir_fd, bool below)
{
    DIR *dir = fdopendir(dir_fd);
    if (!dir) {
        (void)close(dir_fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        if (below && strcmp(name, SCRATCH_LOCK_NAME) == 0) continue;
        /* What cannot be removed shows when the directory cannot be. */
        if (unlinkat(dirfd(dir), name, 0) == 0 || !below) continue;
        int fd = openat(dirfd(dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) remove_files(fd, false);
        (void)unlinkat(dirfd(dir), name, AT_REMOVEDIR);
    }
    (void)closedir(dir);
}

/* One sweep over the directory, its files and its subdirectories', which have none. */
static int remove_once(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -1;
    int files_fd = dup(fd);
    /* What has no record any more is taken for no store; what is locked is left alone. */
    (void)unlinkat(fd, SCRATCH_RECORD_NAME, 0);
    if (files_fd >= 0) remove_files(files_fd, true);
    (void)unlinkat(fd, SCRATCH_LOCK_NAME, 0);
    (void)close(fd);
    return rmdir(path);
}

void scratch_dir_tidy(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0) (void)close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        /* A link to the file may be part of a database: it must not be written to again. */
        const char *name = entry->d_name;
        size_t n = strlen(name);
        if ((n > 4 && strcmp(name + n - 4, ".sst") == 0) || strcmp(name, "probe") == 0)
            (void)unlinkat(dirfd(dir), name, 0);
    }
    (void)closedir(dir);
}

int scratch_dir_remove(const char *path)
{
    if (!path) return 0;
    for (int i = 0; i < REMOVE_TRIES; i++) {
        if (remove_once(path) == 0 || errno == ENOENT) return 0;
        if (errno != ENOTEMPTY && errno != EEXIST) return -1;
        (void)usleep(RETRY_MICROSECONDS);
    }
    return -1;
}
