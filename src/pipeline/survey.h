/*
 * survey.h -- what is found out about all records while they are read, before the first one is
 * written: their places, for ranges of pieces, how many pieces there will be, and their tags, for
 * columns.
 *
 * Threads: any number may add at the same time; the rest one, when nobody adds.
 */
#ifndef ROCKSORT_PIPELINE_SURVEY_H
#define ROCKSORT_PIPELINE_SURVEY_H

#include "columns/column_encoder.h"
#include "output/output_format.h"
#include "split/split_plan.h"
#include "split/value_counts.h"

#include <stdbool.h>

struct survey {                 /* the owner destroys all; NULL: not needed */
    struct range_counts *ranges;
    struct value_counts *values;
    struct tag_census *tags;
};

/* True if records must not be written before all of them were added. */
static inline bool survey_is_needed(const struct survey *survey)
{
    return survey->ranges || survey->tags;
}

/* Adds checked records that follow each other. Returns 0, or -1 after a message. */
static inline int survey_add(const struct survey *survey, const uint8_t *from, const uint8_t *to)
{
    range_counts_add(survey->ranges, from, to);
    tag_census_add(survey->tags, from, to);
    if (value_counts_add(survey->values, from, to)) return 0;
    split_plan_refuse(SPLIT_TAG);
    return -1;
}

/* When all records were read: sets the ranges of the pieces and the columns of each output, as far as
   they depend on the survey. The caller destroys the schemas. Returns 0, or -1 after a message. */
int survey_settle(const struct survey *survey, struct split_plan *split,
                  struct column_output columns[MOST_OUTPUTS]);

#endif
