/*
 * file_lock.h -- locks that show whether a process still works with a file.
 *
 * A lock (flock) belongs to a descriptor and its copies. It ends when the last of them is closed,
 * however the process ends. file_owner.h says what a lock proves where other hosts see the file.
 *
 * Any thread. No messages.
 */
#ifndef ROCKSORT_MACHINE_FILE_LOCK_H
#define ROCKSORT_MACHINE_FILE_LOCK_H

#include <stdbool.h>

enum file_lock {
    FILE_LOCK_HELD,             /* this descriptor has the lock now */
    FILE_LOCK_NONE,             /* the file system has no locks */
    FILE_LOCK_BUSY,             /* another descriptor has it */
    FILE_LOCK_ERROR,            /* errno says why */
};

/* Tries to lock an open file. Never waits. */
enum file_lock file_lock_try(int fd);

/* The same, but tries again for 0.2 seconds while another descriptor has the lock: a process that
   only looks at the file holds it for a moment. */
enum file_lock file_lock_patiently(int fd);

/* Gives the lock up; the descriptor stays open. */
void file_lock_drop(int fd);

/* True if `name`, in the open directory dir_fd (or AT_FDCWD), still stands for the open file. The
   process that had the lock may have removed or renamed the file. */
bool file_lock_has_name(int fd, int dir_fd, const char *name);

#endif
