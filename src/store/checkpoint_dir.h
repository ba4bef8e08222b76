/*
 * checkpoint_dir.h -- a temporary directory as a store: who uses it, and the record of what is in it.
 *
 * Two files stand beside the databases: LOCK, which the process that works there keeps locked
 * (flock) as long as it lives, however it ends, and STORE, the record (checkpoint_record.h). The number
 * of a process is no evidence of anything: it may be another one's by now, or another machine's.
 *
 * Whoever sorts claims the directory that it has made and writes the record; whoever comes later
 * opens it, which locks it, reads the record, and closes it.
 *
 * Nothing is followed or trusted that others may have planted in a shared place: the directory
 * must be ours, with no permissions for others, and no symbolic link; files are made exclusively.
 *
 * Ownership: an open store_dir owns its path and descriptors. Threads: one at a time for each.
 */
#ifndef ROCKSORT_STORE_CHECKPOINT_DIR_H
#define ROCKSORT_STORE_CHECKPOINT_DIR_H

#include "store/checkpoint_record.h"

#include <stdint.h>

struct checkpoint_dir {
    char *path;                 /* absolute */
    int fd;
    int lock_fd;
    bool is_locked;             /* else the file system has no locks: somebody may work there */
};

enum {
    CHECKPOINT_OK = 0,
    CHECKPOINT_FOREIGN = -1,     /* not made by us, or unsafe */
    CHECKPOINT_BUSY = -2,        /* a process works there */
    CHECKPOINT_BAD = -3,         /* the record is missing or damaged */
    CHECKPOINT_CLOSED = -4,      /* nobody can lock it, on a disk that is read-only for example */
};

/* Locks a directory that was just made. Returns a descriptor, whose closing releases the lock, or
   -1 with errno set. */
int checkpoint_dir_claim(const char *path);

/* Writes the record, durably, in place of the one before. Returns 0, or -1 with errno set. */
int checkpoint_dir_write(const char *path, const struct checkpoint_record *record);

/* Opens and locks a directory. Returns a code from above, and says why unless it is OK, in words to
   be put behind the name of the directory. Only if it is OK, close has to be called. */
int checkpoint_dir_open(const char *path, struct checkpoint_dir *dir, const char **problem);

/* The same; whoever only looks at a store (--clean, the next sort beside it) has its lock for a
   moment, and that is waited for. */
int checkpoint_dir_open_patiently(const char *path, struct checkpoint_dir *dir, const char **problem);

/* Reads the record, which the caller releases; else as checkpoint_dir_open. */
int checkpoint_dir_read(const struct checkpoint_dir *dir, struct checkpoint_record *record, const char **problem);

/* Reads the record of a directory that another process may be working in; the caller releases it.
   Returns a code from above, BAD also for a record too large to be read unasked. */
int checkpoint_dir_peek(const char *path, struct checkpoint_record *record);

/* True if there is a file that looks like a record. */
bool checkpoint_dir_has_record(const struct checkpoint_dir *dir);

/* Accepts {0, -1, -1, false}. */
void checkpoint_dir_close(struct checkpoint_dir *dir);

#endif
