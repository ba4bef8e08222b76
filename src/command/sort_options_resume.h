/*
 * sort_options_resume.h -- options that go on with a checkpoint: which ones contradict it, and what
 * is taken from it.
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_RESUME_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_RESUME_H

#include "command/sort_options.h"

/* Refuses options that cannot be used together with --resume, --clean, --verify or --plan. n_args
   is the number of arguments that are no options. Returns 0, or -1 after a message. */
int sort_options_check_modes(const struct sort_options *options, int n_args);

/* Takes from a checkpoint what was not given, and refuses what contradicts it. The checkpoint
   outlives the options. Returns 0, or -1 after a message. */
int sort_options_adopt(struct sort_options *options, const struct checkpoint *checkpoint);

/* After adopt: true if the options ask for other files than those that the checkpoint names, or for
   the same ones made in another way. */
bool sort_options_ask_for_more(const struct sort_options *options,
                               const struct checkpoint *checkpoint);

#endif
