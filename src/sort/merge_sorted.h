/*
 * merge_sorted.h -- --merge: makes one output of inputs that are sorted already.
 *
 * With --markdup all inputs are read first, for the read ends of their records, and so they are to
 * be divided into ranges of the same size. Then come steps: inputs are merged with each other, or
 * the blocks of an input are copied as they are.
 *
 * An input by coordinate that begins after all records before it end, and ends before all records
 * after it begin, needs no merging: its compressed blocks are copied, and its index is shifted. So
 * to put the groups of a genome together costs what a copy of the files costs. The index also says
 * that the input is in order, so an input without one is read, and so is one whose index does not
 * fit the ends of the file.
 *
 * Threads: one. Errors: -1 after a message.
 */
#ifndef ROCKSORT_SORT_MERGE_SORTED_H
#define ROCKSORT_SORT_MERGE_SORTED_H

#include "input/bam_inputs.h"
#include "output/bam_index_file.h"
#include "sort/sort_context.h"

/* Opens the output and writes all inputs into it; the caller closes it. observers: of the inputs,
   if they are read before. *sum_out is set to the sum of the records that were merged; of those
   that were copied it has only the number. */
int merge_sorted(struct sort_context *sort, const struct record_observers *observers,
                 struct content_sum *sum_out);

/* ---- the steps ---- */

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
