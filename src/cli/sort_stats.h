/*
 * sort_stats.h -- writes the report of a sort as JSON (--stats FILE). doc/stats.md describes every
 * field.
 *
 * Order of calls: report_file_choose before the sort (report_file.h); sort_stats_write after the
 * sort, even if it failed; output_path_release with the path. Errors: -1 after a message.
 */
#ifndef ROCKSORT_CLI_SORT_STATS_H
#define ROCKSORT_CLI_SORT_STATS_H

#include "output/output_path.h"
#include "sort/bam_sort.h"

/* Writes the statistics of a sort that has ended or `failed`. Renames the file when it is
   complete. */
int sort_stats_write(struct output_path *path, const struct sort_settings *settings,
                     const struct sort_report *report, bool failed);

#endif
