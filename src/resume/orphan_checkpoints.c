/* orphan_checkpoints.c -- see orphan_checkpoints.h. */
#include "resume/orphan_checkpoints.h"

#include "os/temp_dir.h"
#include "resume/checkpoint_dir.h"
#include "util/diag.h"
#include "util/path.h"

#include <stdlib.h>
#include <string.h>

/* Pipes, which have no modification time, are never the same: every process has a /dev/fd/63. */
static bool is_same_file(const struct checkpoint_input *a, const struct checkpoint_input *b)
{
    return a->mtime_ns > 0 && a->mtime_ns == b->mtime_ns && a->n_bytes == b->n_bytes &&
           strcmp(a->path, b->path) == 0;
}

/* True if both sorts write the same output or have an input in common. */
static bool is_same_sort(const struct orphan_checkpoints_sort *sort,
                         const struct checkpoint_file *file)
{
    const char *output = sort->output, *other = file->output.path;
    size_t n = output ? checkpoint_output_length(output) : 0;
    if (output && other && checkpoint_output_length(other) == n && memcmp(output, other, n) == 0)
        return true;
    for (size_t i = 0; i < sort->n_inputs; i++)
        for (size_t j = 0; j < file->n_inputs; j++)
            if (is_same_file(&sort->inputs[i], &file->inputs[j])) return true;
    return false;
}

/* True if no process uses the directory. False if the file system has no locks. */
static bool is_dead(const char *path)
{
    struct checkpoint_dir dir;
    const char *problem;
    if (checkpoint_dir_open(path, &dir, &problem) != CHECKPOINT_OK) return false;
    bool locked = dir.is_locked;
    checkpoint_dir_close(&dir);
    return locked;
}

static void tell(const char *path, const struct checkpoint_file *file)
{
    const char *output = file->output.path, *to = output ? output : "standard output";
    char command[CHECKPOINT_COMMAND_BYTES];
    diag_note("an earlier sort to '%.*s' has left %s: %s", (int)checkpoint_output_length(to), to,
              checkpoint_is_partial(file) ? "runs; to write these" : "its runs; to write it",
              checkpoint_command_of(file, path, command));
}

static void look_at(const struct orphan_checkpoints_sort *sort, const char *path)
{
    struct checkpoint_file file;
    if (checkpoint_dir_peek(path, &file) != CHECKPOINT_OK) return;
    if (file.directory == 0 && is_same_sort(sort, &file) && is_dead(path) &&
        !checkpoint_lost_part(&file))
        tell(path, &file);
    checkpoint_file_release(&file);
}

static void look_into(const struct orphan_checkpoints_sort *sort, const char *parent)
{
    struct dirent **entries;
    int n = temp_dir_list(parent, &entries);
    for (int i = 0; i < n; i++) {
        char *path = temp_dir_path(parent, entries[i]->d_name);
        look_at(sort, path);
        free(path);
        free(entries[i]);
    }
    if (n >= 0) free(entries);
}

void orphan_checkpoints_tell(const struct orphan_checkpoints_sort *sort,
                             const char *const *directories, size_t n)
{
    char *before = NULL;
    if (diag_is_quiet()) return;
    for (size_t i = 0; i < n; i++) {
        char *parent = path_parent(directories[i]);
        if (!before || strcmp(parent, before) != 0) look_into(sort, parent);
        free(before);
        before = parent;
    }
    free(before);
}
