/* side_file.c -- see side_file.h. */
#include "command/side_file.h"

#include "util/diag.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert((int)CHECKPOINT_N_COUNTS == (int)COUNT_N_KINDS, "checkpoints keep all counts");

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* True if standard output goes to the file or pipe of this name. */
static bool is_standard_output(const char *name)
{
    struct stat x, y;
    return stat(name, &x) == 0 && fstat(STDOUT_FILENO, &y) == 0 && !S_ISCHR(x.st_mode) &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Returns 1 if a path and `name` are the same regular file, which need not exist; 0 if not; -1
   after a message. */
static int stands_for(const struct output_path *path, const char *name)
{
    struct output_path other;
    if (!name) return 0;
    if (is_same_file(path->name, name)) return 1;
    if (output_path_choose(&other, name) < 0) return -1;
    bool same = output_path_same(path, &other);
    output_path_release(&other);
    return same;
}

/* True if a file of counts goes to the same place, whose path is NULL for standard output. */
static bool has_count_file(const struct sort_settings *settings, const struct output_path *path)
{
    for (int i = 0; i < COUNT_N_KINDS; i++) {
        const struct count_file *file = &settings->count_files[i];
        if (!file->is_wanted || &file->path == path) continue;
        if (!path->name && !file->path.name) return true;
        if (path->name && file->path.name &&
            (output_path_same(path, &file->path) || is_same_file(path->name, file->path.name)))
            return true;
    }
    return false;
}

int side_file_choose(struct output_path *path, const char *option, const char *name,
                     const struct sort_settings *settings)
{
    *path = (struct output_path){0};
    if (strcmp(name, "-") == 0) {
        if (settings->output && !settings->sum_only && !has_count_file(settings, path)) return 0;
        diag_error("%s - would mix with other text on standard output: name a file", option);
        return -1;
    }
    if (strstr(name, "://")) {
        diag_error("option %s takes the name of a file, not '%s'", option, name);
        return -1;
    }
    if (output_path_choose(path, name) < 0) return -1;
    bool prints = settings->sum_only || !settings->output;
    int same = prints ? is_standard_output(path->name) : stands_for(path, settings->output);
    if (same == 0 && !settings->sum_only) same = stands_for(path, settings->index_path);
    for (size_t i = 0; same == 0 && i < settings->n_inputs; i++)
        same = is_same_file(path->name, settings->inputs[i]);
    if (same == 0) same = has_count_file(settings, path);
    if (same > 0)
        diag_error("%s '%s' is an input or output of the sort: name another file", option, name);
    if (same != 0) output_path_release(path);
    return same != 0 ? -1 : 0;
}

int side_file_choose_counts(struct sort_options *o)
{
    for (int i = 0; i < COUNT_N_KINDS; i++) {
        struct count_file *file = &o->count_files[i];
        char option[32];
        if (!o->counts[i]) continue;
        (void)snprintf(option, sizeof option, "--%s", count_kind_name((enum count_kind)i));
        if (side_file_choose(&file->path, option, o->counts[i], &o->settings) < 0) return -1;
        file->is_wanted = true;
        o->settings.asked_output.counts[i] = file->path.final;
    }
    return 0;
}
