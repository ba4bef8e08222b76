/*
 * checkpoint_dir.h -- the temporary directories of a sort as a checkpoint: the lock of each, and
 * the file that says what is in it.
 *
 * Two files lie beside the databases. LOCK is locked (flock) by the process that works in the
 * directory; the system releases the lock when the process ends, in any way. The file says which
 * process that is (file_owner.h), since there are hosts without locks, and locks that other hosts
 * do not see. STORE is the checkpoint file (checkpoint_file.h).
 *
 * A sort makes the directory, claims it, and writes the checkpoint file. Another process opens the
 * directory, which locks it, reads the checkpoint file, takes the directory if it will work there,
 * and closes it; or it opens a whole checkpoint. All directories are needed: if one is lost, such
 * as one on the disk of another host, the checkpoint is useless, and a message says so.
 *
 * A sort that is resumed may add directories. It writes the longer list into the directories one
 * after the other, and may die meanwhile. So the longest list that any directory has is the valid
 * one.
 *
 * Other users may plant files in a shared place, so nothing there is followed or trusted: the
 * directory must be ours, closed to others, and no symbolic link; files are made exclusively.
 *
 * Ownership: a struct owns what it points to. Threads: one at a time for each directory. Errors:
 * functions of single directories print nothing; problems are texts for the caller's message.
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
    char problem[FILE_OWNER_NAME_BYTES + 160];          /* room for a text */
};

enum {
    CHECKPOINT_OK = 0,
    CHECKPOINT_FOREIGN = -1,    /* not made by rocksort, or unsafe */
    CHECKPOINT_BUSY = -2,       /* a process works there */
    CHECKPOINT_BAD = -3,        /* the checkpoint file is missing or damaged */
    CHECKPOINT_CLOSED = -4,     /* cannot be locked, on a read-only disk for example */
    CHECKPOINT_ELSEWHERE = -5,  /* a process of another host may work there */
    CHECKPOINT_LOST = -6,       /* there is no such directory */
};

/* Locks a directory that was just made. Returns a descriptor, or -1 with errno set. Closing the
   descriptor releases the lock. */
int checkpoint_dir_claim(const char *path);

/* Writes the checkpoint file durably, in place of an earlier one. Returns 0, or -1 with errno
   set. */
int checkpoint_dir_write(const char *path, const struct checkpoint_file *file);

/* Opens and locks a directory. Returns a code from above. Unless it is OK, *problem says why, in
   words that follow the name of the directory, and close need not be called; the words may lie in
   *dir. */
int checkpoint_dir_open(const char *path, struct checkpoint_dir *dir, const char **problem);

/* The same, but waits up to 0.2 seconds for a lock: a process that only looks at the directory
   (--clean, another sort that starts beside it) holds the lock for a moment. */
int checkpoint_dir_open_patiently(const char *path, struct checkpoint_dir *dir,
                                  const char **problem);

/* Writes into an open directory that this process works there. Returns a code from above, and
   *problem as checkpoint_dir_open. */
int checkpoint_dir_take(const struct checkpoint_dir *dir, const char **problem);

/* Reads the checkpoint file. Returns CHECKPOINT_OK, and the caller releases what was read;
   or CHECKPOINT_BAD with *problem as above. */
int checkpoint_dir_read(const struct checkpoint_dir *dir, struct checkpoint_file *file,
                        const char **problem);

/* Reads the checkpoint file of a directory in which another process may work, without the lock. The
   caller releases what was read. Returns a code from above; CHECKPOINT_BAD also for a file
   of more than 4 MiB. */
int checkpoint_dir_peek(const char *path, struct checkpoint_file *file);

/* True if the directory has a file with the name of a checkpoint file. */
bool checkpoint_dir_has_file(const struct checkpoint_dir *dir);

/* The first of n directories that has such a file; NULL: none has. A directory that was full when
   the sort began has none. Allocates nothing: the sort that asks may have run out of memory. */
const char *checkpoint_dir_find(const char *const *paths, size_t n);

/* Accepts {.fd = -1, .lock_fd = -1}. */
void checkpoint_dir_close(struct checkpoint_dir *dir);

/* ---- all directories of a checkpoint ---- */

struct checkpoint {
    struct checkpoint_file file;
    struct checkpoint_dir *dirs;        /* in the order of file.directories */
    size_t n_dirs;
};

/* `path`: one of its directories. Returns NULL after a message that says why there is nothing to
   resume. */
struct checkpoint *checkpoint_open(const char *path);

/* Removes its directories, which nobody needs any more; warns if that fails. */
void checkpoint_remove(const struct checkpoint *checkpoint);

/* Releases the locks. Accepts NULL. */
void checkpoint_close(struct checkpoint *checkpoint);

/* The first of the other directories of a checkpoint that does not exist, borrowed from the
   checkpoint file; NULL: all exist. */
const char *checkpoint_lost_part(const struct checkpoint_file *file);

/* ---- how to resume a checkpoint ---- */

/* True if a checkpoint can give only a part of the sorted input. */
bool checkpoint_is_partial(const struct checkpoint_file *file);

/* The length of an output's name without ##idx## and the name of its index. */
size_t checkpoint_output_length(const char *output);

enum { CHECKPOINT_COMMAND_BYTES = 8 * PATH_MAX };

struct checkpoint_resuming {
    const char *path;           /* of the checkpoint */
    bool partial;               /* only a part can be written */
    bool has_output;            /* the checkpoint names an output file */
    /* other places than those of the checkpoint, or NULL */
    const char *temp_dir, *files[CHECKPOINT_N_FILES];
};

/* Writes the shell command that resumes a checkpoint. The command does not repeat threads, memory
   and output, because the checkpoint has them. Allocates nothing. Returns text. */
const char *checkpoint_command(const struct checkpoint_resuming *resuming,
                               char text[CHECKPOINT_COMMAND_BYTES]);

/* The same for what is in the directory `path`. */
const char *checkpoint_command_of(const struct checkpoint_file *file, const char *path,
                                  char text[CHECKPOINT_COMMAND_BYTES]);

#endif
