/*
 * duplicate_report.h -- the reports of --markdup: -s, -f, --json and --metrics.
 *
 * Order of calls: choose before the sort; write before the output gets its name, and after the sort,
 * if it succeeded; release. Errors: -1 after a message. One thread at a time.
 */
#ifndef ROCKSORT_COMMAND_DUPLICATE_REPORT_H
#define ROCKSORT_COMMAND_DUPLICATE_REPORT_H

#include "command/sort_options.h"
#include "output/output_set.h"
#include "pipeline/sort_report.h"

struct duplicate_report {
    struct output_path statistics, metrics;
};

/* Chooses where the reports go that the options ask for. Checkpoints of the sort know them then.
   stats: where --stats goes, from which they are kept apart; NULL: it is not wanted. */
int duplicate_report_choose(struct duplicate_report *paths, struct sort_settings *settings,
                            const struct output_path *stats);

/* Writes those that have temporary files, and adds them to the set; or, with NULL, the others. */
int duplicate_report_write(struct duplicate_report *paths, const struct sort_settings *settings,
                           const struct sort_report *report, struct output_set *set);

void duplicate_report_release(struct duplicate_report *paths);

#endif
