/*
 * survey.h -- what observers find out about all records while they are read, before the first one
 * is written: their places, for ranges of pieces, and their tags, for columns.
 *
 * Threads: one, when all records were read.
 */
#ifndef ROCKSORT_PIPELINE_SURVEY_H
#define ROCKSORT_PIPELINE_SURVEY_H

#include "columns/column_file.h"
#include "output/output_format.h"
#include "split/split_plan.h"

#include <stdbool.h>

struct survey {                 /* borrowed from the list of observers; NULL: not needed */
    struct range_counts *ranges;
    struct tag_census *tags;
};

/* True if records must not be written before all of them were added. */
static inline bool survey_is_needed(const struct survey *survey)
{
    return survey->ranges || survey->tags;
}

/* When all records were read: sets the ranges of the pieces and the columns of each output, as far
   as they depend on the survey. The caller destroys the schemas. Returns 0, or -1 after a message.
   */
int survey_settle(const struct survey *survey, struct split_plan *split,
                  struct column_output columns[MOST_OUTPUTS]);

#endif
