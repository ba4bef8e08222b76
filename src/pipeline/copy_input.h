/*
 * copy_input.h -- copies the BGZF blocks of an input into the output, as they are.
 *
 * Each block must begin where the one before it ends, and the file must end with the EOF block;
 * nothing is inflated. The places in the index must be beginnings of blocks: this shows most
 * indexes that are not that of the file.
 *
 * Threads: one.
 */
#ifndef ROCKSORT_PIPELINE_COPY_INPUT_H
#define ROCKSORT_PIPELINE_COPY_INPUT_H

#include "pipeline/merge.h"
#include "pipeline/merge_steps.h"

/* Copies the input of a step, a BAM file with an EOF block, into the first output of the merge. It
   is open. Returns 0, or -1 after a message. */
int copy_input(const struct merge_settings *merge, struct bam_inputs *inputs, const char *path,
               const struct merge_step *step);

#endif
