/*
 * checkpoint_dir.h -- locks the temporary directories of a sort, and reads and writes the
 * checkpoint file in each.
 *
 * Two files are beside the databases. LOCK is locked (flock) by the process that uses the
 * directory; the system releases the lock when the process ends. LOCK also names that process
 * (file_owner.h), because some file systems have no locks, or locks that other hosts do not see.
 * STORE is the checkpoint file (checkpoint_file.h).
 *
 * Order of calls. A sort makes a directory, then claim; write. Another process: open, which locks;
 * read; close. Or checkpoint_open, for all directories of a checkpoint, if it will work there. All
 * are needed: if one is lost, such as one on a disk of another host, the checkpoint is useless, and
 * a message says so.
 *
 * Only the checkpoint file of the first directory is up to date. The others have a copy from when
 * they were made, which names the first one. A resumed sort may add directories: they get their
 * copy before the first one lists them. If the disk of the first one is full when the load ends, a
 * copy has the latest state.
 *
 * Other users may plant files in a shared place. So the directory must be ours, closed to others,
 * and no symbolic link; files are created exclusively.
 *
 * Ownership: a struct owns what it points to. Threads: one at a time for each directory. Errors:
 * functions for one directory print nothing; they return the problem as text for the caller's
 * message.
 */
#ifndef ROCKSORT_RESUME_CHECKPOINT_DIR_H
#define ROCKSORT_RESUME_CHECKPOINT_DIR_H

#include "os/file_owner.h"
#include "resume/checkpoint_file.h"

#include <limits.h>
#include <stdint.h>

struct checkpoint_dir {
    char *path;                 /* absolute */
    int fd;
    int lock_fd;
    bool is_locked;             /* false: the file system has no locks */
    char problem[FILE_OWNER_NAME_BYTES + 160];          /* buffer for the text of a problem */
};

enum {
    CHECKPOINT_OK = 0,
    CHECKPOINT_FOREIGN = -1,    /* not made by rocksort, or wrong owner or mode */
    CHECKPOINT_BUSY = -2,       /* a process uses it */
    CHECKPOINT_BAD = -3,        /* the checkpoint file is missing or damaged */
    CHECKPOINT_CLOSED = -4,     /* cannot be locked, on a read-only disk for example */
    CHECKPOINT_ELSEWHERE = -5,  /* a process of another host may use it */
    CHECKPOINT_LOST = -6,       /* it does not exist */
};

/* Locks a new directory. Returns a descriptor, or -1 with errno set. Closing it releases the
   lock. */
int checkpoint_dir_claim(const char *path);

/* Replaces the checkpoint file, and syncs it. Returns 0, or -1 with errno set. */
int checkpoint_dir_write(const char *path, const struct checkpoint_file *file);

/* Opens and locks a directory; waits up to 0.2 seconds for the lock. Returns a code from above.
   Unless it is OK, *problem is the text that follows the directory's name in a message, perhaps
   inside *dir, and close need not be called. */
int checkpoint_dir_open(const char *path, struct checkpoint_dir *dir, const char **problem);

/* True if no process uses the directory. Does not wait. False if the file system has no locks. */
bool checkpoint_dir_is_dead(const char *path);

/* Reads the checkpoint file. Returns CHECKPOINT_OK, and the caller releases what was read;
   or CHECKPOINT_BAD with *problem as above. */
int checkpoint_dir_read(const struct checkpoint_dir *dir, struct checkpoint_file *file,
                        const char **problem);

/* Reads the checkpoint file without the lock, while another process may use the directory. The
   caller releases what was read. Returns a code from above. */
int checkpoint_dir_peek(const char *path, struct checkpoint_file *file);

/* True if the directory has a file STORE. Does not allocate, because memory may be exhausted. */
bool checkpoint_dir_has_file(const char *path);

/* Returns the first directory of the checkpoint to which this other directory belongs; the caller
   frees it. NULL: it is a first directory, or no checkpoint lists it. */
char *checkpoint_dir_first(const char *path);

/* Accepts {.fd = -1, .lock_fd = -1}. */
void checkpoint_dir_close(struct checkpoint_dir *dir);

/* ---- all directories of a checkpoint ---- */

struct checkpoint {
    struct checkpoint_file file;
    struct checkpoint_dir *dirs;        /* in the order of file.directories */
    size_t n_dirs;
};

/* Opens a checkpoint. `path`: one of its directories. Returns NULL after a message that says why it
   cannot be resumed. */
struct checkpoint *checkpoint_open(const char *path);

/* Removes its directories; warns on failure. */
void checkpoint_remove(const struct checkpoint *checkpoint);

/* Releases the locks. Accepts NULL. */
void checkpoint_close(struct checkpoint *checkpoint);

/* Returns the first of the other directories of a checkpoint that does not exist, borrowed from the
   checkpoint file, or NULL. */
const char *checkpoint_lost_part(const struct checkpoint_file *file);

/* ---- how to resume a checkpoint ---- */

/* True if a checkpoint holds only a part of the input. */
bool checkpoint_is_partial(const struct checkpoint_file *file);

enum { CHECKPOINT_COMMAND_BYTES = 8 * PATH_MAX };

struct checkpoint_places {      /* replace paths of the checkpoint; NULL: keep them */
    char *temp_dir, *files[CHECKPOINT_N_FILES];
};

/* Writes the shell command that resumes the checkpoint in `path`, without threads, memory and
   output, which are in the checkpoint. partial: only a part can be written. has_output: the
   checkpoint names an output file. `places` may be NULL. Does not allocate. Returns text. */
const char *checkpoint_command(const char *path, bool partial, bool has_output,
                               const struct checkpoint_places *places,
                               char text[CHECKPOINT_COMMAND_BYTES]);

/* The same for a checkpoint in the directory `path`. */
const char *checkpoint_command_of(const struct checkpoint_file *file, const char *path,
                                  char text[CHECKPOINT_COMMAND_BYTES]);

#endif
