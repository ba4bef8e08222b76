/*
 * sort_options_columns.h -- which columns the output has, as Arrow or Parquet.
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_COLUMNS_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_COLUMNS_H

#include "command/sort_options.h"

/* Once the format is known: checks --columns and chooses the compression. Returns 0, or -1 after a
   message. */
int sort_options_choose_columns(struct sort_options *options);

#endif
