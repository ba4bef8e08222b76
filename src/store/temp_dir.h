/*
 * temp_dir.h -- the directory of a run's temporary data: where it goes, and that it goes away.
 *
 * Where: under the -T argument if that is a directory, else beside it as a prefix, as samtools
 * does; without -T beside the output file; for standard output, devices, pipes and URLs in $TMPDIR
 * or the working directory. The directory has mode 0700 and a name that no other run has.
 */
#ifndef ROCKSORT_STORE_TEMP_DIR_H
#define ROCKSORT_STORE_TEMP_DIR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* What else than databases is in it; see checkpoint_dir.h. */
#define SCRATCH_LOCK_NAME "LOCK"
#define SCRATCH_RECORD_NAME "STORE"

/*
 * Creates the directory. `prefix` is the -T argument or NULL, `output` the output file or NULL for
 * standard output. Returns its path, to be freed by the caller, or NULL after a message.
 */
char *temp_dir_create(const char *prefix, const char *output);

/* True if a name, without its directory, ends as those that are created: rocksort.NUMBER.XXXXXX */
bool temp_dir_is_name(const char *name);

/* Lists the names in a directory that may be ours, sorted; names and array are to be freed. Returns
   how many, or -1 with errno. */
ssize_t temp_dir_list(const char *path, char ***names);

/* The path of such a name, to be freed; NULL without memory. */
char *temp_dir_path(const char *parent, const char *name);

/*
 * Removes the directory and all that is in it; NULL is accepted. Tries again if files appear
 * meanwhile. What is left if that is interrupted is still locked, and no store any more. Returns 0,
 * or -1 (errno set, no message).
 */
int temp_dir_remove(const char *path);

/* Waits until the directory and all that is in it are on the disk, or until *stop. What is removed
   meanwhile need not be. Returns 0, or -1 with errno. */
int temp_dir_sync(const char *path, const atomic_bool *stop);

/* Removes what a process that was killed left beside the databases: files on their way into one,
   and that of disk_probe.h. */
void temp_dir_tidy(const char *path);

#endif
