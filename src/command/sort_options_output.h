/*
 * sort_options_output.h -- options of what is written: the names and formats of output and index.
 *
 * Order of calls: the options that take something while they are parsed; sort_options_choose_output
 * once all of them are known. Errors: -1 after a message.
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_OUTPUT_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_OUTPUT_H

#include "command/sort_options.h"

/* Takes the engine that --deflate names. */
int sort_options_take_engine(struct sort_options *options, const char *name);

/* Takes the engine of a checkpoint if none was given, and if this build and the level, which is
   known, allow it. */
void sort_options_adopt_engine(struct sort_options *options, enum bgzf_engine engine);

/* True if one of --flagstat, --idxstats and --coverage was given. */
bool sort_options_ask_for_counts(const struct sort_options *options);

/* Chooses output, format, level and index from all options that concern them. */
int sort_options_choose_output(struct sort_options *options);

/* Refuses to write BAM, CRAM or compressed SAM to a terminal. To be called before a sort, with all
   options chosen. */
int sort_options_check_terminal(const struct sort_options *options);

#endif
