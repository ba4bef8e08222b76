/*
 * sort_options_parse.h -- from argv to the settings of a sort.
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_PARSE_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_PARSE_H

#include "command/sort_options.h"

/*
 * Takes all options and arguments, after sort_options_init. With --help, --version and --clean the
 * settings are not complete; with --resume they are after sort_options_adopt. Returns 0, or -1
 * after a message.
 */
int sort_options_parse(struct sort_options *options, int argc, char **argv);

#endif
