/*
 * leftovers.h -- what earlier sorts of the same have left where this one has its temporary data.
 *
 * A process that is killed cannot say that its sort can be resumed. The next sort, which mostly is
 * the same command once more, says it. Whatever fails here is no error. Threads: one.
 */
#ifndef ROCKSORT_PIPELINE_LEFTOVERS_H
#define ROCKSORT_PIPELINE_LEFTOVERS_H

#include "store/checkpoint_record.h"

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
