/*
 * decide_chains.h -- decides partitions where all reads that are near each other count, not only
 * the best one (duplicates/duplicate_chains.h): for tags and barcodes with errors.
 *
 * The views of a partition are gathered in memory, or a part of its places at a time. A place of
 * which the views do not fit is set apart, and decided when all others are, with all memory; if
 * that is not enough, by sorting on the disk (large_chains.h).
 */
#ifndef ROCKSORT_PIPELINE_DECIDE_CHAINS_H
#define ROCKSORT_PIPELINE_DECIDE_CHAINS_H

#include "pipeline/decider.h"

/* Has the duplicates of all partitions marked, and their tags written down. Returns 0, or -1 after
   a message and crew_fail. */
int decide_chains(struct decision *decision);

#endif
