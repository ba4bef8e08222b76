/* checkpoint.c -- see checkpoint.h. */
#include "store/checkpoint.h"

#include "store/temp_dir.h"
#include "util/diag.h"
#include "util/words.h"
#include "util/xalloc.h"

#include <htslib/hts.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(const char *path, const char *problem)
{
    diag_error("cannot resume '%s': it %s", path, problem);
    return -1;
}

/* ---- its directories ---- */

/* A checkpoint while it is being opened. */
struct opening {
    struct checkpoint *checkpoint;
    const char *path;           /* the directory that was named, */
    size_t named;               /* and its number */
};

/* True if both lists of directories begin with the same ones. */
static bool have_same_directories(const struct checkpoint_file *a,
                                  const struct checkpoint_file *b)
{
    size_t n = a->n_directories < b->n_directories ? a->n_directories : b->n_directories;
    for (size_t i = 0; i < n; i++)
        if (strcmp(a->directories[i], b->directories[i]) != 0) return false;
    return true;
}

/* Makes n more directories, which are closed. */
static struct checkpoint_dir *extend_dirs(struct checkpoint_dir *dirs, size_t n_dirs, size_t n)
{
    dirs = xrealloc(dirs, n * sizeof *dirs);
    for (size_t i = n_dirs; i < n; i++) dirs[i] = (struct checkpoint_dir){.fd = -1, .lock_fd = -1};
    return dirs;
}

/* The number of a directory in a list; n_directories: it is not there. */
static size_t find_directory(const struct checkpoint_file *file, const char *path)
{
    size_t i = 0;
    while (i < file->n_directories && strcmp(file->directories[i], path) != 0) i++;
    return i;
}

/* Goes over to the checkpoint file of directory i, of a later generation: directories that it
   does not list were dropped. Takes over `later`. */
static int adopt_generation(struct opening *opening, size_t i, struct checkpoint_file *later)
{
    struct checkpoint *checkpoint = opening->checkpoint;
    struct checkpoint_file *file = &checkpoint->file;
    struct checkpoint_dir *dirs = extend_dirs(NULL, 0, later->n_directories);
    size_t named = later->n_directories;
    for (size_t k = 0; k < checkpoint->n_dirs; k++) {
        size_t at = k == i ? later->directory : find_directory(later, file->directories[k]);
        if (k == opening->named) named = at;
        if (at < later->n_directories && !dirs[at].path)
            dirs[at] = checkpoint->dirs[k];
        else
            checkpoint_dir_close(&checkpoint->dirs[k]);
    }
    bool is_dropped = named == later->n_directories;
    if (is_dropped)
        diag_error("cannot resume '%s': its sort goes on without it in '%s'; resume that",
                   opening->path, file->directories[i]);
    free(checkpoint->dirs);
    checkpoint_file_release(file);
    checkpoint->dirs = dirs;
    checkpoint->n_dirs = later->n_directories;
    checkpoint->file = *later;
    opening->named = named;
    return is_dropped ? -1 : 0;
}

/* Reads the checkpoint file of directory i and uses it if it is newer: it is of a later
   generation, lists more directories, or has a later state. The checkpoint files can differ
   because a process writes them one after the other. */
static int compare_files(struct opening *opening, size_t i)
{
    struct checkpoint *checkpoint = opening->checkpoint;
    struct checkpoint_file other, *file = &checkpoint->file;
    const struct checkpoint_dir *dir = &checkpoint->dirs[i];
    const char *problem;
    /* A directory that was full when the sort began has no checkpoint file, and no runs. */
    if (!checkpoint_dir_has_file(dir)) return 0;
    if (checkpoint_dir_read(dir, &other, &problem) < 0) return refuse(dir->path, problem);
    bool is_same_sort = strcmp(other.id, file->id) == 0;
    if (is_same_sort && other.generation > file->generation)
        return adopt_generation(opening, i, &other);
    bool is_older = is_same_sort && other.generation < file->generation;
    if (!is_older && (!is_same_sort || other.directory != i ||
                      !have_same_directories(&other, file))) {
        checkpoint_file_release(&other);
        return refuse(dir->path, "belongs to another sort; sort the input again");
    }
    bool has_more = !is_older && other.n_directories > file->n_directories;
    bool is_later = !is_older && other.n_directories == file->n_directories &&
                    other.state > file->state;
    if (has_more || is_later) {
        struct checkpoint_file earlier = *file;
        *file = other;
        other = earlier;
    }
    checkpoint_file_release(&other);
    if (!has_more) return 0;
    checkpoint->dirs = extend_dirs(checkpoint->dirs, checkpoint->n_dirs, file->n_directories);
    checkpoint->n_dirs = file->n_directories;
    return 0;
}

