/*
 * range_counts.h -- counts the bytes of records in windows of the genome, to divide it into ranges
 * that hold about the same.
 *
 * The genome has RANGE_COUNTS_WINDOWS windows and, at the end of each reference, a shorter one. A
 * human genome has windows of 47,000 bases; the counts take less than a megabyte.
 *
 * Threads: any number may add at the same time; the rest is for one, when none adds.
 */
#ifndef ROCKSORT_SPLIT_RANGE_COUNTS_H
#define ROCKSORT_SPLIT_RANGE_COUNTS_H

#include "bam/record_observer.h"

#include <htslib/sam.h>
#include <stddef.h>
#include <stdint.h>

enum { RANGE_COUNTS_WINDOWS = 1 << 16 };

struct range_counts;

struct range_counts *range_counts_create(const sam_hdr_t *header);

/* The counts as an observer of the input, which destroys them. */
struct record_observer *range_counts_observer(struct range_counts *counts);

struct range_place {
    int32_t tid;
    int64_t pos;
};

/* Sets begins[i] to where range i of n begins; the first begins at the first reference. */
void range_counts_divide(const struct range_counts *counts, unsigned n,
                         struct range_place *begins);

#endif
