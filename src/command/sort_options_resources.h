/*
 * sort_options_resources.h -- how many threads and how much memory a sort gets, and the codec of
 * its temporary data: as the options say, as a checkpoint has it, or as fits the machine (auto).
 *
 * Order of calls: adopt, with --resume; finish, when the inputs are known.
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_RESOURCES_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_RESOURCES_H

#include "command/sort_options.h"

/* Takes from a checkpoint what was not given. */
void sort_options_adopt_resources(struct sort_options *options,
                                  const struct checkpoint_resources *resources);

/* Sets threads and memory of the settings, and warns of memory that the machine does not have.
   Returns 0, or -1 after a message. */
int sort_options_finish_resources(struct sort_options *options);

#endif
