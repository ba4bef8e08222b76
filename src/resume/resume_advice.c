/* resume_advice.c -- see resume_advice.h. */
#include "resume/resume_advice.h"

#include "os/disk_space.h"
#include "os/temp_dir.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- earlier attempts ---- */

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
    if (file.directory == 0 && is_same_sort(own, &file) && checkpoint_dir_is_dead(path) &&
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

/* ---- another disk ---- */

/* Moves all files of the full disk to one other directory: the one with the most free space among
   those in which users expect files. Skips file systems in memory. */
struct choice {
    const struct checkpoint_file *file;
    const char *files[CHECKPOINT_N_FILES];      /* output files, or patterns with a %; or NULL */
    dev_t full;                 /* the disk that is full */
    bool moves[CHECKPOINT_N_FILES];
    char *best;                 /* NULL: none yet */
    dev_t device;               /* of `best`; later places on it are skipped */
    uint64_t free_bytes;
};

/* The part of a file name or pattern after its existing directory. */
static const char *name_in(const char *output, const char *dir)
{
    return strcmp(dir, ".") == 0 ? output : output + strlen(dir) + (strcmp(dir, "/") != 0);
}

/* Returns the new name of file i in `dir`, which the caller frees. A report gets its kind before
   its name if another file is called the same: all reports of a sample may be. */
static char *moved(const struct choice *choice, int i, const char *dir)
{
    const char *const *files = choice->files;
    const char *name = path_name(files[i]), *kind = NULL;
    for (int k = 0; k < CHECKPOINT_N_FILES && i > 0 && !kind; k++)
        if (k != i && files[k] && strcmp(path_name(files[k]), name) == 0)
            kind = i < CHECKPOINT_COUNTS ? "other" : count_kind_name(i - CHECKPOINT_COUNTS);
    if (kind) return xasprintf("%s/%s-%s", dir, kind, name);
    char *parent = path_fixed_parent(files[i]);
    char *whole = temp_dir_path(dir, name_in(files[i], parent));
    free(parent);
    return whole;
}

/* True if the disk of `path` is full, or has less than n_bytes left. */
static bool lacks_space(const struct choice *choice, const char *path, uint64_t n_bytes)
{
    struct disk_space space;
    return disk_space_look(path, &space) &&
           (space.device == choice->full || space.free_bytes < n_bytes);
}

/* Finds the files whose disk lacks space for them. An output is about as large as the input. */
static void look_at_files(struct choice *choice)
{
    uint64_t input_bytes = 0;
    for (size_t i = 0; i < choice->file->n_inputs; i++)
        input_bytes += choice->file->inputs[i].n_bytes;
    for (int i = 0; i < CHECKPOINT_N_FILES; i++) {
        const char *file = choice->files[i];
        char *dir = file && !path_is_url(file) ? path_fixed_parent(file) : NULL;
        uint64_t n_bytes = i < CHECKPOINT_COUNTS ? input_bytes : 0;
        choice->moves[i] = dir && lacks_space(choice, dir, n_bytes);
        free(dir);
    }
}

/* True if the name of a file in the directory begins with `name`, which may be a prefix. */
static bool begins_a_name(const char *dir, const char *name)
{
    bool found = false;
    DIR *entries = opendir(dir);
    for (const struct dirent *entry; entries && !found && (entry = readdir(entries));)
        found = strncmp(entry->d_name, name, strlen(name)) == 0;
    if (entries) (void)closedir(entries);
    return found;
}

/* True if a moved file would replace another one in the directory. */
static bool would_replace(const struct choice *choice, const char *dir)
{
    bool would = false;
    for (int i = 0; i < CHECKPOINT_N_FILES && !would; i++) {
        char *name = choice->moves[i] ? moved(choice, i, dir) : NULL;
        would = name && (i < CHECKPOINT_COUNTS ? access(name, F_OK) == 0
                                               : begins_a_name(dir, path_name(name)));
        free(name);
    }
    return would;
}

static void consider(struct choice *choice, const char *place)
{
    char *dir = place ? realpath(place, NULL) : NULL;
    struct disk_space space;
    struct statfs fs;
    if (!dir || access(dir, W_OK | X_OK) != 0 || statfs(dir, &fs) != 0 ||
        fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC ||
        !disk_space_look(dir, &space) || space.device == choice->full ||
        (choice->best && space.device == choice->device) ||
        space.free_bytes <= choice->free_bytes || would_replace(choice, dir)) {
        free(dir);
        return;
    }
    free(choice->best);
    choice->best = dir;
    choice->device = space.device;
    choice->free_bytes = space.free_bytes;
}

static void consider_parent(struct choice *choice, const char *path)
{
    char *dir = path && !path_is_url(path) ? path_fixed_parent(path) : NULL;
    consider(choice, dir);
    free(dir);
}

static void consider_all(struct choice *choice)
{
    const struct checkpoint_file *file = choice->file;
    for (int i = 0; i < CHECKPOINT_N_FILES; i++) consider_parent(choice, choice->files[i]);
    for (size_t i = 0; i < file->n_directories; i++) consider_parent(choice, file->directories[i]);
    const char *const places[] = {getenv("TMPDIR"), ".", getenv("HOME"), "/var/tmp", "/tmp"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) consider(choice, places[i]);
}

/* True if a temporary directory is on the full disk. */
static bool temp_lacks_space(const struct choice *choice)
{
    bool lacks = false;
    for (size_t i = 0; i < choice->file->n_directories && !lacks; i++)
        lacks = lacks_space(choice, choice->file->directories[i], 0);
    return lacks;
}

/* The argument of the option that gives file i its new name; the caller frees it. */
static char *argument(const struct choice *choice, int i)
{
    char *name = moved(choice, i, choice->best);
    if (i < CHECKPOINT_COUNTS) return name;
    char *text =
        count_request_text(choice->file->output.count_options[i - CHECKPOINT_COUNTS], name);
    free(name);
    return text;
}

struct other_disk other_disk_choose(const struct checkpoint_file *file, bool writes_runs)
{
    struct other_disk other = {.note = ""};
    struct choice choice = {.file = file};
    struct disk_space space;
    char size[SIZE_TEXT_BYTES];
    const char *place = diag_full_place();
    if (!place || !disk_space_look(place, &space)) return other;
    choice.full = space.device;
    choice.files[CHECKPOINT_OUTPUT] = file->output.path;
    choice.files[CHECKPOINT_ALSO] = file->output.also;
    for (int i = 0; i < COUNT_N_KINDS; i++)
        choice.files[CHECKPOINT_COUNTS + i] = file->output.counts[i];
    look_at_files(&choice);
    consider_all(&choice);
    (void)strcpy(other.note, " when there is space");
    if (choice.best) {
        for (int i = 0; i < CHECKPOINT_N_FILES; i++)
            if (choice.moves[i]) other.places.files[i] = argument(&choice, i);
        if (writes_runs && temp_lacks_space(&choice)) other.places.temp_dir = xstrdup(choice.best);
        (void)snprintf(other.note, sizeof other.note, " in '%s', which has %s free", choice.best,
                       size_format(choice.free_bytes, size));
    }
    free(choice.best);
    return other;
}

void other_disk_release(struct other_disk *other)
{
    free(other->places.temp_dir);
    for (int i = 0; i < CHECKPOINT_N_FILES; i++) free(other->places.files[i]);
}
