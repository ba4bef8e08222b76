/*
 * sort_options_internal.h -- what the files of sort_options.h share. Functions return 0, or -1
 * after a message.
 */
#ifndef ROCKSORT_SORT_OPTIONS_INTERNAL_H
#define ROCKSORT_SORT_OPTIONS_INTERNAL_H

#include "sort_options.h"

/* Adds a format option of htslib, "name" or "name=value", to a list. */
int sort_options_add_format(const char *option, const char *text, hts_opt **list);

/* What is written, where, as what: from all options that have a say in it. */
int sort_options_choose_output(struct sort_options *options);

/* Refuses what cannot go together with --resume and --clean; n: arguments that are no options. */
int sort_options_check_modes(const struct sort_options *options, int n);

#endif
