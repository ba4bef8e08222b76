/*
 * output_journal.h -- a journal of renames: lists the files of a set on disk before the first is
 * renamed, so that a later process can rename the rest if this one dies.
 *
 * All files are complete when the journal is written. A later process renames the remaining files;
 * it cannot undo, because replaced files are gone. Files are identified by size and modification
 * time. A set can be finished if each output exists, under its temporary or its final name. If an
 * output was removed or replaced, the remaining temporary files are removed, because they would
 * stand beside files of another sort. They are also removed if no output has its final name yet and
 * another sort has made files of these names since; if some have, the user must first move the file
 * in the way. An index or a report that is missing or was replaced is skipped.
 *
 * The file holds NUL-terminated texts:
 *     rocksort-names 1, output
 *     for each line: "ROLE SIZE TIME SIZE TIME" of the file and of the old file at its name (size
 *     -1: none), its temporary name, its name, both absolute
 *     end
 * If `end` is missing, the process died before it renamed a file.
 *
 * The journal of groups is in their directory, whose lock shows whether the process is alive. Other
 * journals are beside the last output, locked in the same way: OUTPUT.rocksort.N.N.journal for
 * OUTPUT.rocksort.N.N.tmp. Every other directory with a file of the set gets a copy, so that
 * --clean in that directory knows what the file belongs to.
 *
 * Order of calls: create, add, end; or settle, for an open, locked journal. Threads: one for each.
 */
#ifndef ROCKSORT_OUTPUT_OUTPUT_JOURNAL_H
#define ROCKSORT_OUTPUT_OUTPUT_JOURNAL_H

#include <htslib/kstring.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define OUTPUT_JOURNAL_OF_GROUPS "NAMES"        /* in their directory */

struct output_mark {
    int64_t n_bytes, mtime_ns;  /* n_bytes -1: there is no file */
};

enum output_role {              /* in the order of processing */
    OUTPUT_STALE,               /* an index of the old output, to be removed: it is called `from`
                                   until the new output has its name */
    OUTPUT_MAIN,                /* an output: all are renamed, or none */
    OUTPUT_EXTRA,               /* an index or a report: outputs stay without it */
};

struct output_line {
    enum output_role role;
    const char *from, *to;      /* the temporary name and the final one */
    struct output_mark is, was; /* the file, and the old file at `to` */
    const char *output;         /* when read: the `output` passed to create */
};

/* Describes the file at `path`, which may not be there. */
struct output_mark output_mark_of(const char *path);

/* ---- by the process that gives names ---- */

struct output_journal_writer {
    int fd;                     /* locked; owned by the caller after end */
    int error;
    kstring_t text;             /* not written yet */
    char here[PATH_MAX];
};

/* Write a new journal. `output` is for messages. end returns 0 when the journal is on disk, or -1
   with errno set, and removes the journal. */
void output_journal_create(struct output_journal_writer *w, const char *path, const char *output);
void output_journal_add(struct output_journal_writer *w, const struct output_line *line);
int output_journal_end(struct output_journal_writer *w, const char *path);

/* ---- by another one ---- */

struct output_journal {
    char *output;               /* the caller frees it; NULL: the journal is incomplete */
    size_t n_files, n_named;    /* without old indexes */
    uint64_t n_bytes;           /* of files not renamed yet */
    bool can_be_finished;
};

/* Returns the name of the journal of the set whose first file, or directory of groups, has this
   temporary name. The caller frees it. NULL: it is not a temporary name. */
char *output_journal_path(const char *temporary);

/* Calls visit for each line. Returns 0, or -1 if visit does or the journal is incomplete. */
int output_journal_each(int fd, int (*visit)(void *arg, const struct output_line *line), void *arg);

/* Reads an open journal. With `acts`, renames the remaining files, or removes them if the set
   cannot be finished; then removes the copies of the journal in other directories. The caller
   removes this one, which may be gone. Returns 0, or -1 after a message; the call can be
   repeated. */
int output_journal_settle(int fd, bool acts, struct output_journal *journal);

/* ---- temporary files and journals that killed processes have left ---- */

/*
 * A process locks such a file while it writes it (output_path.h). So a file that has such a name,
 * is ours and can be locked is unused, unless locks do not work everywhere (file_owner.h).
 *
 * Order of calls: open; perhaps remove; close. Threads: one for each. No messages.
 */
enum output_leftover_state {
    OUTPUT_LEFTOVER_DEAD,       /* no process writes it; the file stays locked until close */
    OUTPUT_LEFTOVER_UNKNOWN,    /* the file system has no locks: a process may write it */
    OUTPUT_LEFTOVER_IN_USE,
    OUTPUT_LEFTOVER_FOREIGN,    /* no such file, or not ours */
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

/* Opens a file, whatever its name, and locks it. */
enum output_leftover_state output_leftover_open(const char *path, struct output_leftover *left);

/* The same for a process that is known to be dead, as the lock of its checkpoint shows: only the
   lock of the file decides, also on NFS, and not the file's age. */
enum output_leftover_state output_leftover_open_of_dead(const char *path,
                                                       struct output_leftover *left);

/* Removes the file that is open. Returns 0, or -1 with errno set. */
int output_leftover_remove(const char *path, const struct output_leftover *left);

/* Accepts one with the descriptor -1. */
void output_leftover_close(struct output_leftover *left);

/* Removes a temporary file or journal of a dead process, if it has such a name, is ours, and is
   unused. Accepts NULL. */
void output_leftover_drop(const char *path);

#endif
