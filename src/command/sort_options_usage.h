/*
 * sort_options_usage.h -- the usage text.
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_USAGE_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_USAGE_H

#include "command/sort_options.h"

#include <stdio.h>

/* Prints the common options, in at most 48 lines; with help_all, every option. */
void sort_options_print_usage(const struct sort_options *options, FILE *to);

#endif
