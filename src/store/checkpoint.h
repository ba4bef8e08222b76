/*
 * checkpoint.h -- a checkpoint that another process left, opened so that its sort can be finished:
 * all its directories, locked, and what its file says.
 *
 * Ownership: a struct checkpoint owns all that it points to. Threads: one at a time.
 * Errors: NULL after a message that says why there is nothing to resume.
 */
#ifndef ROCKSORT_STORE_CHECKPOINT_H
#define ROCKSORT_STORE_CHECKPOINT_H

#include "store/checkpoint_dir.h"

struct checkpoint {
    struct checkpoint_record record;
    struct checkpoint_dir *dirs;        /* in the order of the record */
    size_t n_dirs;
};

/* `path`: one of the directories of the checkpoint. */
struct checkpoint *checkpoint_open(const char *path);

/* Releases the locks. Accepts NULL. */
void checkpoint_close(struct checkpoint *checkpoint);

#endif
