/*
 * sort_options_format.h -- format options of htslib, for inputs and outputs. Errors: -1 after a
 * message.
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_FORMAT_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_FORMAT_H

#include "command/sort_options.h"

/* Takes nthreads out of a list: htslib would start threads of its own, besides those of -@. */
void sort_options_drop_threads(hts_opt **list);

/* A copy of a format option, or of a list of them with commas between. The file of a reference gets
   its whole path, since a sort may be resumed from another directory. The caller frees it. */
char *sort_options_whole_paths(const char *options, bool is_list);

/* Adds a format option of htslib, "name" or "name=value", to a list. `option` is for messages. */
int sort_options_add_format(const char *option, const char *text, hts_opt **list);

/* The same for the output; its text is kept for the checkpoint. */
int sort_options_add_output_format(struct sort_options *options, const char *option,
                                   const char *text);

/* Adds the reference of CRAM for inputs and output. */
int sort_options_add_reference(struct sort_options *options, const char *fasta);

#endif
