/*
 * output_set.h -- renames all files of a sort together: outputs or groups, indexes and reports.
 *
 * Each file is written under a temporary name (output_path.h), closed, and committed, which marks
 * it complete. When all outputs are complete, publish renames all complete files to their final
 * names, and removes indexes of replaced files. If there are several files, a journal on disk lists
 * them before the first is renamed (output_journal.h).
 *
 * If an output cannot be renamed, the others are renamed back, and the old indexes restored. If an
 * older file was already replaced, temporary files and journal stay, and a message says how to
 * finish. A failed index or report does not affect outputs. Signals are held back during the
 * renames (abort_cleanup.h); a SIGKILL leaves the journal.
 *
 * Order of calls: add, when a path is chosen; add_groups, add_stale; complete; publish; drop, in
 * any case. Ownership: the set borrows paths and groups, and starts as {0}. Threads: one at a time;
 * add, complete and unlink with the lock of the sort held. Errors: -1 after a message.
 */
#ifndef ROCKSORT_OUTPUT_OUTPUT_SET_H
#define ROCKSORT_OUTPUT_OUTPUT_SET_H

#include "output/output_format.h"
#include "output/output_journal.h"
#include "output/output_path.h"

#include <limits.h>

/* The temporary and the final name of a group's file. */
struct output_group {
    char path[PATH_MAX], name[PATH_MAX];
};

/* The files of all groups. There may be 200,000, so names are made on demand. */
struct output_groups {
    size_t n;
    bool make_directories;      /* make missing directories of the names */
    /* Allocates nothing. */
    void (*look_up)(const void *arg, size_t i, struct output_group *group);
    const void *arg;
    const char *dir;            /* where they are until they are renamed */
    bool durable;               /* sync the renames to disk */
};

enum output_set_state {
    OUTPUT_SET_OPEN,            /* outputs are being written */
    OUTPUT_SET_COMPLETE,        /* all outputs are complete */
    OUTPUT_SET_NAMING,          /* files are being renamed; or some could not be, and stay */
    OUTPUT_SET_NAMED,
};

enum { OUTPUT_SET_MOST = 96 };  /* two outputs, an index, and reports of several files */

struct output_set {             /* starts as {0} */
    const char *output;         /* the user's name of it, for messages */
    enum output_set_state state;
    struct output_path *paths[OUTPUT_SET_MOST];
    enum output_role roles[OUTPUT_SET_MOST];
    unsigned n_paths;
    struct output_groups groups;        /* n == 0: no groups */
    struct output_line *stale;  /* old indexes; `from`: name of each until the output is renamed;
                                   both names owned */
    size_t n_stale, stale_room;
};

/* Adds a file that will be written. Add outputs first; the last of them is renamed last of them. */
void output_set_add(struct output_set *set, struct output_path *path, enum output_role role);

/* Adds complete groups, and waits until they are on disk. */
int output_set_add_groups(struct output_set *set, const struct output_groups *groups);

/* Adds the indexes of the file that an output will replace; `index`: path of its own index, or
   NULL. */
void output_set_add_stale(struct output_set *set, const struct output_path *output,
                          const char *index, const struct output_format *format);

/* All outputs are complete: they are published even if a signal ends the sort. */
void output_set_complete(struct output_set *set);

/* Renames all complete files to their final names. */
int output_set_publish(struct output_set *set);

/* Removes the files that were not renamed, unless they must stay after a failed publish. */
void output_set_drop(struct output_set *set);

/* The same, for the signal thread; does not allocate, prints nothing. */
void output_set_unlink(const struct output_set *set);

#endif
