/*
 * temp_clean.h -- --clean: lists or removes what interrupted sorts have left: temporary directories
 * (checkpoints) and incomplete outputs.
 */
#ifndef ROCKSORT_CLI_TEMP_CLEAN_H
#define ROCKSORT_CLI_TEMP_CLEAN_H

#include <stdbool.h>

/*
 * Lists leftovers on standard output: those in the directory `path`; or those of the output file
 * `path`, which need not exist; or `path` itself, if it is a temporary directory or an incomplete
 * output. Prints a line with age and size for each, and for a checkpoint a second line with its
 * output and the command that resumes it. Lists outputs that a checkpoint names with it, wherever
 * they are. `remove` removes leftovers that no process uses. Other files are neither listed nor
 * touched. Returns 0, or -1 after a message.
 */
int temp_clean(const char *path, bool remove);

#endif
