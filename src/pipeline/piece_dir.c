/* piece_dir.c -- see piece_dir.h. */
#define _GNU_SOURCE             /* renameat2 */
#include "pipeline/piece_dir.h"

#include "machine/path_sync.h"
#include "store/checkpoint_dir.h"
#include "store/temp_dir.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX ".pieces"

bool piece_dir_is_name(const char *name, size_t n_output)
{
    size_t n = strlen(PREFIX);
    return n_output >= n && memcmp(name, PREFIX, n) == 0 && (n_output == n || name[n] == '_');
}

/* The beginning of the directory's name: absolute, because the checkpoint keeps it. If there is a
   directory of that name, temp_dir_create would work in it; so another number follows then. The
   caller frees it. */
static char *make_prefix(const char *beside)
{
    char *parent = path_fixed_parent(beside), *real = realpath(parent, NULL);
    char *prefix = xasprintf("%s/" PREFIX, real ? real : parent);
    struct stat st;
    for (unsigned number = 2; stat(prefix, &st) == 0; number++) {
        free(prefix);
        prefix = xasprintf("%s/" PREFIX "_%u", real ? real : parent, number);
    }
    free(parent);
    free(real);
    return prefix;
}

int piece_dir_make(struct piece_dir *dir, const char *beside, pthread_mutex_t *lock)
{
    char *prefix = make_prefix(beside);
    (void)pthread_mutex_lock(lock);
    dir->path = temp_dir_create(prefix, NULL);
    dir->lock_fd = dir->path ? checkpoint_dir_claim(dir->path) : -1;
    int error = errno;
    (void)pthread_mutex_unlock(lock);
    free(prefix);
    if (dir->path && dir->lock_fd < 0)
        diag_error("cannot make files in '%s': %s%s", dir->path, strerror(error),
                   diag_advice(error));
    return dir->path && dir->lock_fd >= 0 ? 0 : -1;
}

int piece_dir_check_name(const char *name)
{
    struct stat st;
    if (lstat(name, &st) == 0) {
        diag_error("'%s' exists: remove it, or give the pieces another name with -o", name);
        return -1;
    }
    if (errno == ENOENT) return 0;
    diag_error("cannot create '%s': %s; give another name with -o", name, strerror(errno));
    return -1;
}

/* Renames a file to a name that no file has. Returns 0, or -1 with errno set. */
static int rename_new(const char *file, const char *name)
{
    struct stat st;
    if (renameat2(AT_FDCWD, file, AT_FDCWD, name, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return -1;
    /* Not all file systems know the flag. */
    if (lstat(name, &st) < 0 && errno == ENOENT) return rename(file, name);
    errno = EEXIST;
    return -1;
}

int piece_dir_try_name(const char *dir, const char *name, pthread_mutex_t *lock)
{
    char *file = xasprintf("%s/try", dir);
    (void)pthread_mutex_lock(lock);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0) (void)close(fd);
    if (!error && rename_new(file, name) < 0) error = errno;
    if (fd >= 0 && unlink(error ? file : name) < 0 && !error) error = errno;
    (void)pthread_mutex_unlock(lock);
    free(file);
    return error;
}

/* Makes the directory of a file if it is not there. Returns whether it was made. */
static bool make_parent(const char *name)
{
    char parent[PATH_MAX];
    (void)snprintf(parent, sizeof parent, "%s", name);
    return path_go_up(parent) && mkdir(parent, 0777) == 0;
}

static void remove_parent(const char *name)
{
    char parent[PATH_MAX];
    (void)snprintf(parent, sizeof parent, "%s", name);
    if (path_go_up(parent)) (void)rmdir(parent);
}

/* Gives the first n files their names in the directory back. `made` says whose directories were
   made. */
static void take_back(const struct piece_files *files, size_t n, const bool *made)
{
    struct piece_file file;
    for (size_t i = n; i > 0; i--) {
        files->look_up(files->arg, i - 1, &file);
        if (rename(file.name, file.path) < 0)
            diag_left("warning: '%s' stays, and other pieces are missing: %s", file.name,
                      strerror(errno));
        if (made[i - 1]) remove_parent(file.name);
    }
}

/* made: one of each file, all false. */
static int rename_all(const struct piece_files *files, bool *made)
{
    struct piece_file file;
    for (size_t i = 0; i < files->n; i++) {
        files->look_up(files->arg, i, &file);
        if (files->make_directories) made[i] = make_parent(file.name);
        if (rename_new(file.path, file.name) == 0) continue;
        int error = errno;
        if (made[i]) remove_parent(file.name);
        take_back(files, i, made);
        diag_error("cannot create '%s': %s; no piece got its name", file.name, strerror(error));
        return -1;
    }
    return 0;
}

/* Some errors of a disk show only when it has been written to. */
static int sync_all(const struct piece_files *files)
{
    struct piece_file file;
    for (size_t i = 0; i < files->n; i++) {
        files->look_up(files->arg, i, &file);
        if (path_sync_file(file.path) == 0) continue;
        diag_error("cannot write '%s' to the disk: %s; no piece got its name", file.name,
                   strerror(errno));
        return -1;
    }
    return 0;
}

/* Waits until the names in the directory of a file are on the disk. */
static int sync_names(const char *name)
{
    char *parent = path_parent(name);
    int r = path_sync_directory(parent);
    if (r < 0)
        diag_error("all pieces in '%s' are complete, but their names may not be on the disk yet: "
                   "%s", parent, strerror(errno));
    free(parent);
    return r;
}

/* Waits until all names are on the disk. */
static int sync_all_names(const struct piece_files *files)
{
    struct piece_file file;
    /* A piece and its index come first: they stand for the two directories that there may be,
       unless each piece has its own. */
    for (size_t i = 0; i < files->n && (i < 2 || files->make_directories); i++) {
        files->look_up(files->arg, i, &file);
        if (sync_names(file.name) < 0) return -1;
        if (files->make_directories && i < 2 && path_go_up(file.name) &&
            sync_names(file.name) < 0)
            return -1;
    }
    return 0;
}

int piece_dir_publish(const struct piece_files *files, bool durable, pthread_mutex_t *lock)
{
    if (sync_all(files) < 0) return -1;
    bool *made = xcalloc(files->n + 1, sizeof *made);
    (void)pthread_mutex_lock(lock);
    int r = rename_all(files, made);
    (void)pthread_mutex_unlock(lock);
    free(made);
    return r == 0 && durable ? sync_all_names(files) : r;
}

void piece_dir_unlink(const struct piece_dir *dir)
{
    if (dir->path) (void)temp_dir_remove(dir->path);
}

void piece_dir_remove(struct piece_dir *dir)
{
    if (!dir->path) return;
    if (temp_dir_remove(dir->path) < 0)
        diag_left("warning: cannot remove '%s': %s", dir->path, strerror(errno));
    if (dir->lock_fd >= 0) (void)close(dir->lock_fd);
    free(dir->path);
    *dir = (struct piece_dir){0};
}

void piece_dir_drop_leftover(const char *path)
{
    struct checkpoint_dir dir;
    const char *problem;
    size_t n_output;
    if (!path || !temp_dir_is_name(path_name(path), &n_output) ||
        checkpoint_dir_open(path, &dir, &problem) != CHECKPOINT_OK)
        return;
    if (!checkpoint_dir_has_file(&dir)) (void)temp_dir_remove(path);
    checkpoint_dir_close(&dir);
}
