/* output_path.c -- see output_path.h. */
#define _GNU_SOURCE             /* statx, renameat2 */
#include "output/output_path.h"

#include "os/disk_space.h"
#include "os/file_owner.h"
#include "os/transfers.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Returns the name with the links in its directory followed, or NULL with errno set. */
static char *resolve_directory(const char *name)
{
    const char *base = path_name(name);
    char *dir = base > name ? xasprintf("%.*s", (int)(base - name), name) : xstrdup(".");
    char *real = realpath(dir, NULL);
    int error = errno;
    char *path = real ? xasprintf("%s/%s", strcmp(real, "/") == 0 ? "" : real, base) : NULL;
    free(dir);
    free(real);
    errno = error;
    return path;
}

/* Returns the target of the symbolic link at `path`, relative to the same directory as `path`.
   Returns NULL with errno 0 if it is not a link, or with another errno on failure. */
static char *follow_link(const char *path)
{
    char target[PATH_MAX];
    struct stat st;
    errno = 0;
    if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode)) {
        errno = 0;
        return NULL;
    }
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0) return NULL;
    target[n] = '\0';
    int n_dir = target[0] == '/' ? 0 : (int)(path_name(path) - path);
    return xasprintf("%.*s%s", n_dir, path, target);
}

/* Returns the name with all links followed, or NULL with errno set. Stops at a link to an open file
   in /proc, to which /dev/fd/5 leads. The file need not exist. */
static char *resolve(const char *name)
{
    enum { MOST_LINKS = 40 };           /* as many as the kernel follows */
    char *path = resolve_directory(name);
    for (int i = 0; path && strncmp(path, "/proc/", 6) != 0; i++) {
        char *next = follow_link(path);
        if (!next && errno == 0) return path;
        free(path);
        path = next && i < MOST_LINKS ? resolve_directory(next) : NULL;
        if (i == MOST_LINKS) errno = ELOOP;
        free(next);
    }
    return path;
}

/* True if an existing file can be replaced by rename. False for a file that a process has open
   (/proc), which must itself get the content, and for a mount point, as in a container. */
static bool can_be_replaced(const char *path)
{
    if (strncmp(path, "/proc/", 6) == 0) return false;
#ifdef STATX_ATTR_MOUNT_ROOT
    struct statx st;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &st) == 0 &&
        (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0)
        return false;
#endif
    return true;
}

static bool can_write_beside(const char *path)
{
    char *dir = path_parent(path);
    bool can = access(dir, W_OK | X_OK) == 0;
    free(dir);
    return can;
}

/* True if the file belongs to another user in a sticky directory such as /tmp, where only the owner
   may rename or remove it. On most systems other users cannot overwrite it there either. */
static bool is_kept_by_owner(const char *path, const struct stat *file)
{
    struct stat st;
    char *dir = path_parent(path);
    uid_t me = geteuid();
    bool kept = stat(dir, &st) == 0 && (st.st_mode & S_ISVTX) && me != 0 &&
                st.st_uid != me && file->st_uid != me;
    free(dir);
    return kept;
}

char *output_path_temporary(const char *final)
{
    char tail[64];
    /* In containers many sorts have the same process id, so the name includes the time. */
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int n_tail = snprintf(tail, sizeof tail, OUTPUT_PATH_WORD "%ld.%0*ld" OUTPUT_PATH_ENDING,
                          (long)getpid(), OUTPUT_PATH_NANOSECOND_DIGITS, now.tv_nsec);
    size_t dir_bytes = (size_t)(path_name(final) - final), n = strlen(final);
    /* The journal has the longer extension. */
    size_t tail_bytes = (size_t)n_tail - strlen(OUTPUT_PATH_ENDING) + strlen(OUTPUT_JOURNAL_ENDING);
    size_t most = dir_bytes + NAME_MAX - tail_bytes;
    if (n > most) n = most;
    return xasprintf("%.*s%s", (int)n, final, tail);
}

