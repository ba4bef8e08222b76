/*
 * report_file.h -- chooses and writes report files: those of --report, --flagstat, --idxstats,
 * --coverage, and the statistics of --markdup.
 *
 * Order of calls: choose all and check before the sort; write after it, or before the output is
 * renamed; release.
 * Errors: -1 after a message. One thread at a time.
 */
#ifndef ROCKSORT_CLI_REPORT_FILE_H
#define ROCKSORT_CLI_REPORT_FILE_H

#include "cli/sort_options.h"
#include "output/output_set.h"
#include "sort/sort_report.h"

#include <stdio.h>

/* Chooses the file `name`, or standard output for "-", for which the path stays {0}; also for NULL.
   `option`, such as "--report", is for messages. */
int report_file_choose(struct output_path *path, const char *option, const char *name);

/* Chooses the files of all requested counts. The options own the paths; the sort writes the
   files. */
int report_file_choose_counts(struct sort_options *options);

/* Calls put(to, arg), which writes to a stream of the file, may ignore write errors, and returns 0.
   Renames the file when it is complete. `what`, such as "the statistics", is for messages. */
int report_file_write(struct output_path *path, const char *what,
                      int (*put)(FILE *to, const void *arg), const void *arg);

/* Writes the report of a sort that has ended or `failed`, as JSON (--report; doc/report.md
   describes every field). */
int sort_report_write_json(struct output_path *path, const struct sort_settings *settings,
                           const struct sort_report *report, bool failed);

/* ---- the reports of --markdup: -s, -f, --json and --metrics ---- */

struct markdup_report {
    struct output_path statistics, metrics;
};

/* Chooses the files of the requested reports, and sets them in the settings for the checkpoint. */
int markdup_report_choose(struct markdup_report *paths, struct sort_settings *settings);

/* Refuses a name given to two outputs or reports, or to an input and anything but the output; with
   --split-by also a report that a group could overwrite. json: the file of --report. */
int report_files_check(const struct sort_options *options, const struct output_path *json,
                       const struct markdup_report *duplicates);

/* Writes the reports with temporary files, and adds them to the set; or, with set NULL, the
   others. */
int markdup_report_write(struct markdup_report *paths, const struct sort_settings *settings,
                         const struct sort_report *report, struct output_set *set);

void markdup_report_release(struct markdup_report *paths);

#endif
