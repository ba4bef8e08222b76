/*
 * sort_options_output.h -- options of what is written: htslib's format options, and the names and
 * formats of output and index.
 *
 * Order of calls: the options that add something while they are parsed; sort_options_choose_output
 * once all of them are known. Errors: -1 after a message.
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_OUTPUT_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_OUTPUT_H

#include "command/sort_options.h"

/* Adds a format option of htslib, "name" or "name=value", to a list. `option` is for messages. */
int sort_options_add_format(const char *option, const char *text, hts_opt **list);

/* The same for the output; its text is kept for the checkpoint. */
int sort_options_add_output_format(struct sort_options *options, const char *option,
                                   const char *text);

/* Adds the reference of CRAM for inputs and output. */
int sort_options_add_reference(struct sort_options *options, const char *fasta);

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
/* True for the names of standard output. To open a file by such a name would truncate it. */
bool sort_options_is_standard_output(const char *name);

int sort_options_check_terminal(const struct sort_options *options);

#endif
