/*
 * temp_dir.h -- creates, lists, syncs and removes temporary directories of sorts.
 *
 * If the argument of -T is a directory, the temporary directory is made in it; else the argument is
 * the prefix of its name, as in samtools. Without -T it is made beside the output file; if the
 * output is standard output, a device, a pipe or a URL, it is made in $TMPDIR or the working
 * directory. It has mode 0700 and a unique name.
 *
 * Order of calls: check, before a long sort; create; the others. Any thread.
 */
#ifndef ROCKSORT_OS_TEMP_DIR_H
#define ROCKSORT_OS_TEMP_DIR_H

#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* Files in it that are not part of a database: the lock, and the checkpoint file
   (checkpoint_dir.h). */
#define TEMP_DIR_LOCK_NAME "LOCK"
#define TEMP_DIR_CHECKPOINT_NAME "STORE"

/* Makes the directory. `prefix`: the argument of -T, or NULL. `output`: the output file; NULL:
   standard output. Returns the path, which the caller frees, or NULL after a message. */
char *temp_dir_create(const char *prefix, const char *output);

/* Opens a file without a name, to write and to read, where the directory would be made; it vanishes
   when it is closed. Stores the path of its directory, which the caller frees. Returns the
   descriptor, or -1 after a message. */
int temp_dir_open_file(const char *prefix, const char *output, char **parent);

/* Returns a hint to print after strerror's text when an operation on such a file fails. */
const char *temp_dir_advice(int error);

/* A directory's name may begin with the name of the output, cut to this many bytes, because a file
   name has at most 255. */
enum { TEMP_DIR_BASE_BYTES = 200 };

/* Checks whether such a directory can be made, without making it; `prefix` is not NULL. Returns 0,
   or -1 after a message. */
int temp_dir_check(const char *prefix);

/* True if a name ends in rocksort.NUMBER.XXXXXX, as those of temporary directories do. Stores how
   many bytes before that are the name of an output. */
bool temp_dir_is_name(const char *name, size_t *n_output);

/* Lists the names in a directory that temp_dir_is_name accepts, like scandir: sorted; the caller
   frees each entry, and the array. Returns how many there are, or -1 with errno set. */
int temp_dir_list(const char *path, struct dirent ***entries);

/* Returns the path of a name in the directory `parent`; the caller frees it. */
char *temp_dir_path(const char *parent, const char *name);

/* Removes the directory and all files in it: the checkpoint file first and the lock last, so that
   the rest of an interrupted removal is locked, and is not a checkpoint. Accepts NULL. Tries again
   if files appear meanwhile. Allocates nothing. Returns 0, or -1 with errno set. */
int temp_dir_remove(const char *path);

/* Removes only the checkpoint file: the directories are a checkpoint no longer. */
void temp_dir_remove_checkpoint(const char *path);

/* Syncs the directory and all files in it, until *stop. Returns 0, or -1 with errno set. */
int temp_dir_sync(const char *path, const atomic_bool *stop);

/* Removes what a killed process left beside the databases: runs that were not ingested, and the
   file of disk_probe.h. */
void temp_dir_tidy(const char *path);

#endif
