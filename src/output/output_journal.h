/*
 * output_journal.h -- the list of files that are about to get their names, on the disk before the
 * first of them has its own. A later process gives the others theirs if this one dies.
 *
 * All files are complete when the journal is written. So it is finished by renaming what is left:
 * an older file that was replaced is gone, and cannot come back. A file is known by its size and
 * time of change. A set can be finished if each output is there, under one of its two names. If an
 * output was removed, or another sort has replaced it, the rest would stand beside files that it
 * does not belong to, and goes. So it does if no output has its name and another sort has made
 * files of these names since; if some have, the file in the way must be moved away first. An index
 * or a report that is missing or was replaced is left out.
 *
 * The file: texts that end with NUL.
 *     rocksort-names 1, output
 *     for each line: "ROLE SIZE TIME SIZE TIME" of the file and of what stood in its place (size
 *     -1: nothing), its temporary name, its name, both absolute
 *     end
 * Without its end it was not complete when the process died: then no file has its name yet.
 *
 * The journal of pieces lies in their directory, whose lock shows whether the process lives. Others
 * lie beside the last of the outputs, and are locked as that is: OUTPUT.rocksort.N.N.journal for
 * OUTPUT.rocksort.N.N.tmp. Each other directory that has a file of the set has the same journal, so
 * that a process that cleans up there alone knows what the file belongs to.
 *
 * Order of calls: create, add, end; or settle, of a journal that is open and locked. One thread at
 * a time for each.
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

enum output_role {              /* in the order in which they are dealt with */
    OUTPUT_STALE,               /* an index of the old output, which is removed: `from` is what it is
                                   called until the new output is there */
    OUTPUT_MAIN,                /* an output: all get their names, or none */
    OUTPUT_EXTRA,               /* an index or a report: outputs stay without it */
};

struct output_line {
    enum output_role role;
    const char *from, *to;      /* the temporary name and the final one */
    struct output_mark is, was; /* the file, and what stood at `to` */
    const char *output;         /* of a journal that is read: what create was told */
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

/* Make a new journal. `output` is for messages. end returns 0 when all is on the disk, or -1 with
   errno set; then the journal is removed. */
void output_journal_create(struct output_journal_writer *w, const char *path, const char *output);
void output_journal_add(struct output_journal_writer *w, const struct output_line *line);
int output_journal_end(struct output_journal_writer *w, const char *path);

/* ---- by another one ---- */

struct output_journal {
    char *output;               /* the caller frees it; NULL: the journal is not whole */
    size_t n_files, n_named;    /* without old indexes */
    uint64_t n_bytes;           /* of files that lack their names */
    bool can_be_finished;
};

/* Returns the name of the journal that a set has whose first file has this temporary name: a
   file's, or that of the directory of pieces. The caller frees it. NULL: it is no temporary
   name. */
char *output_journal_path(const char *temporary);

/* Calls visit for each line. Returns 0, or -1 if visit does or the journal is not whole. */
int output_journal_each(int fd, int (*visit)(void *arg, const struct output_line *line), void *arg);

/* Looks at an open journal. If it `acts`, gives the files that lack them their names, or removes
   these files if the journal cannot be finished; and removes the same journals of other
   directories. The caller removes this one, which may be gone. Returns 0, or -1 after a message;
   then it can be tried again. */
int output_journal_settle(int fd, bool acts, struct output_journal *journal);

/* ---- temporary files and journals that killed processes have left ---- */

/*
 * While a process writes such a file, the file is locked (output_path.h), and belongs to the user
 * who started the process. So if a file has such a name, is ours and can be locked, no process uses
 * it any more, unless locks do not work everywhere; file_owner.h has the rule for that.
 *
 * Order of calls: open; remove, if that is wanted; close. One thread at a time for each. No
 * messages.
 */
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
   shows: the lock alone decides, and on NFS, too, there is no need to wait until the file is
   old. */
enum output_leftover_state output_leftover_open_of_dead(const char *path,
                                                       struct output_leftover *left);

/* Removes the file that is open. Returns 0, or -1 with errno set. */
int output_leftover_remove(const char *path, const struct output_leftover *left);

/* Accepts one with the descriptor -1. */
void output_leftover_close(struct output_leftover *left);

/* Removes the temporary file or journal of a process that is known to be dead, if it has the name
   of one, is ours, and no other process has it. Accepts NULL. */
void output_leftover_drop(const char *path);

#endif
