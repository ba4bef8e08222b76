/* temp_dir.c -- see temp_dir.h. */
#define _GNU_SOURCE             /* getdents64, mkostemp, O_TMPFILE */
#include "os/temp_dir.h"

#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    REMOVE_TRIES = 100,
    RETRY_MICROSECONDS = 10000,
};

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* True if temporary files can be made beside the output: not for a device, a pipe or a URL. */
static bool has_place_beside(const char *output)
{
    struct stat st;
    if (path_is_url(output)) return false;
    return stat(output, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

/* Returns the prefix of names beside the output; the caller frees it. If each group of the output
   gets a directory (--split-by), which does not exist yet, the prefix is beside these. */
static char *make_base(const char *output)
{
    char *parent = path_parent(output), *fixed = path_fixed_parent(output);
    char *base = is_directory(parent) ? xstrdup(output)
                                      : xasprintf("%s/%s", fixed, path_name(output));
    free(parent);
    free(fixed);
    return base;
}

/* Returns the template for mkdtemp; the caller frees it. */
static char *make_template(const char *prefix, const char *output)
{
    if (prefix || (output && !has_place_beside(output))) output = NULL;
    char *beside = output ? make_base(output) : NULL;
    const char *base = prefix ? prefix : beside;
    if (!base) {
        base = getenv("TMPDIR");
        if (!base || !*base) base = ".";
    }
    /* TMPDIR is never the prefix of a name. */
    bool is_parent = !output && (!prefix || is_directory(base));
    size_t n = strlen(base), dir_bytes = (size_t)(path_name(base) - base);
    /* The last part of the name may be too long for more to be added. */
    if (!is_parent && n > dir_bytes + TEMP_DIR_BASE_BYTES) n = dir_bytes + TEMP_DIR_BASE_BYTES;
    const char *joint = !is_parent ? "." : base[n - 1] == '/' ? "" : "/";
    char *template = xasprintf("%.*s%srocksort.%ld.XXXXXX", (int)n, base, joint, (long)getpid());
    free(beside);
    return template;
}

const char *temp_dir_advice(int error)
{
    const char *advice = diag_advice(error);
    return *advice ? advice : "; choose another place with -T";
}

static void report_impossible(const char *path, int error)
{
    diag_error("cannot create the temporary directory '%s': %s%s", path, strerror(error),
               temp_dir_advice(error));
}

/* Warns of a prefix in the root directory: the user probably meant a directory, or a variable
   before the slash was empty. */
static void warn_of_root(const char *prefix, const struct stat *parent)
{
    struct stat root;
    bool is_in_root = stat("/", &root) == 0 && root.st_dev == parent->st_dev &&
                      root.st_ino == parent->st_ino;
    if (*prefix == '/' && is_in_root && !is_directory(prefix))
        diag_warning("'%s' is not a directory: temporary data go into '/', as '%s.rocksort.*'; "
                     "create it or change -T", prefix, prefix);
}

int temp_dir_check(const char *prefix)
{
    if (path_is_url(prefix)) {
        diag_error("option -T takes a directory or the beginning of a path, not the URL '%s': "
                   "temporary data stay on this machine", prefix);
        return -1;
    }
    char *template = make_template(prefix, NULL), *parent = path_parent(template);
    struct stat st;
    int error = 0;
    if (stat(parent, &st) < 0)
        error = errno;
    else if (!S_ISDIR(st.st_mode))
        error = ENOTDIR;
    else if (access(parent, W_OK | X_OK) < 0)
        error = errno;
    if (error)
        report_impossible(template, error);
    else
        warn_of_root(prefix, &st);
    free(template);
    free(parent);
    return error ? -1 : 0;
}

char *temp_dir_create(const char *prefix, const char *output)
{
    char *path = make_template(prefix, output);
    if (mkdtemp(path)) return path;
    report_impossible(path, errno);
    free(path);
    return NULL;
}

int temp_dir_open_file(const char *prefix, const char *output, char **parent)
{
    char *path = make_template(prefix, output);
    *parent = path_parent(path);
    int fd = open(*parent, O_RDWR | O_CLOEXEC | O_TMPFILE, 0600);
    if (fd < 0 && errno != ENOSPC && errno != EDQUOT) { /* not all file systems know this flag */
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0) (void)unlink(path);
    }
    if (fd < 0) {
        diag_error("cannot create temporary data in '%s': %s%s", *parent, strerror(errno),
                   temp_dir_advice(errno));
        free(*parent);
        *parent = NULL;
    }
    free(path);
    return fd;
}

bool temp_dir_is_name(const char *name, size_t *n_output)
{
    static const char word[] = "rocksort.";
    enum { RANDOM_CHARACTERS = 6 };
    size_t n = strlen(name);
    if (n < sizeof word + 1 + RANDOM_CHARACTERS) return false;
    const char *at = name + n - RANDOM_CHARACTERS - 1, *number_end = at;
    if (*at != '.') return false;
    while (at > name && at[-1] >= '0' && at[-1] <= '9') at--;
    size_t n_before = (size_t)(at - name), n_word = sizeof word - 1;
    if (at == number_end || n_before < n_word || memcmp(at - n_word, word, n_word) != 0)
        return false;
    *n_output = n_before > n_word ? n_before - n_word - 1 : 0;
    return n_before == n_word || at[-(ptrdiff_t)n_word - 1] == '.';
}

static int is_accepted(const struct dirent *entry)
{
    size_t n_output;
    return temp_dir_is_name(entry->d_name, &n_output);
}

int temp_dir_list(const char *path, struct dirent ***entries)
{
    return scandir(path, entries, is_accepted, alphasort);
}

char *temp_dir_path(const char *parent, const char *name)
{
    size_t n = strlen(parent);
    return xasprintf("%s%s%s", parent, n > 0 && parent[n - 1] == '/' ? "" : "/", name);
}

/* Calls visit for each name in the open directory except . and .. Does not use opendir, which
   allocates memory: there may be none left when this is called to clean up. */
static void for_each_name(int dir_fd, void (*visit)(int dir_fd, const char *name, void *arg),
                          void *arg)
{
    _Alignas(struct dirent64) char entries[4096];
    ssize_t n_bytes;
    while ((n_bytes = getdents64(dir_fd, entries, sizeof entries)) > 0) {
        for (ssize_t at = 0; at < n_bytes;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            at += entry->d_reclen;
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                visit(dir_fd, entry->d_name, arg);
        }
    }
}

/* Removes a file, except the one that is kept, or a directory and all that is in it. Ignores a
   failure: removing the directory around it will fail, too. */
static void remove_below(int dir_fd, const char *name, void *kept)
{
    if ((kept && strcmp(name, kept) == 0) || unlinkat(dir_fd, name, 0) == 0) return;
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return;
    for_each_name(fd, remove_below, NULL);
    (void)close(fd);
    (void)unlinkat(dir_fd, name, AT_REMOVEDIR);
}

void temp_dir_remove_checkpoint(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return;
    (void)unlinkat(fd, TEMP_DIR_CHECKPOINT_NAME, 0);
    (void)close(fd);
}

/* Tries once to remove the directory and all that is in it. */
static int remove_once(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* A directory that cannot be opened is new and empty: a umask like 0777 closes it to us, or no
       further file may be open (ulimit -n). */
    if (fd < 0) return rmdir(path);
    /* Removes the checkpoint file first: without it the directory is not a checkpoint. Removes the
       lock last: other processes leave a locked directory alone. */
    (void)unlinkat(fd, TEMP_DIR_CHECKPOINT_NAME, 0);
    for_each_name(fd, remove_below, TEMP_DIR_LOCK_NAME);
    (void)unlinkat(fd, TEMP_DIR_LOCK_NAME, 0);
    (void)close(fd);
    return rmdir(path);
}

/* Removes a file of a run, or that of disk_probe.h. The file of a run may also be linked into a
   database, so it may be removed but never written to again. */
static void remove_leftover(int dir_fd, const char *name, void *arg)
{
    (void)arg;
    size_t n = strlen(name);
    if ((n > 4 && strcmp(name + n - 4, ".sst") == 0) || strcmp(name, "probe") == 0)
        (void)unlinkat(dir_fd, name, 0);
}

void temp_dir_tidy(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return;
    for_each_name(fd, remove_leftover, NULL);
    (void)close(fd);
}

struct syncing {
    const atomic_bool *stop;
    int error;                  /* the first one, or 0 */
};

static void sync_fd(int fd, struct syncing *syncing)
{
    if (fsync(fd) < 0 && !syncing->error) syncing->error = errno;
}

static void sync_below(int dir_fd, const char *name, void *arg)
{
    struct syncing *syncing = arg;
    struct stat st;
    if (atomic_load(syncing->stop) || syncing->error) return;
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        if (errno != ENOENT) syncing->error = errno;
        return;
    }
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) for_each_name(fd, sync_below, syncing);
    sync_fd(fd, syncing);
    (void)close(fd);
}

int temp_dir_sync(const char *path, const atomic_bool *stop)
{
    struct syncing syncing = {.stop = stop};
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? 0 : -1;
    for_each_name(fd, sync_below, &syncing);
    sync_fd(fd, &syncing);
    (void)close(fd);
    errno = syncing.error;
    return errno ? -1 : 0;
}

int temp_dir_remove(const char *path)
{
    if (!path) return 0;
    for (int i = 0; i < REMOVE_TRIES; i++) {
        if (remove_once(path) == 0 || errno == ENOENT) return 0;
        if (errno != ENOTEMPTY && errno != EEXIST) return -1;
        (void)usleep(RETRY_MICROSECONDS);
    }
    return -1;
}
