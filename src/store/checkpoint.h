/*
 * checkpoint.h -- a checkpoint that another process left, opened so that its sort can be finished:
 * all its directories, locked, and what its file says.
 *
 * A sort that is resumed may add directories. It writes the longer list into the directories one
 * after the other, and may die meanwhile. So the longest list that any directory has is the valid
 * one.
 *
 * A directory may be lost: one that -T put on the disk of another host, for example. If the load
 * was interrupted and the inputs can be read again, the sort goes on without it. Its runs are
 * missing in the chain of labels then (run_label.h), so the chain ends before the first of them,
 * later runs are left out, and reading goes on where the chain ends: nothing is lost and nothing is
 * there twice. The list without the directory has a new generation. The latest generation is the
 * valid one. So if the directory comes back its runs are not used again. That list must be in all
 * directories before the first new run (checkpoint_writer_adopted).
 *
 * Ownership: a struct checkpoint owns all that it points to. Threads: one at a time.
 * Errors: NULL after a message that says why there is nothing to resume.
 */
#ifndef ROCKSORT_STORE_CHECKPOINT_H
#define ROCKSORT_STORE_CHECKPOINT_H

#include "store/checkpoint_dir.h"

#include <limits.h>

struct checkpoint {
    struct checkpoint_file file;
    struct checkpoint_dir *dirs;        /* in the order of file.directories */
    size_t n_dirs;
    bool has_dropped;                   /* lost directories were taken out of the list */
};

/* `path`: one of the directories of the checkpoint. Drops those that are lost, after a warning, if
   the sort can go on without them. */
struct checkpoint *checkpoint_open(const char *path);

/* Removes its directories, which nobody needs any more; warns if that fails. */
void checkpoint_remove(const struct checkpoint *checkpoint);

/* Releases the locks. Accepts NULL. */
void checkpoint_close(struct checkpoint *checkpoint);

enum checkpoint_parts {
    CHECKPOINT_PARTS_USABLE,    /* none is lost, or those that are can be dropped */
    CHECKPOINT_PARTS_LOST,      /* a lost one cannot be dropped: the checkpoint is useless */
    CHECKPOINT_PARTS_DROPPED,   /* the sort goes on without the directory that has this file */
};

/* Looks whether the other directories of a checkpoint are there. *part: unless they are usable, the
   one that shows it; borrowed from the checkpoint file. */
enum checkpoint_parts checkpoint_look_at_parts(const struct checkpoint_file *file,
                                               const char **part);

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

#endif
