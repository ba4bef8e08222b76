/*
 * sort_options_also.h -- what --also asks for: a second output of the same records.
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_ALSO_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_ALSO_H

#include "command/sort_options.h"

/* Chooses the format of the second output, if there is one: by its name. Returns 0, or -1 after a
   message. */
int sort_options_choose_also(struct sort_options *o);

#endif
