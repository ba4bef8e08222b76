/* survey.c -- see survey.h. */
#include "pipeline/survey.h"

int survey_settle(const struct survey *survey, struct split_plan *split,
                  struct column_output *columns)
{
    if (survey->ranges) split_plan_set_ranges(split, survey->ranges);
    if (!survey->tags) return 0;
    columns->schema = column_request_schema(columns->request, survey->tags);
    return columns->schema ? 0 : -1;
}
