/*
 * path.h -- the directory and the file name in a path. Works on the text alone: links are not
 * followed. Any thread.
 */
#ifndef ROCKSORT_UTIL_PATH_H
#define ROCKSORT_UTIL_PATH_H

#include <stdbool.h>

/* The last part of a path: what comes after the last slash, or the whole path if it has none. */
const char *path_name(const char *path);

/* Removes the last part of a path, in place. Returns false, and changes nothing, if the path is "/"
   or a name without a directory. */
bool path_go_up(char *path);

/* Returns the directory of a path, "." for a name without one. The caller frees it. */
char *path_parent(const char *path);

#endif