/* Also accepts forms of a file URL that htslib does not know. */
static const char *without_scheme(const char *name)
{
    static const char *const schemes[] = {"file://localhost/", "file:///", "file://", "file:"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t n = strlen(schemes[i]);
        bool ends_in_path = i < 2;      /* the last slash is part of the path */
        if (strncmp(name, schemes[i], n) == 0) return name + n - ends_in_path;
    }
    return name;
}

/* Returns 0 if a new file can have this name, else an errno. */
static int check_new(const char *name, int stat_error)
{
    size_t n = strlen(name);
    /* A name that is too long must fail here: the temporary name is shorter, and the rename comes
       at the end of the sort. */
    return stat_error == ENOENT && n > 0 && name[n - 1] != '/' ? 0 : stat_error;
}

/* Returns 0 if an existing regular file can be the output, else an errno. */
static int check_existing(const char *name, const struct stat *st)
{
    if (S_ISDIR(st->st_mode)) return EISDIR;
    /* A write-protected file could be replaced, but is refused. */
    return access(name, W_OK) < 0 ? errno : 0;
}

/* Chooses final and temporary name; leaves both NULL to write in place. `existing`: NULL if there
   is no file yet. Returns 0, or an errno. */
static int choose_names(struct output_path *path, const struct stat *existing)
{
    char *final = path->final = resolve(path->name);
    int error = final ? 0 : errno;
    if (!error && !can_be_replaced(final))
        error = ENOENT;         /* a new file in /proc */
    else if (!error && !can_write_beside(final))
        error = errno;
    if (error && existing) {    /* the file can only be overwritten */
        free(final);
        path->final = NULL;
        return 0;
    }
    if (!error && existing && is_kept_by_owner(final, existing)) error = EPERM;
    if (!error) path->temporary = output_path_temporary(final);
    return error;
}

/* Prints why the file cannot be created. */
static int refuse(struct output_path *path, const char *name, int error)
{
    diag_error("cannot create '%s': %s%s", name, strerror(error), diag_advice(error));
    output_path_release(path);
    return -1;
}

