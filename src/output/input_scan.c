/* input_scan.c -- see input_scan.h. */
#include "output/input_scan.h"

int input_scan_settle(const struct input_scan *scan, struct split_plan *split,
                      struct column_output columns[MOST_OUTPUTS])
{
    if (scan->ranges) split_plan_set_ranges(split, scan->ranges);
    for (int i = 0; scan->tags && i < MOST_OUTPUTS; i++) {
        if (!columns[i].request || columns[i].schema) continue;
        columns[i].schema = column_schema_create(columns[i].request->list, scan->tags);
        if (!columns[i].schema) return -1;
    }
    return 0;
}
