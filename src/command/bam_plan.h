/*
 * bam_plan.h -- `samtools rocksort --plan`: prints what a sort with these options would do.
 *
 * It reads the beginning of the input, and looks at the machine and, unless all fits into memory,
 * at the temporary disks. It sorts nothing, and leaves no file: the directory that it makes to look
 * at a disk is removed again.
 */
#ifndef ROCKSORT_COMMAND_BAM_PLAN_H
#define ROCKSORT_COMMAND_BAM_PLAN_H

#include "command/sort_options.h"

/* Prints lines "key: value" on standard output. Returns 0, or -1 after a message. */
int bam_plan_run(const struct sort_options *options);

#endif
