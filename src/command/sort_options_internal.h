/*
 * sort_options_internal.h -- what the files of sort_options.h share; all functions return 0, or -1
 * after a message.
 *
 * sort_options.c         parsing: one option after the other, then what they mean together
 * sort_options_usage.c   the usage text
 * sort_options_output.c  what is written: htslib's format options, names of output and index
 * sort_options_resume.c  options that go on with a store
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_INTERNAL_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_INTERNAL_H

#include "command/sort_options.h"

#define DEFAULT_MEMORY "768M"           /* a thread, as samtools sort */

/* sort_options_output.c */

/* Adds a format option of htslib, "name" or "name=value", to a list. */
int sort_options_add_format(const char *option, const char *text, hts_opt **list);

/* Adds one for the output, and remembers its text. */
int sort_options_add_output_format(struct sort_options *options, const char *option,
                                   const char *text);

/* Adds the reference of CRAM for inputs and output. */
int sort_options_add_reference(struct sort_options *options, const char *fasta);

/* What is written, where, as what: from all options that have a say in it. */
int sort_options_choose_output(struct sort_options *options);

/* sort_options_resume.c */

/* Refuses what cannot go together with --resume and --clean; n: arguments that are no options. */
int sort_options_check_modes(const struct sort_options *options, int n);

#endif
