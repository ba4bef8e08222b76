/*
 * leftovers.h -- finds checkpoints that earlier runs of the same sort left beside this one's data.
 *
 * A process that is killed cannot say that its sort can be resumed. So the next sort says it, which
 * mostly is the same command again. Failures here are not errors of the sort. Threads: one.
 */
#ifndef ROCKSORT_PIPELINE_LEFTOVERS_H
#define ROCKSORT_PIPELINE_LEFTOVERS_H

#include "store/checkpoint_file.h"

#include <stddef.h>

struct leftovers_sort {         /* this one */
    const char *output;         /* its absolute name, with its index's; NULL: standard output */
    const struct checkpoint_input *inputs;
    size_t n_inputs;
};

/* Looks beside the n temporary directories of this sort, and prints a note for each checkpoint of
   an earlier one with the same output or one of its inputs. */
void leftovers_tell(const struct leftovers_sort *sort, const char *const *directories, size_t n);

#endif
