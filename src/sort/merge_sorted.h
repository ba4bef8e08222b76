/*
 * merge_sorted.h -- --merge: merges sorted inputs into one output, or copies their compressed
 * blocks.
 *
 * The work is a list of steps: each merges some inputs, or copies the blocks of one input.
 *
 * If an input sorted by coordinate overlaps no other input, its compressed blocks are copied, and
 * its index is shifted. So joining the groups of a genome costs as much as copying the files. The
 * index also shows that the input is in order. An input without an index, or whose index does not
 * fit the ends of the file, is merged.
 *
 * Threads: one. Errors: -1 after a message.
 */
#ifndef ROCKSORT_SORT_MERGE_SORTED_H
#define ROCKSORT_SORT_MERGE_SORTED_H

#include "input/bam_inputs.h"
#include "output/bam_index_reader.h"
#include "sort/sort_context.h"

/* Opens the output and writes all inputs into it; the caller closes it. Copied records are only
   counted in the sums. */
int merge_sorted(struct sort_context *sort);

/* ---- the steps ---- */

struct merge_step {
    size_t *inputs;             /* numbers of the inputs, ascending */
    size_t n_inputs;
    bool copies;                /* copy the blocks of the only input */
    uint64_t begin;             /* copies: offset in the file of the first block of records */
};

struct merge_steps {
    struct merge_step *steps;   /* in output order */
    size_t n;
};

/* Makes the steps of a merge by coordinate, from first and last record of each of the n inputs.
   inputs NULL: none is copied, and there is one step. shape: of the output's index, or NULL. */
void merge_steps_plan(const char *const *paths, struct bam_inputs *inputs, size_t n,
                      const struct bam_index_shape *shape, struct merge_steps *steps);

void merge_steps_release(struct merge_steps *steps);

#endif
