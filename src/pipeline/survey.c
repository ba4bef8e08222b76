/* survey.c -- see survey.h. */
#include "pipeline/survey.h"

int survey_settle(const struct survey *survey, struct split_plan *split,
                  struct column_output columns[MOST_OUTPUTS])
{
    if (survey->ranges) split_plan_set_ranges(split, survey->ranges);
    for (int i = 0; survey->tags && i < MOST_OUTPUTS; i++) {
        if (!columns[i].request || columns[i].schema) continue;
        columns[i].schema = column_schema_create(columns[i].request->list, survey->tags);
        if (!columns[i].schema) return -1;
    }
    return 0;
}
