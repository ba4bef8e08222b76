/*
 * output_path.h -- writes an output under a temporary name, and renames it when it is complete.
 *
 * A regular file is written under a temporary name in the directory of its final name. So the final
 * name never refers to a partial result, and a file can be sorted onto itself. Symbolic links are
 * followed first, even dangling ones; other hard links to the old file keep the old content.
 * Devices, pipes, URLs, open files (/dev/fd/5), mounted files, and files in unwritable directories
 * are written in place, under their own name.
 *
 * Order of calls: choose, before hours of work; open; write and close the file; commit, or drop on
 * failure. Release at any time.
 *
 * The temporary file is locked (file_owner.h) until it is renamed or removed, so that another
 * process can tell it from a leftover of a killed process (output_journal.h).
 *
 * Signals. The thread that handles them removes the temporary file: it takes `lock`, unlinks
 * `temporary`, and never unlocks. Temporary files are made with `lock` held, so none can appear
 * after that removal.
 *
 * Ownership: a struct output_path owns `final`, `temporary` and `held_fd`, and borrows `name` and
 * `lock`. Threads: one at a time; any thread may call output_path_drop. Errors: -1 after a message,
 * unless said otherwise.
 */
#ifndef ROCKSORT_OUTPUT_OUTPUT_PATH_H
#define ROCKSORT_OUTPUT_OUTPUT_PATH_H

#include <htslib/hfile.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Names of temporary files are NAME.rocksort.PROCESS.NANOSECONDS.tmp, with nine digits of
   nanoseconds. */
#define OUTPUT_PATH_WORD ".rocksort."
#define OUTPUT_PATH_ENDING ".tmp"
#define OUTPUT_JOURNAL_ENDING ".journal"        /* instead, for output_journal.h */
enum { OUTPUT_PATH_NANOSECOND_DIGITS = 9 };

struct output_path {            /* starts as {0} */
    const char *name;           /* as the user gave it, without "file:" */
    char *final;                /* the regular file, all links followed; NULL: written in place */
    char *temporary;            /* the name to write under; NULL: written in place */
    bool is_url;                /* htslib writes it over a network */
    /* attributes of the file that is replaced, which the complete new file gets if the system
       allows */
    bool replaces;              /* a file is replaced */
    mode_t mode;
    uid_t uid;
    gid_t gid;
    /* the caller sets these after choosing */
    pthread_mutex_t *lock;      /* see above; NULL: no thread handles signals */
    bool durable;               /* commit waits until the file and its name are on the disk */
    bool in_set;                /* output_set.h renames it, together with others */
    bool is_complete;           /* in a set: closed, not renamed yet */
    /* only this module uses these */
    bool is_held;               /* the temporary file exists, */
    int held_fd;                /* and this is its locked descriptor */
};

/* Chooses the names, and checks that the file can probably be made. */
int output_path_choose(struct output_path *path, const char *name);

/* Chooses for a pattern of file names: checks only the directory. Ignores a file named like the
   pattern itself. */
int output_path_choose_pattern(struct output_path *path, const char *pattern);

/* Chooses the names of an output that becomes `file`, a new file; `name` is for messages. */
void output_path_place(struct output_path *path, const char *name, const char *file);

/* Opens the file for writing; the temporary file must not exist yet. Returns NULL with errno set on
   failure. */
hFILE *output_path_open(struct output_path *path);

/* Explains, for messages, why opening, writing or closing failed with errno `error`. Call it in the
   thread that failed. path may be NULL. */
const char *output_path_problem(const struct output_path *path, int error);

/* Close an hFILE from output_path_open; path NULL: standard output. The first returns 0, or -1 with
   errno set. The second is for an incomplete file: no object appears at a URL. It may leave the
   hFILE open until the process ends, because closing it would complete the upload. */
int output_path_close(const struct output_path *path, hFILE *file);
void output_path_close_incomplete(const struct output_path *path, hFILE *file);

/* Opens the file of an index, writes all bytes, closes and commits it. On failure no file is
   left. */
int output_path_save(struct output_path *path, const void *bytes, size_t n_bytes);

/* Does the same with what print(to, arg) prints, which returns 0, or -1 after a message; without a
   name, writes it to standard output. `what`, such as "--flagstat", is for messages. */
int output_path_print(struct output_path *path, const char *what,
                      int (*print)(FILE *to, const void *arg), const void *arg);

/* Prints why `what` cannot be written, with errno `error`, and removes the file. Returns -1. */
int output_path_fail(struct output_path *path, const char *what, int error);

/* A second descriptor of the temporary file, to advise the kernel, not to write. -1: no temporary
   file. */
int output_path_descriptor(const struct output_path *path);

/* True if both refer to the same regular file. */
bool output_path_same(const struct output_path *a, const struct output_path *b);

/* With --fsync: waits until the complete, closed file is on the disk. output_path_commit does that,
   too. Returns 0, or -1 after a message. */
int output_path_sync(const struct output_path *path);

/* Renames the complete, closed file to its final name; in a set, only marks it complete. */
int output_path_commit(struct output_path *path);

/* Records that the caller has renamed the file to its final name. */
int output_path_named(struct output_path *path);

/* Makes a temporary name in the directory of a file; truncates a long name. The caller frees it. */
char *output_path_temporary(const char *final);

/* Renames a file; fails if the new name exists. Returns 0, or -1 with errno set. */
int output_path_rename_new(const char *file, const char *name);

/* Removes the temporary file, if any; warns on failure. Does not allocate. */
void output_path_drop(struct output_path *path);

void output_path_release(struct output_path *path);

#endif
