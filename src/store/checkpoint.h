/*
 * checkpoint.h -- a checkpoint that another process left, opened so that its sort can be finished:
 * all its directories, locked, and what its file says.
 *
 * A sort that is resumed may add directories. It writes the longer list into the directories one
 * after the other, and may die meanwhile. So the longest list that any directory has is the valid
 * one.
 *
 * Ownership: a struct checkpoint owns all that it points to. Threads: one at a time.
 * Errors: NULL after a message that says why there is nothing to resume.
 */
#ifndef ROCKSORT_STORE_CHECKPOINT_H
#define ROCKSORT_STORE_CHECKPOINT_H

#include "store/checkpoint_dir.h"

#include <limits.h>

struct checkpoint {
    struct checkpoint_record record;
    struct checkpoint_dir *dirs;        /* in the order of record.directories */
    size_t n_dirs;
};

/* `path`: one of the directories of the checkpoint. */
struct checkpoint *checkpoint_open(const char *path);

/* Releases the locks. Accepts NULL. */
void checkpoint_close(struct checkpoint *checkpoint);

/* ---- how to resume a checkpoint ---- */

/* True if a checkpoint can give only a part of the sorted input. */
bool checkpoint_is_partial(const struct checkpoint_record *record);

enum { CHECKPOINT_COMMAND_BYTES = 4 * PATH_MAX + 64 };

/* Writes the shell command that resumes the checkpoint in `path`. The command does not repeat
   threads, memory and output, because the checkpoint has them. `has_output`: the checkpoint names
   an output file. Allocates nothing. Returns text. */
const char *checkpoint_command(const char *path, bool partial, bool has_output,
                               char text[CHECKPOINT_COMMAND_BYTES]);

#endif
