/*
 * path.h -- the directory and the file name in a path, from the text alone: links are not followed;
 * the names in a directory; and syncing paths. Any thread.
 */
#ifndef ROCKSORT_UTIL_PATH_H
#define ROCKSORT_UTIL_PATH_H

#include <stdbool.h>
#include <sys/types.h>

/* The last part of a path: what comes after the last slash, or the whole path if it has none. */
const char *path_name(const char *path);

/* Removes the last part of a path, in place. Returns false, and changes nothing, if the path is "/"
   or a name without a directory. */
bool path_go_up(char *path);

/* Makes the directory of a path if it is not there. Returns true if it was made. The second one
   removes it if it is empty. Allocate nothing. */
bool path_make_parent(const char *path);
void path_remove_parent(const char *path);

/* Returns the directory of a path, "." for a name without one. The caller frees it. */
char *path_parent(const char *path);

/* The same for a pattern that has a % in its last part or in that before: the lowest directory
   without one. */
char *path_fixed_parent(const char *pattern);

/* True for the name of a file that is a URL. */
bool path_is_url(const char *name);

/* True for the names of standard output. To open a file by such a name would truncate it. */
bool path_is_standard_output(const char *name);

/* Lists the names in a directory for which `accept` returns true, sorted. The caller frees each
   name, and the array. Returns how many there are, or -1 with errno set. */
ssize_t path_list(const char *path, bool (*accept)(const char *name, const void *arg),
                  const void *arg, char ***names);

/* Wait until a file, or the names in a directory, are on the disk. Return 0, or -1 with errno set.
   path_sync_directory succeeds also on a file system that cannot sync directories. */
int path_sync_file(const char *path);
int path_sync_directory(const char *path);

#endif
