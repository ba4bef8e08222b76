/*
 * path.h -- splits paths into directory and file name, and syncs files and directories. Splitting
 * looks at the text only and follows no links. Any thread.
 */
#ifndef ROCKSORT_UTIL_PATH_H
#define ROCKSORT_UTIL_PATH_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns the part of a path after its last slash, or the whole path if it has none. */
const char *path_name(const char *path);

/* Removes the last part of a path, in place. Returns false, and changes nothing, if the path is "/"
   or a name without a directory. */
bool path_go_up(char *path);

/* Make the directory of a path if it does not exist, and remove it if it is empty. Allocate
   nothing. path_make_parent returns true if it made the directory. */
bool path_make_parent(const char *path);
void path_remove_parent(const char *path);

/* Returns the directory of a path, "." for a name without one. The caller frees it. */
char *path_parent(const char *path);

/* Returns the lowest directory without a % of a pattern (--split-by) that has a % in its last part
   or in the part before it. The caller frees it. */
char *path_fixed_parent(const char *pattern);

/* True for the name of a file that is a URL. */
bool path_is_url(const char *name);

/* True for the names of standard output. Opening a file by such a name would truncate it. */
bool path_is_standard_output(const char *name);

/* Wait until a file, or the names in a directory, are on the disk. Return 0, or -1 with errno set.
   On a file system that cannot sync directories it succeeds (os/interpose.h). */
int path_sync_file(const char *path);
int path_sync_directory(const char *path);

#endif
