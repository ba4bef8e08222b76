/*
 * survey.h -- what is found out about all records while they are read, before the first one is
 * written: their places, for ranges of pieces, and their tags, for columns.
 *
 * Threads: any number may add at the same time; the rest one, when nobody adds.
 */
#ifndef ROCKSORT_PIPELINE_SURVEY_H
#define ROCKSORT_PIPELINE_SURVEY_H

#include "columns/column_encoder.h"
#include "output/output_format.h"
#include "split/split_plan.h"

#include <stdbool.h>

struct survey {                 /* the owner destroys both; NULL: not needed */
    struct range_counts *ranges;
    struct tag_census *tags;
};

static inline bool survey_is_needed(const struct survey *survey)
{
    return survey->ranges || survey->tags;
}

/* Adds checked records that follow each other. */
static inline void survey_add(const struct survey *survey, const uint8_t *from, const uint8_t *to)
{
    range_counts_add(survey->ranges, from, to);
    tag_census_add(survey->tags, from, to);
}

/* When all records were read: sets the ranges of the pieces and the columns of each output, as far as
   they depend on the survey. The caller destroys the schemas. Returns 0, or -1 after a message. */
int survey_settle(const struct survey *survey, struct split_plan *split,
                  struct column_output columns[MOST_OUTPUTS]);

#endif
