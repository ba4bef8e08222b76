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
#include <unistd.h>

static int refuse(const char *path, const char *problem)
{
    diag_error("cannot resume '%s': it %s", path, problem);
    return -1;
}

/* ---- its directories ---- */

/* Has a checkpoint_dir for each directory that the checkpoint file lists. New ones are closed. */
static void extend_dirs(struct checkpoint *checkpoint)
{
    size_t n = checkpoint->file.n_directories;
    checkpoint->dirs = xrealloc(checkpoint->dirs, n * sizeof *checkpoint->dirs);
    for (; checkpoint->n_dirs < n; checkpoint->n_dirs++)
        checkpoint->dirs[checkpoint->n_dirs] = (struct checkpoint_dir){.fd = -1, .lock_fd = -1};
}

/* Reads the checkpoint file of directory i and uses it if it is newer: it lists more directories, or
   has a later state. The checkpoint files can differ because a process writes them one after the
   other. */
static int compare_files(struct checkpoint *checkpoint, size_t i)
{
    struct checkpoint_file other, *file = &checkpoint->file;
    const struct checkpoint_dir *dir = &checkpoint->dirs[i];
    const char *problem;
    /* A directory that was full when the sort began has no checkpoint file, and no runs. */
    if (!checkpoint_dir_has_file(dir)) return 0;
    if (checkpoint_dir_read(dir, &other, &problem) < 0) return refuse(dir->path, problem);
    if (strcmp(other.id, file->id) != 0 ||
        strcmp(other.directories[other.directory], file->directories[i]) != 0) {
        checkpoint_file_release(&other);
        return refuse(dir->path, "belongs to another sort; sort the input again");
    }
    if (other.n_directories > file->n_directories ||
        (other.n_directories == file->n_directories && other.state > file->state)) {
        struct checkpoint_file earlier = *file;
        *file = other;
        other = earlier;
    }
    checkpoint_file_release(&other);
    extend_dirs(checkpoint);
    return 0;
}

/* Opens directory i. */
static int open_part(struct checkpoint *checkpoint, const char *path, size_t i)
{
    const char *problem;
    /* A copy, because compare_files may release the checkpoint file that owns the name. */
    char *name = xstrdup(checkpoint->file.directories[i]);
    int r = checkpoint_dir_open_patiently(name, &checkpoint->dirs[i], &problem);
    if (r == CHECKPOINT_LOST) problem = "does not exist on this host; sort the input again";
    if (r != CHECKPOINT_OK)
        diag_error("cannot resume '%s': its part '%s' %s", path, name, problem);
    free(name);
    return r == CHECKPOINT_OK ? compare_files(checkpoint, i) : -1;
}

static int open_others(struct checkpoint *checkpoint, const char *path)
{
    for (size_t i = 0; i < checkpoint->n_dirs; i++)
        if (!checkpoint->dirs[i].path && open_part(checkpoint, path, i) < 0) return -1;
    return 0;
}

const char *checkpoint_lost_part(const struct checkpoint_file *file)
{
    for (size_t i = 0; i < file->n_directories; i++)
        if (i != file->directory && access(file->directories[i], F_OK) < 0 && errno == ENOENT)
            return file->directories[i];
    return NULL;
}

/* ---- all of it ---- */

/* Marks all directories as those of this process. */
static int take(const struct checkpoint *checkpoint)
{
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
    checkpoint->file = file;
    extend_dirs(checkpoint);
    checkpoint->dirs[file.directory] = dir;
    if (open_others(checkpoint, path) == 0 && take(checkpoint) == 0) return checkpoint;
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
