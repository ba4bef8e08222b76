/*
 * checkpoint.h -- a checkpoint that another process left, opened so that its sort can be finished:
 * all its directories, locked, and what its file says.
 *
 * A sort that is resumed may add directories. It writes the longer list into the directories one
 * after the other, and may die meanwhile. So the longest list that one of them has is the one that
 * counts.
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
    struct checkpoint_dir *dirs;        /* in the order of the record */
    size_t n_dirs;
};

/* `path`: one of the directories of the checkpoint. */
struct checkpoint *checkpoint_open(const char *path);

/* Releases the locks. Accepts NULL. */
void checkpoint_close(struct checkpoint *checkpoint);

/* ---- how to go on with one ---- */

/* True if only a part of the input can be had from a checkpoint. */
bool checkpoint_is_partial(const struct checkpoint_record *record);

enum { CHECKPOINT_COMMAND_BYTES = 4 * PATH_MAX + 64 };

/* Writes the command that goes on with the checkpoint in `path`, for a shell. The sort's own
   threads, memory and output are in the checkpoint; `has_output`: it names an output, too.
   Allocates nothing. Returns text. */
const char *checkpoint_command(const char *path, bool partial, bool has_output,
                               char text[CHECKPOINT_COMMAND_BYTES]);

#endif
