/*
 * group_dir.h -- makes and removes the temporary directory that holds the groups of --split-by
 * until all are renamed at the end.
 *
 * It is beside the groups, so that they can be renamed, not copied. It is a temporary directory
 * like others (os/temp_dir.h): locked, found by --clean, removed after a failure.
 *
 * Signals. The directory is made with the lock held. So the signal thread, which takes the lock and
 * keeps it, knows of every directory that it must remove.
 *
 * Order of calls: make; remove, when the groups are renamed (output_set.h). Ownership: starts as
 * {0}. Threads: one at a time. Errors: -1 after a message.
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

/* Makes the directory beside the output pattern `beside`; if its last directory has a %, beside
   that. */
int group_dir_make(struct group_dir *dir, const char *beside, pthread_mutex_t *lock);

/* True if `name`, a file name, is that of such a directory; n_output: from temp_dir_is_name. */
bool group_dir_is_name(const char *name, size_t n_output);

/* Checks that no file of this name exists. */
int group_dir_check_name(const char *name);

/* Tests whether a file in the directory can be renamed to this new name. Returns 0, or an errno:
   EXDEV if the name is on another mount, even of the same file system. No message. */
int group_dir_try_name(const char *dir, const char *name, pthread_mutex_t *lock);

/* Removes the directory and its content; warns on failure. With the lock held, or without other
   threads. */
void group_dir_remove(struct group_dir *dir);

/* Removes such a directory of a dead process, if it is ours and unused. Ignores NULL and any other
   name. */
void group_dir_drop_leftover(const char *path);

#endif
