/*
 * output_leftover.h -- temporary files of outputs and indexes that killed processes have left.
 *
 * While a process writes such a file, the file is locked (output_path.h), and belongs to the user
 * who started the process. So if a file has such a name, is ours and can be locked, no process uses
 * it any more, unless locks do not work everywhere; file_owner.h has the rule for that.
 *
 * Order of calls: open; remove, if that is wanted; close. Ownership: a struct output_leftover owns
 * its descriptor. Threads: one at a time for each. No messages.
 */
#ifndef ROCKSORT_OUTPUT_OUTPUT_LEFTOVER_H
#define ROCKSORT_OUTPUT_OUTPUT_LEFTOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

enum output_leftover_state {
    OUTPUT_LEFTOVER_DEAD,       /* no process writes it; the file stays locked until close */
    OUTPUT_LEFTOVER_UNKNOWN,    /* the file system has no locks: a process may write it */
    OUTPUT_LEFTOVER_IN_USE,
    OUTPUT_LEFTOVER_FOREIGN,    /* no file of that name, or not one of ours */
};

struct output_leftover {
    int fd;                     /* -1 unless the state is DEAD or UNKNOWN */
    struct stat st;             /* set also if the file is in use */
};

/* True if a name, without its directory, is that of a temporary file. *n_output: how many bytes of
   the name are the name of the output, which was cut if it was too long. */
bool output_leftover_is_name(const char *name, size_t *n_output);

/* True if such a name is that of a journal (output_journal.h), by its ending. */
bool output_leftover_is_journal(const char *name);

/* Looks at a file, whatever its name, and locks it. */
enum output_leftover_state output_leftover_open(const char *path, struct output_leftover *left);

/* The same if the process that made the file is known to be dead, as the lock of its checkpoint
   shows: the lock alone decides, and on NFS, too, nobody has to wait until the file is old. */
enum output_leftover_state output_leftover_open_of_dead(const char *path,
                                                       struct output_leftover *left);

/* Removes the file that is open. Returns 0, or -1 with errno set. */
int output_leftover_remove(const char *path, const struct output_leftover *left);

/* Accepts one with the descriptor -1. */
void output_leftover_close(struct output_leftover *left);

/* Removes the temporary file or journal of a process that is known to be dead, if it has the name of
   one, is ours, and no other process has it. Accepts NULL. */
void output_leftover_drop(const char *path);

#endif
