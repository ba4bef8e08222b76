/*
 * bam_verify.h -- `samtools rocksort --verify`: is each file in the order that it claims to have?
 */
#ifndef ROCKSORT_COMMAND_BAM_VERIFY_H
#define ROCKSORT_COMMAND_BAM_VERIFY_H

#include "pipeline/bam_sort.h"

/*
 * Verifies each input of the settings by itself. Prints a line on standard output for each that is
 * in order, with its checksum, and says on standard error where others are not, or why they cannot
 * be read. Returns 0 if all are in order, else -1.
 */
int bam_verify_run(const struct sort_settings *settings);

#endif
