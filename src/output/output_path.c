/* output_path.c -- see output_path.h. */
#define _GNU_SOURCE             /* statx */
#include "output/output_path.h"

#include "util/diag.h"
#include "util/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Of the names of temporary files. */
#define WORD ".rocksort."
#define ENDING ".tmp"

/* The name with the links to its directory followed; NULL: errno. */
static char *resolve_directory(const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    char *dir = slash ? strndup(name, (size_t)(slash - name) + 1) : strdup(".");
    char *real = dir ? realpath(dir, NULL) : NULL;
    size_t room = real ? strlen(real) + strlen(base) + 2 : 0;
    char *path = real ? malloc(room) : NULL;
    if (path) (void)snprintf(path, room, "%s/%s", strcmp(real, "/") == 0 ? "" : real, base);
    free(dir);
    free(real);
    return path;
}

/* Where the link at `path` leads, seen from its directory; NULL with errno 0 if it is none. */
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
    int n_dir = target[0] == '/' ? 0 : (int)(strrchr(path, '/') + 1 - path);
    size_t room = (size_t)n_dir + (size_t)n + 1;
    char *next = malloc(room);
    if (next) (void)snprintf(next, room, "%.*s%s", n_dir, path, target);
    return next;
}

/* The name with all links followed, or up to a link of an open file, which is in /proc: /dev/fd/5.
   The file need not be there. NULL: errno. */
static char *resolve(const char *name)
{
    enum { MOST_LINKS = 40 };           /* as in the kernel */
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

/* True if another file can take the place of an existing one: not if others hold that one, and
   shall get what is written, or if it is mounted, as into a container. */
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
    bool can = dir && access(dir, W_OK | X_OK) == 0;
    free(dir);
    return can;
}

/* True if the file is somebody else's in a directory like /tmp, where only its owner may rename or
   remove it. Nor may others overwrite it there, on a system that is set up like most. */
static bool is_kept_by_owner(const char *path, const struct stat *file)
{
    struct stat st;
    char *dir = path_parent(path);
    uid_t me = geteuid();
    bool kept = dir && stat(dir, &st) == 0 && (st.st_mode & S_ISVTX) && me != 0 &&
                st.st_uid != me && file->st_uid != me;
    free(dir);
    return kept;
}

/* A name beside the file; of a long name only as much as leaves room for what is added. */
static char *make_temporary(const char *final)
{
    char tail[64];
    /* In a container every run has the same process id; the time tells them apart. */
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int n_tail = snprintf(tail, sizeof tail, WORD "%ld.%09ld" ENDING, (long)getpid(), now.tv_nsec);
    size_t dir_bytes = (size_t)(strrchr(final, '/') + 1 - final), n = strlen(final);
    size_t most = dir_bytes + NAME_MAX - (size_t)n_tail;
    if (n > most) n = most;
    char *temporary = malloc(n + sizeof tail);
    if (temporary) (void)snprintf(temporary, n + sizeof tail, "%.*s%s", (int)n, final, tail);
    return temporary;
}

/* As input_plain_name, and what htslib does not know. */
static const char *without_scheme(const char *name)
{
    static const char *const schemes[] = {"file://localhost/", "file:///", "file://", "file:"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t n = strlen(schemes[i]);
        bool ends_in_path = i < 2;      /* with its slash */
        if (strncmp(name, schemes[i], n) == 0) return name + n - ends_in_path;
    }
    return name;
}