int output_path_choose(struct output_path *path, const char *name)
{
    struct stat st;
    *path = (struct output_path){.name = name};
    name = without_scheme(name);
    if (path_is_url(name)) {
        path->is_url = true;
        return 0;
    }
    path->name = name;
    bool exists = stat(name, &st) == 0;
    int error = exists ? 0 : errno;
    if (exists && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return 0;
    error = exists ? check_existing(name, &st) : check_new(name, error);
    if (!error && exists) {
        path->replaces = true;
        path->mode = st.st_mode & 07777;
        path->uid = st.st_uid;
        path->gid = st.st_gid;
    }
    if (!error) error = choose_names(path, exists ? &st : NULL);
    return error ? refuse(path, name, error) : 0;
}

int output_path_choose_pattern(struct output_path *path, const char *pattern)
{
    const char *name = without_scheme(pattern);
    char *fixed = path_fixed_parent(name), *real = realpath(fixed, NULL);
    int error = !real || access(real, W_OK | X_OK) < 0 ? errno : 0;
    /* Length of the directory part; 0 if there is none. */
    size_t n = strcmp(fixed, ".") == 0 && strncmp(name, "./", 2) != 0 ? 0 : strlen(fixed);
    const char *rest = name + n + strspn(name + n, "/");
    *path = (struct output_path){.name = name};
    if (!error) path->final = xasprintf("%s/%s", strcmp(real, "/") == 0 ? "" : real, rest);
    if (!error) path->temporary = output_path_temporary(path->final);
    free(fixed);
    free(real);
    return error ? refuse(path, name, error) : 0;
}

void output_path_place(struct output_path *path, const char *name, const char *file)
{
    *path = (struct output_path){.name = name, .final = xstrdup(file)};
    path->temporary = xasprintf("%s%s", file, OUTPUT_PATH_ENDING);
}

bool output_path_same(const struct output_path *a, const struct output_path *b)
{
    return a->final && b->final && strcmp(a->final, b->final) == 0;
}

/* Gives the complete file the owner and permissions of the replaced file, as far as the system
   allows. */
static void inherit(const struct output_path *path, int fd)
{
    struct stat st;
    mode_t mode = path->mode;
    if (fchown(fd, path->uid, path->gid) < 0) (void)!fchown(fd, (uid_t)-1, path->gid);
    /* Set-user-ID and set-group-ID bits must not apply to another owner or group. */
    bool is_known = fstat(fd, &st) == 0;
    if (!is_known || st.st_uid != path->uid) mode &= (mode_t)~S_ISUID;
    if (!is_known || st.st_gid != path->gid) mode &= (mode_t)~S_ISGID;
    (void)fchmod(fd, mode);
}

/* Locks a new file. Returns 0, or -1 with errno set. Another process that inspects the file may
   hold the lock briefly, or may have removed the file as a leftover. */
static int hold(const struct output_path *path, int fd)
{
    enum file_lock lock = file_lock_try(fd, true);
    if (lock == FILE_LOCK_NONE) return 0;
    if (lock == FILE_LOCK_HELD && file_lock_has_name(fd, AT_FDCWD, path->temporary)) return 0;
    if (lock != FILE_LOCK_ERROR) errno = ENOENT;
    return -1;
}

/* Makes the temporary file, which must not exist, and locks it. Returns a descriptor, which the
   path owns, or -1 with errno set. */
static int make_file(struct output_path *path)
{
    enum { TRIES = 10 };
    for (int i = 0; i < TRIES; i++) {
        int fd = open(path->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                      path->replaces ? 0600 : 0666);
        if (fd < 0) return -1;
        if (hold(path, fd) == 0) {
            path->is_held = true;
            return path->held_fd = fd;
        }
        int error = errno;
        if (file_lock_has_name(fd, AT_FDCWD, path->temporary)) (void)unlink(path->temporary);
        (void)close(fd);
        errno = error;
        if (error != ENOENT) break;
    }
    return -1;
}

/* Closes our descriptor. The lock ends when the last copy is closed. */
static void let_go(struct output_path *path)
{
    int error = errno;
    if (path->is_held) (void)close(path->held_fd);
    path->is_held = false;
    errno = error;
}

static void lock_path(const struct output_path *path)
{
    if (path->lock) (void)pthread_mutex_lock(path->lock);
}

static void unlock_path(const struct output_path *path)
{
    if (path->lock) (void)pthread_mutex_unlock(path->lock);
}

int output_path_descriptor(const struct output_path *path)
{
    return path->is_held ? path->held_fd : -1;
}

const char *output_path_problem(const struct output_path *path, int error)
{
    return path && path->is_url ? transfers_problem(error) : strerror(error);
}

int output_path_close(const struct output_path *path, hFILE *file)
{
    /* A failed hclose returns 0 if errno is 0, and htslib's S3 does not set errno: without this, a
       refused upload would look like success. */
    errno = EIO;
    int r = path && path->is_url ? transfers_close_output(file) : hclose(file);
    if (r < 0 && errno == 0) errno = EIO;
    return r < 0 ? -1 : 0;
}

void output_path_close_incomplete(const struct output_path *path, hFILE *file)
{
    if (path && path->is_url)
        transfers_abandon_output(path->name, file);
    else
        hclose_abruptly(file);
}

hFILE *output_path_open(struct output_path *path)
{
    if (path->is_url) return transfers_open_output(path->name);
    if (!path->temporary) return hopen(path->name, "w");
    lock_path(path);
    int held = make_file(path), error = errno;
    unlock_path(path);
    /* Closing the file closes a copy of the descriptor; the lock stays. */
    int fd = held >= 0 ? fcntl(held, F_DUPFD_CLOEXEC, 0) : -1;
    hFILE *file = fd >= 0 ? hdopen(fd, "w") : NULL;
    if (file) return file;
    if (held >= 0) error = errno;
    if (fd >= 0) (void)close(fd);
    if (held >= 0) output_path_drop(path);
    errno = error;
    return NULL;
}

/* Opens the file, writes all bytes, and closes it. Returns 0, or an errno, with no file left. */
static int put(struct output_path *path, const void *bytes, size_t n_bytes)
{
    errno = 0;
    hFILE *file = output_path_open(path);
    if (!file) return errno ? errno : EIO;
    errno = 0;
    bool is_written = hwrite(file, bytes, n_bytes) == (ssize_t)n_bytes;
    if (is_written && output_path_close(path, file) == 0) return 0;
    int error = errno ? errno : EIO;
    if (!is_written) output_path_close_incomplete(path, file);
    output_path_drop(path);
    return error;
}

int output_path_save(struct output_path *path, const void *bytes, size_t n_bytes)
{
    int error = put(path, bytes, n_bytes);
    if (!error) return output_path_commit(path);
    disk_space_print_output_error(path->name, error, path->final, n_bytes);
    return -1;
}

int output_path_fail(struct output_path *path, const char *what, int error)
{
    if (path->temporary && disk_space_is_short(error))
        diag_full_disk(path->final, "cannot write %s to '%s': %s; free space, or give %s another "
                       "file", what, path->final, strerror(error), what);
    else
        diag_error("cannot write %s to '%s': %s%s", what,
                   path->name ? path->name : "standard output", strerror(error),
                   diag_advice(error));
    output_path_drop(path);
    return -1;
}

int output_path_print(struct output_path *path, const char *what,
                      int (*print)(FILE *to, const void *arg), const void *arg)
{
    char *text = NULL;
    size_t n_bytes;
    FILE *to = open_memstream(&text, &n_bytes);
    xalloc_require(to != NULL);
    int r = print(to, arg), error = 0;
    xalloc_require(!ferror(to) && fclose(to) == 0);
    if (r == 0 && path->name)
        error = put(path, text, n_bytes);
    else if (r == 0 && path_write_all(STDOUT_FILENO, text, n_bytes) < 0)
        error = errno;
    free(text);
    if (error) return output_path_fail(path, what, error);
    if (r == 0 && output_path_commit(path) == 0) return 0;
    output_path_drop(path);
    return -1;
}

static int sync_directory(const struct output_path *path)
{
    char *dir = path_parent(path->final);
    int r = path_sync_directory(dir), error = errno;
    free(dir);
    errno = error;
    return r;
}

int output_path_sync(const struct output_path *path)
{
    if (!path->temporary || !path->durable || path_sync_file(path->temporary) == 0) return 0;
    diag_error("cannot write '%s' to the disk: %s", path->name, strerror(errno));
    return -1;
}

int output_path_commit(struct output_path *path)
{
    if (!path->temporary) return 0;
    /* Not earlier: --clean recognizes our files by their owner. */
    if (path->replaces && path->is_held) inherit(path, path->held_fd);
    if (output_path_sync(path) < 0) return -1;
    path->is_complete = path->in_set;
    if (path->in_set) return 0;
    lock_path(path);
    int r = rename(path->temporary, path->final), error = errno;
    unlock_path(path);
    if (r == 0) return output_path_named(path);
    diag_error("cannot rename '%s' to '%s': %s", path->temporary, path->final, strerror(error));
    return -1;
}

int output_path_named(struct output_path *path)
{
    path->is_complete = false;
    let_go(path);
    if (!path->durable || sync_directory(path) == 0) return 0;
    diag_error("'%s' is complete, but its name may not be on the disk yet: %s", path->name,
               strerror(errno));
    return -1;
}

int output_path_rename_new(const char *file, const char *name)
{
    struct stat st;
    if (renameat2(AT_FDCWD, file, AT_FDCWD, name, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return -1;
    /* Not all file systems support the flag. */
    if (lstat(name, &st) < 0 && errno == ENOENT) return rename(file, name);
    errno = EEXIST;
    return -1;
}

void output_path_drop(struct output_path *path)
{
    path->is_complete = false;
    if (path->temporary && unlink(path->temporary) < 0 && errno != ENOENT)
        diag_left("warning: cannot remove the incomplete file '%s': %s", path->temporary,
                  strerror(errno));
    let_go(path);
}

void output_path_release(struct output_path *path)
{
    let_go(path);
    free(path->final);
    free(path->temporary);
    *path = (struct output_path){0};
}
