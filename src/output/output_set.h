/*
 * output_set.h -- the files of a sort, which get their names together: outputs, or the groups of
 * one, indexes and reports.
 *
 * Each is written under a temporary name (output_path.h), closed, and committed, which notes that
 * it is complete. When all outputs are complete, publish gives all complete files their names, and
 * removes indexes of the files that are replaced. A journal on the disk lists them all before the
 * first is renamed, unless it is the only one (output_journal.h).
 *
 * If an output cannot get its name, those that have theirs lose them again, and the old indexes
 * come back. If an older file was replaced, which cannot come back, the temporary files and the
 * journal stay, and a message says how to finish. Without their index or report, outputs stay.
 * Signals wait while files get their names (abort_cleanup.h); a SIGKILL leaves the journal.
 *
 * Order of calls: add, when a path is chosen; add_groups, add_stale, complete; publish; drop, in
 * any case. Ownership: the set borrows paths and groups, and starts as {0}. Threads: one at a time;
 * add and unlink with the lock of the sort held. Errors: -1 after a message.
 */
#ifndef ROCKSORT_OUTPUT_OUTPUT_SET_H
#define ROCKSORT_OUTPUT_OUTPUT_SET_H

#include "output/output_format.h"
#include "output/output_journal.h"
#include "output/output_path.h"

#include <limits.h>

/* A file of groups under its temporary name, and the name that it gets. */
struct output_group {
    char path[PATH_MAX], name[PATH_MAX];
};

/* The files of all groups. There may be 200,000, so their names are made when they are needed. */
struct output_groups {
    size_t n;
    bool make_directories;      /* those of the names, if they are not there */
    /* Allocates nothing. */
    void (*look_up)(const void *arg, size_t i, struct output_group *group);
    const void *arg;
    const char *dir;            /* where they lie until they have their names */
    bool durable;               /* waits until the names are on the disk */
};

enum output_set_state {
    OUTPUT_SET_OPEN,            /* outputs are being written */
    OUTPUT_SET_COMPLETE,        /* all outputs are complete */
    OUTPUT_SET_NAMING,          /* files get their names; or have not all got them, and stay */
    OUTPUT_SET_NAMED,
};

enum { OUTPUT_SET_MOST = 12 };  /* two outputs, an index and six reports */

struct output_set {             /* starts as {0} */
    const char *output;         /* for messages: what the user called it */
    enum output_set_state state;
    struct output_path *paths[OUTPUT_SET_MOST];
    enum output_role roles[OUTPUT_SET_MOST];
    unsigned n_paths;
    struct output_groups groups;        /* n == 0: the output is not divided */
    struct output_line *stale;  /* indexes of older files; `from`: what each is called until the new
                                   output has its name; both names owned */
    size_t n_stale, stale_room;
};

/* Adds a file that will be written. Outputs come first; the last of them gets its name last of
   them. */
void output_set_add(struct output_set *set, struct output_path *path, enum output_role role);

/* Adds groups, which are complete, and waits until they are on the disk. */
int output_set_add_groups(struct output_set *set, const struct output_groups *groups);

/* Adds the indexes of the file that an output will replace; `index`: where its own index will lie,
   or NULL. */
void output_set_add_stale(struct output_set *set, const struct output_path *output,
                          const char *index, const struct output_format *format);

/* Gives all complete files their names. */
int output_set_publish(struct output_set *set);

/* Removes the files that have no names, unless they stay after a failure. */
void output_set_drop(struct output_set *set);

/* The same, for the thread that handles signals; allocates nothing, and says nothing. */
void output_set_unlink(const struct output_set *set);

#endif
