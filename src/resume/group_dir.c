/* group_dir.c -- see group_dir.h. */
#include "resume/group_dir.h"

#include "os/temp_dir.h"
#include "output/output_journal.h"
#include "output/output_path.h"
#include "resume/checkpoint_dir.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/words.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX ".groups"

bool group_dir_is_name(const char *name, size_t n_output)
{
    size_t n = strlen(PREFIX);
    return n_output >= n && memcmp(name, PREFIX, n) == 0 && (n_output == n || name[n] == '_');
}

/* The prefix of the directory's name: absolute, because it goes into the checkpoint. Adds a number
   if a directory of this name exists, because temp_dir_create would make the new one in that. The
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

int group_dir_make(struct group_dir *dir, const char *beside, pthread_mutex_t *lock)
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

/* Returns a directory, beside a group, with complete groups of a killed sort that were not renamed,
   or NULL. */
static char *find_unfinished(const char *name)
{
    char *found = NULL, *parent = path_parent(name);
    struct dirent **entries;
    int n = temp_dir_list(parent, &entries);
    for (int i = 0; i < n; i++) {
        char *path = temp_dir_path(parent, entries[i]->d_name);
        char *journal = xasprintf("%s/" OUTPUT_JOURNAL_OF_GROUPS, path);
        if (!found && access(journal, F_OK) == 0) found = xstrdup(path);
        free(journal);
        free(path);
        free(entries[i]);
    }
    if (n >= 0) free(entries);
    free(parent);
    return found;
}

static void tell_of_name(const char *name)
{
    char command[PATH_MAX + 64] = "";
    char *unfinished = find_unfinished(name);
    if (unfinished) {
        words_quote(unfinished, command, sizeof command);
        diag_error("'%s' exists, and its set is not finished; to finish it: samtools rocksort "
                   "--clean --yes %s", name, command);
    } else {
        diag_error("'%s' exists: remove it, or give the groups another name with -o", name);
    }
    free(unfinished);
}

int group_dir_check_name(const char *name)
{
    struct stat st;
    if (lstat(name, &st) == 0) {
        tell_of_name(name);
        return -1;
    }
    if (errno == ENOENT) return 0;
    diag_error("cannot create '%s': %s; give another name with -o", name, strerror(errno));
    return -1;
}

int group_dir_try_name(const char *dir, const char *name, pthread_mutex_t *lock)
{
    char *file = xasprintf("%s/try", dir);
    (void)pthread_mutex_lock(lock);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0) (void)close(fd);
    if (!error && output_path_rename_new(file, name) < 0) error = errno;
    if (fd >= 0 && unlink(error ? file : name) < 0 && !error) error = errno;
    (void)pthread_mutex_unlock(lock);
    free(file);
    return error;
}

void group_dir_remove(struct group_dir *dir)
{
    if (!dir->path) return;
    if (temp_dir_remove(dir->path) < 0)
        diag_left("warning: cannot remove '%s': %s", dir->path, strerror(errno));
    if (dir->lock_fd >= 0) (void)close(dir->lock_fd);
    free(dir->path);
    *dir = (struct group_dir){0};
}

void group_dir_drop_leftover(const char *path)
{
    struct checkpoint_dir dir;
    const char *problem;
    size_t n_output;
    if (!path || !temp_dir_is_name(path_name(path), &n_output) ||
        checkpoint_dir_open(path, &dir, &problem) != CHECKPOINT_OK)
        return;
    if (!checkpoint_dir_has_file(path)) (void)temp_dir_remove(path);
    checkpoint_dir_close(&dir);
}
