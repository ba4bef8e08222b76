/*
 * input_scan.h -- results of observers that must see the whole input before the first record is
 * written: positions, to choose ranges of groups, and tags, to choose columns.
 *
 * Threads: one, after all records are read.
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

/* True if no record may be written before all are read. */
static inline bool input_scan_is_needed(const struct input_scan *scan)
{
    return scan->ranges || scan->tags;
}

/* After all records are read: sets the ranges of groups and the columns of each output that depend
   on the scan. The caller destroys the schemas. Returns 0, or -1 after a message. */
int input_scan_settle(const struct input_scan *scan, struct split_plan *split,
                      struct column_output columns[MOST_OUTPUTS]);

#endif
