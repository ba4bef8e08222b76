/*
 * store_clean.h -- option --clean: the temporary directories that runs have left in a place.
 */
#ifndef ROCKSORT_COMMAND_STORE_CLEAN_H
#define ROCKSORT_COMMAND_STORE_CLEAN_H

#include <stdbool.h>

/*
 * Lists on standard output the temporary directories of rocksort that are in `path`, or `path`
 * itself if it is one, with age and size; with `remove` removes those that no process uses. What is
 * not ours is neither listed nor touched. Returns 0, or -1 after a message.
 */
int store_clean(const char *path, bool remove);

#endif
