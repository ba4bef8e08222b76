/*
 * group_dir.h -- the directory in which the groups of --split-by are written, and from which all of
 * them get their names at the end.
 *
 * It lies beside the groups, so that a name costs no copy, and is a temporary directory like others
 * (os/temp_dir.h): locked, found by --clean, removed after a failure.
 *
 * Signals. The directory is made with the lock held. So the thread that handles signals, which
 * holds the lock for ever, sees a directory that it can remove.
 *
 * Order of calls: make; remove, when the groups have their names (output_set.h). Ownership: starts
 * as {0}. Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_RESUME_GROUP_DIR_H
#define ROCKSORT_RESUME_GROUP_DIR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct group_dir {
    char *path;                 /* NULL: there is none */
    int lock_fd;
};

/* Makes the directory beside the output `beside`, or beside the directories of its groups. */
int group_dir_make(struct group_dir *dir, const char *beside, pthread_mutex_t *lock);

/* True if `name`, without its directory, is that of such a directory; n_output: from
   temp_dir_is_name. */
bool group_dir_is_name(const char *name, size_t n_output);

/* Checks that no file has the name. */
int group_dir_check_name(const char *name);

/* Tries to give a file of the directory this name, which no file has, and removes it. Returns 0, or
   an errno: EXDEV if the name lies on another mount, also of the same file system. No message. */
int group_dir_try_name(const char *dir, const char *name, pthread_mutex_t *lock);

/* Removes the directory and all that is in it; warns if that fails. With the lock held, or without
   other threads. */
void group_dir_remove(struct group_dir *dir);

/* Removes such a directory of a process that is known to be dead, if it is ours, and no other
   process has it. Accepts NULL, and names of other things. */
void group_dir_drop_leftover(const char *path);

#endif
