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

/* Looks in the parents of the temporary directories of this sort, and prints a note for each
   checkpoint of an earlier one with the same output or a common input. */
void orphan_checkpoints_tell(const struct checkpoint_file *own);

#endif
