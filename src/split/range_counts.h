/*
 * range_counts.h -- counts the bytes of records in windows of the genome, to divide it into ranges
 * of about equal size.
 *
 * The genome is divided into RANGE_COUNTS_WINDOWS windows, plus a shorter one at the end of each
 * reference. Windows of a human genome have 47,000 bases; the counts take less than a megabyte.
 *
 * Threads: several may add records at the same time; divide once none does.
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

/* Returns an observer of the input that owns the counts. */
struct record_observer *range_counts_observer(struct range_counts *counts);

struct range_place {
    int32_t tid;
    int64_t pos;
};

/* Sets begins[i] to the start of range i of n; the first is the start of the first reference. */
void range_counts_divide(const struct range_counts *counts, unsigned n,
                         struct range_place *begins);

#endif
