/*
 * leftovers.c -- what earlier sorts of the same have left where this one has its temporary
 * data. A process that is killed cannot say that its sort could be finished; the next one, which
 * mostly is the same command once more, says it. Whatever fails here is no error.
 */
#include "pipeline/pipeline_internal.h"

#include "store/checkpoint_dir.h"
#include "store/temp_dir.h"
#include "util/diag.h"
#include "util/path.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Length of an output's name without that of its index. */
static size_t output_length(const char *name)
{
    const char *end = strstr(name, HTS_IDX_DELIM);
    return end ? (size_t)(end - name) : strlen(name);
}

/* Pipes, which have no time of change, are never the same: /dev/fd/63 is any process's. */
static bool is_same_file(const struct checkpoint_input *a, const struct checkpoint_input *b)
{
    return a->mtime_ns > 0 && a->mtime_ns == b->mtime_ns && a->n_bytes == b->n_bytes &&
           strcmp(a->path, b->path) == 0;
}

/* `output`: of this sort; NULL: standard output. */
static bool is_same_sort(const struct pipeline *p, const char *output,
                         const struct checkpoint_record *record)
{
    const char *other = record->output.path;
    size_t n = output ? output_length(output) : 0;
    if (output && other && output_length(other) == n && memcmp(output, other, n) == 0) return true;
    for (size_t i = 0; i < p->n_input_files; i++)
        for (size_t j = 0; j < record->n_inputs; j++)
            if (is_same_file(&p->input_files[i], &record->inputs[j])) return true;
    return false;
}

/* Where there are no locks nobody knows. */
static bool is_dead(const char *path)
{
    struct checkpoint_dir dir;
    const char *problem;
    if (checkpoint_dir_open(path, &dir, &problem) != CHECKPOINT_OK) return false;
    bool locked = dir.is_locked;
    checkpoint_dir_close(&dir);
    return locked;
}

static void tell(const char *path, const struct checkpoint_record *record)
{
    const char *output = record->output.path, *to = output ? output : "standard output";
    int n = (int)output_length(to);
    char *real = realpath(path, NULL);
    if (real) path = real;
    if (record->state == CHECKPOINT_LOADED || (record->state == CHECKPOINT_LOADING && record->can_read_again))
        diag_note("an earlier sort to '%.*s' has left its runs; to write it: samtools rocksort "
                  "--resume %s%s", n, to, path, output ? "" : " -o FILE");
    else
        diag_note("an earlier sort to '%.*s' has left runs; to write these: samtools rocksort "
                  "--partial --resume %s%s", n, to, path, output ? "" : " -o FILE");
    free(real);
}

/* One that lies in several directories is told of once, by the first that has its record: those
   that were full from the beginning have none. */
static bool is_first_part(const struct checkpoint_record *record)
{
    bool is_first = true;
    for (size_t i = 0; i < record->directory && is_first; i++) {
        char *path = temp_dir_path(record->directories[i], SCRATCH_RECORD_NAME);
        is_first = path && access(path, F_OK) != 0;
        free(path);
    }
    return is_first;
}

static void look_at(const struct pipeline *p, const char *output, const char *path)
{
    struct checkpoint_record record;
    if (checkpoint_dir_peek(path, &record) != CHECKPOINT_OK) return;
    if (is_first_part(&record) && is_same_sort(p, output, &record) && is_dead(path))
        tell(path, &record);
    checkpoint_record_release(&record);
}

static void look_into(const struct pipeline *p, const char *output, const char *parent)
{
    char **names;
    ssize_t n = temp_dir_list(parent, &names);
    for (ssize_t i = 0; i < n; i++) {
        char *path = temp_dir_path(parent, names[i]);
        if (path) look_at(p, output, path);
        free(path);
        free(names[i]);
    }
    if (n >= 0) free(names);
}

void tell_leftovers(const struct pipeline *p)
{
    if (diag_is_quiet()) return;
    char *output = p->settings->output ? resume_output_name(p) : NULL, *before = NULL;
    for (size_t i = 0; i < p->n_scratch_paths; i++) {
        char *parent = path_parent(p->scratch_paths[i]);
        if (parent && (!before || strcmp(parent, before) != 0)) look_into(p, output, parent);
        free(before);
        before = parent;
    }
    free(before);
    free(output);
}