/* Opens directory i, unless it is lost. */
static int open_part(struct opening *opening, size_t i)
{
    struct checkpoint *checkpoint = opening->checkpoint;
    const char *problem;
    /* A copy, because compare_files may release the checkpoint file that owns the name. */
    char *name = xstrdup(checkpoint->file.directories[i]);
    int r = checkpoint_dir_open_patiently(name, &checkpoint->dirs[i], &problem);
    if (r != CHECKPOINT_OK && r != CHECKPOINT_LOST)
        diag_error("cannot resume '%s': its part '%s' %s", opening->path, name, problem);
    free(name);
    if (r == CHECKPOINT_OK) return compare_files(opening, i);
    return r == CHECKPOINT_LOST ? 0 : -1;
}

static int open_others(struct opening *opening)
{
    struct checkpoint *checkpoint = opening->checkpoint;
    for (size_t i = 0; i < checkpoint->n_dirs; i++) {
        if (checkpoint->dirs[i].path) continue;
        unsigned generation = checkpoint->file.generation;
        if (open_part(opening, i) < 0) return -1;
        if (checkpoint->file.generation != generation) i = (size_t)-1;        /* a new list */
    }
    return 0;
}

/* ---- lost directories ---- */

/* The first directory has the beginning of the chain of runs. Without it nothing can be used. */
static bool can_drop(const struct checkpoint_file *file, size_t i)
{
    return file->state == CHECKPOINT_LOADING && file->can_read_again && i > 0;
}

/* Takes the lost directories out of the list. */
static int drop_lost(struct opening *opening)
{
    struct checkpoint *checkpoint = opening->checkpoint;
    struct checkpoint_file *file = &checkpoint->file;
    size_t n = 0;
    for (size_t i = 0; i < checkpoint->n_dirs; i++) {
        const char *name = file->directories[i];
        if (!checkpoint->dirs[i].path && !can_drop(file, i)) {
            diag_error("cannot resume '%s': its part '%s' does not exist on this host; sort the "
                       "input again", opening->path, name);
            return -1;
        }
        if (!checkpoint->dirs[i].path) {
            diag_warning("'%s' does not exist on this host: what it held of the sort in '%s' is "
                         "not used", name, opening->path);
            continue;
        }
        file->directories[n] = name;
        checkpoint->dirs[n++] = checkpoint->dirs[i];
    }
    checkpoint->has_dropped = n < checkpoint->n_dirs;
    file->generation += checkpoint->has_dropped;
    checkpoint->n_dirs = file->n_directories = n;
    return 0;
}

enum checkpoint_parts checkpoint_look_at_parts(const struct checkpoint_file *file,
                                               const char **part)
{
    enum checkpoint_parts parts = CHECKPOINT_PARTS_USABLE;
    for (size_t i = 0; i < file->n_directories; i++) {
        struct checkpoint_file other;
        if (i == file->directory) continue;
        int r = checkpoint_dir_peek(file->directories[i], &other);
        if (r == CHECKPOINT_LOST && !can_drop(file, i)) {
            parts = CHECKPOINT_PARTS_LOST;
            *part = file->directories[i];
        }
        if (r != CHECKPOINT_OK) continue;
        const char *mine = file->directories[file->directory];
        bool is_dropped = strcmp(other.id, file->id) == 0 &&
                          other.generation > file->generation &&
                          find_directory(&other, mine) == other.n_directories;
        checkpoint_file_release(&other);
        if (!is_dropped) continue;
        *part = file->directories[i];
        return CHECKPOINT_PARTS_DROPPED;
    }
    return parts;
}

/* ---- all of it ---- */