int output_path_choose(struct output_path *path, const char *name)
{
    struct stat st;
    *path = (struct output_path){.name = name};
    name = without_scheme(name);
    if (strstr(name, "://")) return 0;
    path->name = name;
    bool exists = stat(name, &st) == 0;
    if (exists && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return 0;
    size_t n = strlen(name);
    if (exists) errno = EISDIR;
    /* A name that is too long would show only when the temporary file, whose is not, gets it. */
    bool is_file = n > 0 && name[n - 1] != '/' && !(exists && S_ISDIR(st.st_mode)) &&
                   (exists || errno == ENOENT);
    /* Another file could take the place of one that is protected: not what that is meant to say. */
    if (is_file && exists && access(name, W_OK) < 0) is_file = false;
    if (is_file) {
        path->replaces = exists;
        if (exists) {
            path->mode = st.st_mode & 07777;
            path->uid = st.st_uid;
            path->gid = st.st_gid;
        }
        path->final = resolve(name);
        bool beside = path->final && can_be_replaced(path->final) && can_write_beside(path->final);
        if (!beside && exists) {
            free(path->final);                  /* it can be overwritten, and nothing else */
            path->final = NULL;
            return 0;
        }
        if (beside && exists && is_kept_by_owner(path->final, &st))
            errno = EPERM;
        else if (beside)
            path->temporary = make_temporary(path->final);
    }
    if (path->temporary) return 0;
    diag_error("cannot create '%s': %s", name, strerror(errno));
    output_path_release(path);
    return -1;
}

bool output_path_same(const struct output_path *a, const struct output_path *b)
{
    return a->final && b->final && strcmp(a->final, b->final) == 0;
}

/* Gives a new file the owner and permissions of the one that it will replace, if that can be. */
static void inherit(const struct output_path *path, int fd)
{
    mode_t mode = path->mode;
    /* What a program may do as its owner or group it may not do as another one. */
    if (fchown(fd, path->uid, path->gid) < 0 && fchown(fd, (uid_t)-1, path->gid) < 0)
        mode &= (mode_t)~(S_ISUID | S_ISGID);
    (void)fchmod(fd, mode);
}

/* Makes the temporary file, which nobody else may have made; returns it open, or -1 with errno. */
static int make_file(const struct output_path *path)
{
    int fd = open(path->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                  path->replaces ? 0600 : 0666);
    if (fd >= 0 && path->replaces) inherit(path, fd);
    return fd;
}

static void lock_path(const struct output_path *path)
{
    if (path->lock) (void)pthread_mutex_lock(path->lock);
}

static void unlock_path(const struct output_path *path)
{
    if (path->lock) (void)pthread_mutex_unlock(path->lock);
}

int output_path_create(const struct output_path *path)
{
    if (!path->temporary) return open(path->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    lock_path(path);
    int fd = make_file(path);
    int error = errno;
    unlock_path(path);
    errno = error;
    return fd;
}

hFILE *output_path_open(const struct output_path *path)
{
    if (!path->temporary) return hopen(path->name, "w");
    int fd = output_path_create(path);
    hFILE *file = fd >= 0 ? hdopen(fd, "w") : NULL;
    if (file || fd < 0) return file;
    int error = errno;
    (void)close(fd);
    output_path_drop(path);
    errno = error;
    return NULL;
}

int output_path_make(const struct output_path *path, int (*make)(void *arg), void *arg)
{
    if (!path->temporary) return make(arg);
    lock_path(path);
    int fd = make_file(path);
    int r = fd >= 0 ? make(arg) : -1;
    int error = errno;
    unlock_path(path);
    if (fd >= 0) (void)close(fd);       /* nothing was written here */
    if (fd >= 0 && r < 0) output_path_drop(path);
    errno = error;
    return r;
}

/* Waits until a file, or the names in a directory (flags: O_DIRECTORY), are on the disk. File
   systems that cannot tell of directories say EINVAL. Returns 0, or -1 with errno set. */
static int sync_path(const char *path, int flags)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (fd < 0) return -1;
    int r;
    do r = fsync(fd);
    while (r < 0 && errno == EINTR);
    int error = errno;
    if (close(fd) < 0 && r == 0) return -1;
    errno = error;
    return r < 0 && (error != EINVAL || !(flags & O_DIRECTORY)) ? -1 : 0;
}

static int sync_directory(const struct output_path *path)
{
    char *dir = path_parent(path->final);
    int r = dir ? sync_path(dir, O_DIRECTORY) : -1, error = errno;
    free(dir);
    errno = error;
    return r;
}

int output_path_commit(const struct output_path *path)
{
    if (!path->temporary) return 0;
    if (path->durable && sync_path(path->temporary, 0) < 0) {
        diag_error("cannot write '%s' to the disk: %s", path->name, strerror(errno));
        return -1;
    }
    if (rename(path->temporary, path->final) < 0) {
        diag_error("cannot rename '%s' to '%s': %s", path->temporary, path->final,
                   strerror(errno));
        return -1;
    }
    if (!path->durable || sync_directory(path) == 0) return 0;
    diag_error("'%s' is complete, but its name may not be on the disk yet: %s", path->name,
               strerror(errno));
    return -1;
}

void output_path_drop(const struct output_path *path)
{
    if (!path->temporary || unlink(path->temporary) == 0 || errno == ENOENT) return;
    diag_left("warning: cannot remove the incomplete file '%s': %s", path->temporary,
              strerror(errno));
}

void output_path_remove_leftover(const char *path)
{
    struct stat st;
    size_t n = path ? strlen(path) : 0;
    if (n < sizeof ENDING || strcmp(path + n - sizeof ENDING + 1, ENDING) != 0 ||
        !strstr(path, WORD) || lstat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
        st.st_uid != geteuid())
        return;
    (void)unlink(path);
}

void output_path_release(struct output_path *path)
{
    free(path->final);
    free(path->temporary);
    *path = (struct output_path){0};
}
