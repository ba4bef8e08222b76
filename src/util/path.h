/*
 * path.h -- the directory that a path is in, by its text alone: links are not followed.
 */
#ifndef ROCKSORT_UTIL_PATH_H
#define ROCKSORT_UTIL_PATH_H

#include <stdbool.h>

/* Cuts off the last part of a path, in place; false if there is none to be cut off: of "/", and of
   a name without directory. */
bool path_go_up(char *path);

/* The directory, to be freed, "." for a name without one; NULL without memory. */
char *path_parent(const char *path);

#endif
