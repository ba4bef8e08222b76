/*
 * orphan_checkpoints.h -- tells the user of checkpoints that earlier, killed attempts of this sort
 * have left.
 *
 * A killed process cannot print that its sort can be resumed. The next sort, mostly the same
 * command again, prints it instead. Failures here are not errors of the sort. Threads: one.
 */
#ifndef ROCKSORT_RESUME_ORPHAN_CHECKPOINTS_H
#define ROCKSORT_RESUME_ORPHAN_CHECKPOINTS_H

#include "resume/checkpoint_file.h"

#include <stddef.h>

struct orphan_checkpoints_sort { /* this one */
    const char *output;         /* its absolute name, with its index's; NULL: standard output */
    const struct checkpoint_input *inputs;
    size_t n_inputs;
};

/* Looks in the parents of the n temporary directories of this sort, and prints a note for each
   checkpoint of an earlier one with the same output or a common input. */
void orphan_checkpoints_tell(const struct orphan_checkpoints_sort *sort,
                             const char *const *directories, size_t n);

#endif
