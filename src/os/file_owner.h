/*
 * file_owner.h -- decides whether the process that owns a file is still alive, so that only files
 * of dead sorts are resumed or removed.
 *
 * A lock is not enough: on NFS that is mounted with nolock each host has its own locks, and some
 * file systems have none. So the owner of a temporary directory writes into its file LOCK who it
 * is, and how far its lock reaches:
 *
 *     rocksort-owner 1
 *     host n17.cluster
 *     boot 9eb9e8e4-e64f-494a-b1d3-9c7b52bd3eec      of the kernel; new after each boot
 *     processes pid:[4026531836]                     the PID namespace
 *     process 4711
 *     lock all                                       or host, or none; see enum lock_reach
 *
 * The owner is dead
 *   - if it had a lock, the same kernel runs this process, and this process has the lock now; or
 *   - if both locks reach all hosts, and this process has the lock now; or
 *   - if the same kernel runs this process, and the process with that number does not have the file
 *     open: an owner has it open as long as it lives.
 * Otherwise the owner is alive or unknown. An empty file has no owner, and the lock alone decides:
 * an earlier version made it, or a user emptied it because the owner is dead.
 *
 * Output files cannot hold such a text; see file_owner_writes_output.
 *
 * Any thread. No messages.
 */
#ifndef ROCKSORT_OS_FILE_OWNER_H
#define ROCKSORT_OS_FILE_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* ---- locks ---- */

/* A lock (flock) belongs to a descriptor and its copies. It ends when the last of them is closed,
   also when the process is killed. */
enum file_lock {
    FILE_LOCK_HELD,             /* this descriptor has the lock now */
    FILE_LOCK_NONE,             /* the file system has no locks */
    FILE_LOCK_BUSY,             /* another descriptor has it */
    FILE_LOCK_ERROR,            /* errno says why */
};

/* Tries to lock an open file. waits: for 0.2 seconds, because a process that only checks the file
   holds its lock for a moment. */
enum file_lock file_lock_try(int fd, bool waits);

/* True if `name`, in the open directory dir_fd (or AT_FDCWD), still is the open file: the process
   that had the lock may have removed or renamed the file. */
bool file_lock_has_name(int fd, int dir_fd, const char *name);

/* ---- owners ---- */

enum lock_reach {
    LOCK_REACH_NONE,            /* the file could not be locked */
    LOCK_REACH_HOST,            /* other hosts that see the file may not see the lock */
    LOCK_REACH_ALL,
};

enum { FILE_OWNER_NAME_BYTES = 65 };

struct file_owner {
    char host[FILE_OWNER_NAME_BYTES];
    char boot[FILE_OWNER_NAME_BYTES];
    char processes[FILE_OWNER_NAME_BYTES];
    long process;
    enum lock_reach reach;
};

enum file_owner_state {
    FILE_OWNER_DEAD,
    FILE_OWNER_ALIVE,
    /* It may be alive: */
    FILE_OWNER_ON_HOST,         /* on the host that the file names */
    FILE_OWNER_IN_CONTAINER,    /* on this host, in a container that this process does not see */
    FILE_OWNER_ON_NAMESAKE,     /* on another host with the same name; or it is dead, because this
                                   host was restarted since */
};

/* Describes this process, which has tried to lock the open file. */
void file_owner_self(int fd, enum file_lock lock, struct file_owner *self);

/* Replaces the contents of the open file with an owner. Returns 0; or empties the file, if
   possible, and returns -1 with errno set. */
int file_owner_write(int fd, const struct file_owner *owner);

/* Returns the state of the owner of a file that this process has opened and tried to lock; `lock`:
   HELD or NONE. Stores the owner that the file names. */
enum file_owner_state file_owner_look(int fd, enum file_lock lock, struct file_owner *owner);

/* Applies the rule above to a file that is not empty. `has_open`: the process of this host with the
   owner's PID has the file open. */
enum file_owner_state file_owner_judge(const struct file_owner *owner,
                                       const struct file_owner *self, bool has_open);

/* Applies the rule to a temporary output that this process has opened and locked. `process` is the
   PID in its name. True if the process of this host with that PID has the file open, or if the file
   was changed in the last ten minutes and another host may be writing it without a lock that is
   visible here. */
bool file_owner_writes_output(int fd, long process);

/* Returns how far locks reach on a file system, given its magic number (statfs) and its mount
   options (NULL: unknown). */
enum lock_reach file_owner_reach(unsigned long magic, const char *options);

#endif
