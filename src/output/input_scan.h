/*
 * input_scan.h -- what observers find out about all records while they are read, before the first
 * one is written: their places, for ranges of pieces, and their tags, for columns.
 *
 * Threads: one, when all records were read.
 */
#ifndef ROCKSORT_OUTPUT_INPUT_SCAN_H
#define ROCKSORT_OUTPUT_INPUT_SCAN_H

#include "columns/column_file.h"
#include "output/output_format.h"
#include "split/split_plan.h"

#include <stdbool.h>

struct input_scan {             /* borrowed from the list of observers; NULL: not needed */
    struct range_counts *ranges;
    struct tag_schema_scan *tags;
};

/* True if records must not be written before all of them were added. */
static inline bool input_scan_is_needed(const struct input_scan *scan)
{
    return scan->ranges || scan->tags;
}

/* When all records were read: sets the ranges of the pieces and the columns of each output, as far
   as they depend on the survey. The caller destroys the schemas. Returns 0, or -1 after a message.
   */
int input_scan_settle(const struct input_scan *scan, struct split_plan *split,
                      struct column_output columns[MOST_OUTPUTS]);

#endif
