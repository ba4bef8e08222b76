/*
 * sort_options_split.h -- the option --split-by, and what it means to other options.
 *
 * Errors: -1 after a message.
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_SPLIT_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_SPLIT_H

#include "command/sort_options.h"

/* Takes the argument of --split-by. By tag, it changes the order: pieces come one after the other,
   and records within them in the order that was asked for. */
int sort_options_choose_split(struct sort_options *options);

/* The same for a sort that is resumed, whose order is that of the checkpoint. `split_by`: what the
   checkpoint says, or NULL. */
int sort_options_adopt_split(struct sort_options *options, const char *split_by);

/* Checks the names of output and index, once they are known; with --split-by only. */
int sort_options_check_pattern(const struct sort_options *options);

/* The order of records within a file of the output. */
enum sort_order sort_options_file_order(const struct sort_options *options);

#endif
