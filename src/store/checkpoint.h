/*
 * checkpoint.h -- a checkpoint that another process left, opened so that its sort can be finished:
 * all its directories, locked, and what its file says.
 *
 * A sort that is resumed may add directories. It writes the longer list into the directories one
 * after the other, and may die meanwhile. So the longest list that any directory has is the valid
 * one.
 *
 * All directories are needed. If one is lost, such as one that -T put on the disk of another host,
 * the checkpoint is useless, and a message says so.
 *
 * Ownership: a struct checkpoint owns all that it points to. Threads: one at a time.
 * Errors: NULL after a message that says why there is nothing to resume.
 */
#ifndef ROCKSORT_STORE_CHECKPOINT_H
#define ROCKSORT_STORE_CHECKPOINT_H

#include "store/checkpoint_dir.h"

#include <limits.h>

struct checkpoint {
    struct checkpoint_file file;
    struct checkpoint_dir *dirs;        /* in the order of file.directories */
    size_t n_dirs;
};

/* `path`: one of the directories of the checkpoint. */
struct checkpoint *checkpoint_open(const char *path);

/* Removes its directories, which nobody needs any more; warns if that fails. */
void checkpoint_remove(const struct checkpoint *checkpoint);

/* Releases the locks. Accepts NULL. */
void checkpoint_close(struct checkpoint *checkpoint);

/* The first of the other directories of a checkpoint that does not exist, borrowed from the
   checkpoint file; NULL: all exist. */
const char *checkpoint_lost_part(const struct checkpoint_file *file);

/* ---- how to resume a checkpoint ---- */

/* True if a checkpoint can give only a part of the sorted input. */
bool checkpoint_is_partial(const struct checkpoint_file *file);

/* The length of an output's name without ##idx## and the name of its index. */
size_t checkpoint_output_length(const char *output);

enum { CHECKPOINT_COMMAND_BYTES = 8 * PATH_MAX };

struct checkpoint_resuming {
    const char *path;           /* of the checkpoint */
    bool partial;               /* only a part can be written */
    bool has_output;            /* the checkpoint names an output file */
    /* other places than those of the checkpoint, or NULL */
    const char *temp_dir, *files[CHECKPOINT_N_FILES];
};

/* Writes the shell command that resumes a checkpoint. The command does not repeat threads, memory
   and output, because the checkpoint has them. Allocates nothing. Returns text. */
const char *checkpoint_command(const struct checkpoint_resuming *resuming,
                               char text[CHECKPOINT_COMMAND_BYTES]);

#endif
