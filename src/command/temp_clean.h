/*
 * temp_clean.h -- option --clean: the temporary directories that sorts have left in a place.
 */
#ifndef ROCKSORT_COMMAND_TEMP_CLEAN_H
#define ROCKSORT_COMMAND_TEMP_CLEAN_H

#include <stdbool.h>

/*
 * Lists on standard output the temporary directories of rocksort that are in `path`, or `path`
 * itself if it is one, with age and size. With `remove` it removes those that no process uses.
 * Everything else is neither listed nor touched. Returns 0, or -1 after a message.
 */
int temp_clean(const char *path, bool remove);

#endif
