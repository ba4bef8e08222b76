/*
 * orphan_checkpoints.h -- finds checkpoints that earlier runs of the same sort left beside this
 * one's data.
 *
 * A process that is killed cannot say that its sort can be resumed. So the next sort says it, which
 * mostly is the same command again. Failures here are not errors of the sort. Threads: one.
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

/* Looks beside the n temporary directories of this sort, and prints a note for each checkpoint of
   an earlier one with the same output or one of its inputs. */
void orphan_checkpoints_tell(const struct orphan_checkpoints_sort *sort,
                             const char *const *directories, size_t n);

#endif
