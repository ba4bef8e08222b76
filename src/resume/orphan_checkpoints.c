/* orphan_checkpoints.c -- see orphan_checkpoints.h. */
#include "resume/orphan_checkpoints.h"

#include "os/temp_dir.h"
#include "resume/checkpoint_dir.h"
#include "util/diag.h"
#include "util/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Pipes, which have no modification time, are never the same: every process has a /dev/fd/63. */
static bool is_same_file(const struct checkpoint_input *a, const struct checkpoint_input *b)
{
    return a->mtime_ns > 0 && a->mtime_ns == b->mtime_ns && a->n_bytes == b->n_bytes &&
           strcmp(a->path, b->path) == 0;
}

/* True if both sorts write the same output or have an input in common. */
static bool is_same_sort(const struct checkpoint_file *own, const struct checkpoint_file *file)
{
    const char *output = own->output.path, *other = file->output.path;
    if (output && other && strcmp(output, other) == 0) return true;
    for (size_t i = 0; i < own->n_inputs; i++)
        for (size_t j = 0; j < file->n_inputs; j++)
            if (is_same_file(&own->inputs[i], &file->inputs[j])) return true;
    return false;
}

/* True if a process holds the lock of the directory. Does not wait like checkpoint_dir_open. */
static bool is_in_use(const char *path)
{
    char name[PATH_MAX];
    if (snprintf(name, sizeof name, "%s/" TEMP_DIR_LOCK_NAME, path) >= (int)sizeof name)
        return false;
    int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (fd >= 0) (void)close(fd);
    return is_held;
}

/* True if no process uses the directory. False if the file system has no locks. */
static bool is_dead(const char *path)
{
    struct checkpoint_dir dir;
    const char *problem;
    if (is_in_use(path) || checkpoint_dir_open(path, &dir, &problem) != CHECKPOINT_OK) return false;
    bool locked = dir.is_locked;
    checkpoint_dir_close(&dir);
    return locked;
}

static void tell(const char *path, const struct checkpoint_file *file)
{
    const char *output = file->output.path, *to = output ? output : "standard output";
    char command[CHECKPOINT_COMMAND_BYTES];
    diag_note("found an interrupted sort of '%s'; to %s: %s", to,
              checkpoint_is_partial(file) ? "write what there is" : "finish it",
              checkpoint_command_of(file, path, command));
}

static void look_at(const struct checkpoint_file *own, const char *path)
{
    struct checkpoint_file file;
    if (checkpoint_dir_peek(path, &file) != CHECKPOINT_OK) return;
    if (file.directory == 0 && is_same_sort(own, &file) && is_dead(path) &&
        !checkpoint_lost_part(&file))
        tell(path, &file);
    checkpoint_file_release(&file);
}

static void look_into(const struct checkpoint_file *own, const char *parent)
{
    struct dirent **entries;
    int n = temp_dir_list(parent, &entries);
    for (int i = 0; i < n; i++) {
        char *path = temp_dir_path(parent, entries[i]->d_name);
        look_at(own, path);
        free(path);
        free(entries[i]);
    }
    if (n >= 0) free(entries);
}

void orphan_checkpoints_tell(const struct checkpoint_file *own)
{
    char *before = NULL;
    if (diag_is_quiet()) return;
    for (size_t i = 0; i < own->n_directories; i++) {
        char *parent = path_parent(own->directories[i]);
        if (!before || strcmp(parent, before) != 0) look_into(own, parent);
        free(before);
        before = parent;
    }
    free(before);
}
