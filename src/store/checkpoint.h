/*
 * checkpoint.h -- a store that another process left, opened to be finished: all its directories,
 * locked, and its record.
 *
 * Ownership: the kept store owns what it shows. Threads: one at a time. Errors: NULL after a
 * message that says why there is nothing to resume.
 */
#ifndef ROCKSORT_STORE_CHECKPOINT_H
#define ROCKSORT_STORE_CHECKPOINT_H

#include "store/checkpoint_dir.h"

struct checkpoint {
    struct checkpoint_record record;
    struct checkpoint_dir *dirs;     /* in the order of the record */
    size_t n_dirs;
};

/* `path`: one of the store's directories. */
struct checkpoint *checkpoint_open(const char *path);

/* Releases the locks; NULL is accepted. */
void checkpoint_close(struct checkpoint *store);

#endif
