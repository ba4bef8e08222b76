/*
 * report_file.h -- files beside the output and its index that say something about a sort: those of
 * --stats, --flagstat, --idxstats, --coverage, and the statistics of --markdup.
 *
 * Order of calls: choose before the sort; write after it, or before the output gets its name;
 * release. Errors: -1 after a message. One thread at a time.
 */
#ifndef ROCKSORT_CLI_REPORT_FILE_H
#define ROCKSORT_CLI_REPORT_FILE_H

#include "cli/sort_options.h"
#include "output/output_set.h"
#include "sort/sort_report.h"

#include <stdio.h>

/*
 * Chooses where to write: to the file `name`, or to standard output for "-"; then the path stays
 * {0}. Refuses a file that the sort reads or writes, or with --split-by could write, and one that
 * was chosen for another kind of counts. `option`, such as "--stats", is for messages.
 */
int report_file_choose(struct output_path *path, const char *option, const char *name,
                       const struct sort_settings *settings);

/* Chooses where all counts go that the options ask for. The options own the paths, and the sort
   writes these files. */
int report_file_choose_counts(struct sort_options *options);

/* Calls put(to, arg), which writes to a stream of the file; put need not look for errors of it. The
   file gets its name when it is complete. `what`, such as "statistics", is for messages. */
int report_file_write(struct output_path *path, const char *what,
                      void (*put)(FILE *to, const void *arg), const void *arg);

/* ---- the reports of --markdup: -s, -f, --json and --metrics ---- */

struct markdup_report {
    struct output_path statistics, metrics;
};

/* Chooses where the reports go that the options ask for. Checkpoints of the sort know them then.
   stats: where --stats goes, from which they are kept apart; NULL: it is not wanted. */
int markdup_report_choose(struct markdup_report *paths, struct sort_settings *settings,
                          const struct output_path *stats);

/* Writes those that have temporary files, and adds them to the set; or, with NULL, the others. */
int markdup_report_write(struct markdup_report *paths, const struct sort_settings *settings,
                         const struct sort_report *report, struct output_set *set);

void markdup_report_release(struct markdup_report *paths);

#endif