/* Marks all directories as those of this process. */
static int take(const struct opening *opening)
{
    const struct checkpoint *checkpoint = opening->checkpoint;
    const char *problem;
    for (size_t i = 0; i < checkpoint->n_dirs; i++)
        if (checkpoint_dir_take(&checkpoint->dirs[i], &problem) != CHECKPOINT_OK)
            return refuse(checkpoint->dirs[i].path, problem);
    return 0;
}

struct checkpoint *checkpoint_open(const char *path)
{
    const char *problem;
    struct checkpoint_dir dir;
    struct checkpoint_file file;
    if (checkpoint_dir_open_patiently(path, &dir, &problem) < 0) {
        (void)refuse(path, problem);
        return NULL;
    }
    if (checkpoint_dir_read(&dir, &file, &problem) < 0) {
        (void)refuse(path, problem);
        checkpoint_dir_close(&dir);
        return NULL;
    }
    struct checkpoint *checkpoint = xcalloc(1, sizeof *checkpoint);
    struct opening opening = {checkpoint, path, file.directory};
    checkpoint->file = file;
    checkpoint->dirs = extend_dirs(NULL, 0, file.n_directories);
    checkpoint->n_dirs = file.n_directories;
    checkpoint->dirs[file.directory] = dir;
    if (open_others(&opening) == 0 && drop_lost(&opening) == 0 && take(&opening) == 0)
        return checkpoint;
    checkpoint_close(checkpoint);
    return NULL;
}

void checkpoint_remove(const struct checkpoint *checkpoint)
{
    /* The last one first: until the first has lost its file the checkpoint is whole. */
    for (size_t i = checkpoint->n_dirs; i > 0; i--)
        temp_dir_remove_checkpoint(checkpoint->dirs[i - 1].path);
    for (size_t i = 0; i < checkpoint->n_dirs; i++)
        if (temp_dir_remove(checkpoint->dirs[i].path) < 0)
            diag_left("warning: cannot remove the temporary directory '%s': %s",
                      checkpoint->dirs[i].path, strerror(errno));
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    if (!checkpoint) return;
    for (size_t i = 0; i < checkpoint->n_dirs; i++) checkpoint_dir_close(&checkpoint->dirs[i]);
    free(checkpoint->dirs);
    checkpoint_file_release(&checkpoint->file);
    free(checkpoint);
}

/* ---- how to resume a checkpoint ---- */

bool checkpoint_is_partial(const struct checkpoint_file *file)
{
    return file->state == CHECKPOINT_PARTIAL ||
           (file->state == CHECKPOINT_LOADING && !file->can_read_again);
}

size_t checkpoint_output_length(const char *output)
{
    const char *end = strstr(output, HTS_IDX_DELIM);
    return end ? (size_t)(end - output) : strlen(output);
}

enum { OPTION_BYTES = 32 };

/* Appends an option and its argument, unless that is NULL. Leaves out what does not fit. */
static void put_option(const char *option, const char *argument, char text[CHECKPOINT_COMMAND_BYTES])
{
    enum { ROOM_BYTES = CHECKPOINT_COMMAND_BYTES - OPTION_BYTES };
    size_t at = strlen(text);
    if (!argument || at > ROOM_BYTES - OPTION_BYTES) return;
    (void)snprintf(text + at, OPTION_BYTES, "%s", option);
    words_quote(argument, text, ROOM_BYTES);
}

const char *checkpoint_command(const struct checkpoint_resuming *resuming,
                               char text[CHECKPOINT_COMMAND_BYTES])
{
    (void)strcpy(text, "samtools rocksort");
    put_option(" --resume ", resuming->path, text);
    if (resuming->partial) put_option(" --partial", "", text);
    put_option(" -T ", resuming->temp_dir, text);
    const char *output = resuming->files[CHECKPOINT_OUTPUT];
    put_option(" -o ", output || resuming->has_output ? output : "FILE", text);
    put_option(" --also ", resuming->files[CHECKPOINT_ALSO], text);
    for (int i = 0; i < CHECKPOINT_N_COUNTS; i++) {
        char option[OPTION_BYTES];
        (void)snprintf(option, sizeof option, " --%s ", checkpoint_count_word(i));
        put_option(option, resuming->files[CHECKPOINT_COUNTS + i], text);
    }
    return text;
}
