/* record_problem.c -- see record_problem.h. */
#include "bam/record_problem.h"

#include "util/diag.h"

#include <inttypes.h>

void record_problem_print(const struct record_problem *problem, const char *input)
{
    const char *name = problem->read_name ? problem->read_name : "";
    const char *tag = problem->tag ? problem->tag : "", *space = problem->tag ? " " : "";
    bool has_name = *name != '\0';
    if (problem->record == RECORD_NUMBER_UNKNOWN) {
        diag_error("read '%s' of '%s'%s %s%s%.2s", name, input,
                   problem->is_damaged ? " is damaged:" : "", problem->text, space, tag);
        return;
    }
    diag_error("record %" PRIu64 " of '%s'%s%s%s%s %s%s%.2s", problem->record + 1, input,
               has_name ? " (read '" : "", name, has_name ? "')" : "",
               problem->is_damaged ? " is damaged:" : "", problem->text, space, tag);
}
