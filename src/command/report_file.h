/*
 * report_file.h -- files beside the output and its index that say something about a sort: those of
 * --stats, --flagstat, --idxstats, --coverage, and the statistics of --markdup.
 *
 * Order of calls: report_file_choose before the sort; report_file_write after it;
 * output_path_release with the path. Errors: -1 after a message. One thread at a time.
 */
#ifndef ROCKSORT_COMMAND_REPORT_FILE_H
#define ROCKSORT_COMMAND_REPORT_FILE_H

#include "command/sort_options.h"

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

/* A report whose place was chosen. */
struct chosen_report {
    const char *option;         /* for messages */
    const struct output_path *path;     /* NULL: it is not wanted */
};

/* Refuses two reports that would go to one place. Both may be unwanted. */
int report_file_keep_apart(const struct chosen_report *a, const struct chosen_report *b);

/* Calls put(to, arg), which writes to a stream of the file; put need not look for errors of it. The
   file gets its name when it is complete. `what`, such as "statistics", is for messages. */
int report_file_write(struct output_path *path, const char *what,
                      void (*put)(FILE *to, const void *arg), const void *arg);

#endif
