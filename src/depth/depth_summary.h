/*
 * depth_summary.h -- counts positions by depth, and prints the lines of mosdepth's summary and
 * distribution files.
 *
 * Structs start as {0}; that gives depth_counts a least depth of 0, which mosdepth 0.3.3 prints for
 * all but the counts that it clears. Memory: 8 bytes for each depth, up to 400,000. Threads: one at
 * a time.
 */
#ifndef ROCKSORT_DEPTH_DEPTH_SUMMARY_H
#define ROCKSORT_DEPTH_DEPTH_SUMMARY_H

#include "depth/depth_runs.h"
#include "util/byte_buffer.h"

struct depth_counts {
    uint64_t n_positions, sum;
    uint32_t least, most;
    uint64_t *n_of_depth;
    size_t n_depths, depths_room;
};

void depth_counts_clear(struct depth_counts *counts);

/* Adds a depth of n positions to the distribution. */
void depth_counts_add_depth(struct depth_counts *counts, int64_t depth, uint64_t n);

/* Adds a run to the sums. */
void depth_counts_add_run(struct depth_counts *counts, const struct depth_run *run);

/* Adds other counts. */
void depth_counts_add(struct depth_counts *to, const struct depth_counts *counts);

/* Appends the line of a reference, after the head if the text is the first one. */
void depth_counts_print(const struct depth_counts *counts, const char *name, int n_decimals,
                        struct byte_buffer *to);

/* Appends the lines of the distribution: the part of the positions with at least each depth. */
void depth_counts_print_distribution(const struct depth_counts *counts, const char *name,
                                     int n_decimals, struct byte_buffer *to);

void depth_counts_release(struct depth_counts *counts);

#endif
