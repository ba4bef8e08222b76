/*
 * merge_steps.h -- the steps of --merge: which inputs are merged with each other, and whose blocks
 * are copied as they are.
 *
 * An input by coordinate that begins after all records before it end, and ends before all records
 * after it begin, needs no merging: its compressed blocks are copied, and its index is shifted. So
 * to put the pieces of a genome together costs what a copy of the files costs. The index also says
 * that the input is in order, so an input without one is read, and so is one whose index does not
 * fit the ends of the file.
 *
 * Threads: one. Errors: no messages: an input that cannot be copied is merged.
 */
#ifndef ROCKSORT_PIPELINE_MERGE_STEPS_H
#define ROCKSORT_PIPELINE_MERGE_STEPS_H

#include "input/bam_inputs.h"
#include "output/bam_index_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct merge_copy {             /* an input whose blocks are copied */
    uint64_t begin;             /* byte of the file where records begin */
    /* of its index, which must be the same when the blocks are copied */
    uint64_t n_records, last_begin;
};

struct merge_step {
    size_t *inputs;             /* numbers of the inputs that are merged, ascending */
    size_t n_inputs;
    bool copies;                /* of the one input: its blocks are copied */
    struct merge_copy copy;     /* copies */
};

struct merge_steps {
    struct merge_step *steps;   /* in the order of the output */
    size_t n;
};

/* Makes one step of all n inputs. */
void merge_steps_all(size_t n, struct merge_steps *steps);

/* Looks at the ends of all n inputs, which are to be merged by coordinate, and makes the steps.
   shape: that of the output's index, or NULL. */
void merge_steps_plan(const char *const *paths, struct bam_inputs *inputs, size_t n,
                      const struct bam_index_shape *shape, struct merge_steps *steps);

void merge_steps_release(struct merge_steps *steps);

#endif
