/*
 * bam_plan.h -- `samtools rocksort --plan`: prints what a sort with these options would do, from
 * the beginning of the input, the machine and, unless all fits into memory, the temporary disks.
 * Sorts nothing, and leaves no file: what is needed to look at a disk is removed again.
 */
#ifndef ROCKSORT_COMMAND_BAM_PLAN_H
#define ROCKSORT_COMMAND_BAM_PLAN_H

#include "command/sort_options.h"

/* Prints lines "key: value" on standard output. Returns 0, or -1 after a message. */
int bam_plan_run(const struct sort_options *options);

#endif
