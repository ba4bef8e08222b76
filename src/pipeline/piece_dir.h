/*
 * piece_dir.h -- the directory in which the pieces of --split-by are written, and from which all of
 * them get their names at the end.
 *
 * It lies beside the pieces, so that a name costs no copy, and is a temporary directory like others
 * (store/temp_dir.h): locked, found by --clean, removed after a failure.
 *
 * Signals. The directory is made with the lock held. So the thread that handles signals, which holds
 * the lock for ever, sees a directory that it can remove.
 *
 * Order of calls: make; remove, when the pieces have their names (output_set.h). Ownership: starts
 * as {0}. Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_PIPELINE_PIECE_DIR_H
#define ROCKSORT_PIPELINE_PIECE_DIR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct piece_dir {
    char *path;                 /* NULL: there is none */
    int lock_fd;
};

/* Makes the directory beside the output `beside`, or beside the directories of its pieces. */
int piece_dir_make(struct piece_dir *dir, const char *beside, pthread_mutex_t *lock);

/* True if `name`, without its directory, is that of such a directory; n_output: from
   temp_dir_is_name. */
bool piece_dir_is_name(const char *name, size_t n_output);

/* Checks that no file has the name. */
int piece_dir_check_name(const char *name);

/* Tries to give a file of the directory this name, which no file has, and removes it. Returns 0, or
   an errno: EXDEV if the name lies on another mount, also of the same file system. No message. */
int piece_dir_try_name(const char *dir, const char *name, pthread_mutex_t *lock);

/* Removes the directory and all that is in it; warns if that fails. With the lock held, or without
   other threads. */
void piece_dir_remove(struct piece_dir *dir);

/* Removes such a directory of a process that is known to be dead, if it is ours, and no other
   process has it. Accepts NULL, and names of other things. */
void piece_dir_drop_leftover(const char *path);

#endif
