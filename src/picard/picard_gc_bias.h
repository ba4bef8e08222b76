/*
 * picard_gc_bias.h -- counts GC bias (picard_gc_bias.c); picard_files.h prints it.
 *
 * Errors: -1 after a message. Threads: any, on different counts and windows.
 */
#ifndef ROCKSORT_PICARD_PICARD_GC_BIAS_H
#define ROCKSORT_PICARD_PICARD_GC_BIAS_H

#include "bam/fasta_reference.h"
#include "picard/picard_read.h"

enum { PICARD_GC_BINS = 101 };

/* Any record, after picard_read_turn. */
int picard_count_gc(struct picard_counts *counts, uint32_t cell, const struct picard_read *read,
                    struct fasta_window *window);

/* Adds the windows of a reference that begin in a range to those of each bin. */
int picard_count_windows(struct fasta_window *window, int32_t tid, int64_t from, int64_t to,
                         uint64_t *n_windows);

#endif
