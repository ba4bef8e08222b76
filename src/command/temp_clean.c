/* temp_clean.c -- see temp_clean.h. */
#include "command/temp_clean.h"

#include "store/checkpoint_dir.h"
#include "store/temp_dir.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/terminal_text.h"
#include "util/xalloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct found {
    const char *state;
    double age_seconds;
    uint64_t n_bytes;
    size_t part, n_parts;       /* of a sort with several temporary directories */
};

/* Adds up the bytes on disk of the files in an open directory and, with `below`, in its
   subdirectories. Closes the directory. */
static uint64_t count_bytes(int dir_fd, bool below)
{
    uint64_t n_bytes = 0;
    DIR *dir = fdopendir(dir_fd);
    if (!dir) {
        (void)close(dir_fd);
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        struct stat st;
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        /* A run that is moved into a database has two names for a moment. */
        n_bytes += (uint64_t)st.st_blocks * 512 / (S_ISREG(st.st_mode) ? st.st_nlink : 1);
        if (!S_ISDIR(st.st_mode) || !below) continue;
        int fd = openat(dirfd(dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) n_bytes += count_bytes(fd, false);
    }
    (void)closedir(dir);
    return n_bytes;
}

static const char *describe_state(const struct checkpoint_dir *dir, struct found *found)
{
    struct checkpoint_record record;
    const char *problem;
    if (!checkpoint_dir_has_record(dir)) return "useless";
    if (checkpoint_dir_read(dir, &record, &problem) < 0) return "damaged";
    found->part = record.directory + 1;
    found->n_parts = record.n_directories;
    const char *state = record.state == CHECKPOINT_LOADED ? "complete"
                        : record.state == CHECKPOINT_LOADING && record.can_read_again ? "resumable"
                                                                                 : "partial";
    checkpoint_record_release(&record);
    return state;
}

static void look_at(const struct checkpoint_dir *dir, struct found *found)
{
    struct stat st;
    *found = (struct found){.n_parts = 1};
    found->state = describe_state(dir, found);
    if (fstat(dir->lock_fd, &st) == 0) found->age_seconds = difftime(time(NULL), st.st_mtime);
    int fd = dup(dir->fd);
    if (fd >= 0) found->n_bytes = count_bytes(fd, true);
}

/* Prints a path without newlines and characters that a terminal would act on. */
static void print_path(const char *path)
{
    char shown[TERMINAL_TEXT_GROWTH * PATH_MAX];
    (void)terminal_text(path, shown, sizeof shown);
    (void)fputs(shown, stdout);
}

static void print_found(const char *path, const struct found *found, const char *done)
{
    char age[32], part[48] = "";
    double hours = found->age_seconds / 3600;
    if (hours >= 48)
        (void)snprintf(age, sizeof age, "%.0f d", hours / 24);
    else if (hours >= 1)
        (void)snprintf(age, sizeof age, "%.1f h", hours);
    else
        (void)snprintf(age, sizeof age, "%.0f min", hours * 60);
    if (found->n_parts > 1)
        (void)snprintf(part, sizeof part, " (part %zu of %zu)", found->part, found->n_parts);
    (void)printf("%-10s %8s %12.1f MB  ", found->state, age, 1e-6 * (double)found->n_bytes);
    print_path(path);
    (void)printf("%s%s\n", part, done);
}

/* True if a process was killed when it had just made the directory, which has no lock yet. */
static bool is_stillborn(const char *path, struct found *found)
{
    enum { LONG_SECONDS = 60 };         /* a sort needs microseconds to make the lock */
    struct stat st;
    bool empty = true;
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 077) != 0)
        return false;
    *found = (struct found){.state = "useless", .n_parts = 1};
    found->age_seconds = difftime(time(NULL), st.st_ctime);
    if (found->age_seconds < LONG_SECONDS) return false;
    DIR *dir = opendir(path);
    if (!dir) return false;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        empty &= strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                 strcmp(entry->d_name, TEMP_DIR_LOCK_NAME ".new") == 0;
    (void)closedir(dir);
    return empty;
}

/* Prints what a directory is, and removes it if told to. Returns 0, or -1 after a message. */
static int remove_and_print(const char *path, bool remove, const struct found *found)
{
    int r = remove ? temp_dir_remove(path) : 0;
    if (r < 0) diag_error("cannot remove '%s': %s", path, strerror(errno));
    print_found(path, found, remove && r == 0 ? ", removed" : "");
    return r;
}

/* Lists one directory if it is one of rocksort's, and removes it if told to. Returns 0, or -1
   after a message. */
static int clean_one(const char *path, bool remove, unsigned *n_found)
{
    struct checkpoint_dir dir;
    struct found found = {.state = "in use", .n_parts = 1};
    const char *problem;
    bool is_left = false;
    int r = checkpoint_dir_open_patiently(path, &dir, &problem);
    if (r == CHECKPOINT_FOREIGN && !is_stillborn(path, &found)) return 0;
    ++*n_found;
    if (r == CHECKPOINT_CLOSED) {
        diag_error("'%s' %s", path, problem);
        return -1;
    }
    if (r == CHECKPOINT_FOREIGN) return remove_and_print(path, remove, &found);
    if (r == CHECKPOINT_BUSY) {
        (void)printf("%-10s %8s %12s     ", found.state, "", "");
        print_path(path);
        (void)putchar('\n');
        return 0;
    }
    look_at(&dir, &found);
    if (remove && !dir.is_locked) {
        diag_error("'%s' is left alone: its file system has no locks, so a sort may use it; remove "
                   "it yourself if none does", path);
        remove = false;
        is_left = true;
    }
    /* It stays locked until it is removed, so that no process resumes it meanwhile. */
    r = remove_and_print(path, remove, &found);
    checkpoint_dir_close(&dir);
    return is_left ? -1 : r;
}

static int clean_below(const char *path, bool remove, unsigned *n_found)
{
    char **names;
    int r = 0;
    ssize_t n = temp_dir_list(path, &names);
    if (n < 0) {
        diag_error("cannot look into '%s': %s", path, strerror(errno));
        return -1;
    }
    for (ssize_t i = 0; i < n; i++) {
        char *each = temp_dir_path(path, names[i]);
        if (clean_one(each, remove, n_found) < 0) r = -1;
        free(each);
        free(names[i]);
    }
    free(names);
    return r;
}

int temp_clean(const char *path, bool remove)
{
    unsigned n_found = 0;
    if (!*path) {
        diag_error("option --clean takes a directory, not ''");
        return -1;
    }
    /* A shell that completes the name of a directory ends it with a slash. */
    char *name = xstrdup(path);
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--) name[n - 1] = '\0';
    int r = temp_dir_is_name(path_name(name)) ? clean_one(name, remove, &n_found) : 0;
    if (r == 0 && n_found == 0) r = clean_below(path, remove, &n_found);
    if (r == 0 && n_found == 0) {
        (void)printf("no temporary data of rocksort in '");
        print_path(path);
        (void)printf("'\n");
    }
    free(name);
    return r;
}
