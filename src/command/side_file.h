/*
 * side_file.h -- where the files go that a sort writes besides its output and index: those of
 * --stats, --flagstat, --idxstats and --coverage.
 */
#ifndef ROCKSORT_COMMAND_SIDE_FILE_H
#define ROCKSORT_COMMAND_SIDE_FILE_H

#include "command/sort_options.h"

/*
 * Chooses where to write the file `name` of an option, such as "--stats": to that file, or to
 * standard output for "-"; then the path stays {0}. Refuses a file that the sort reads or writes,
 * and one that was chosen for another kind of counts. Returns 0, or -1 after a message. The caller
 * releases the path.
 */
int side_file_choose(struct output_path *path, const char *option, const char *name,
                     const struct sort_settings *settings);

/* Chooses where all counts go that the options ask for. The options own the paths. */
int side_file_choose_counts(struct sort_options *options);

#endif
