/*
 * temp_clean.c -- see temp_clean.h.
 *
 * Handles journals first, then directories, then other files: a journal lists files that only have
 * to be renamed, and a checkpoint names the outputs that belong to it. Each is listed once.
 */
#include "cli/temp_clean.h"

#include "os/temp_dir.h"
#include "output/output_journal.h"
#include "resume/checkpoint_dir.h"
#include "resume/group_dir.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/terminal_text.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct cleaning {
    bool removes;
    const char *output;         /* file name of the only output to handle; NULL: all */
    bool has_groups;            /* `output` is a pattern of --split-by */
    unsigned n_found;
    struct file_id {
        dev_t device;
        ino_t inode;
    } *listed;                  /* already listed: a checkpoint may name them again */
    size_t n_listed, listed_room;
};

struct found {                  /* a directory, an output or a journal that no process uses */
    const char *path, *state;
    time_t since;
    uint64_t n_bytes;
    struct checkpoint_file file;        /* of a directory; id is NULL if it has none */
    const char *lost_part;      /* a missing directory that the sort needs, or NULL */
    struct output_journal journal;      /* {0}: none */
};

/* True if a file or directory is already listed; else adds it to the list. */
static bool is_listed(struct cleaning *c, const struct stat *st)
{
    for (size_t i = 0; i < c->n_listed; i++)
        if (c->listed[i].device == st->st_dev && c->listed[i].inode == st->st_ino) return true;
    xgrow(&c->listed, &c->listed_room, c->n_listed + 1, c->n_listed + 15, sizeof *c->listed);
    c->listed[c->n_listed++] = (struct file_id){st->st_dev, st->st_ino};
    return false;
}

/* ---- printing ---- */

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a line, with control characters made harmless. */
static void say(const char *format, ...)
{
    kstring_t text = {0, 0, NULL};
    va_list args;
    va_start(args, format);
    xalloc_require(kvsprintf(&text, format, args) >= 0);
    va_end(args);
    size_t room = TERMINAL_TEXT_GROWTH * text.l + 1;
    char *shown = xmalloc(room);
    (void)terminal_text(text.s, shown, room);
    (void)puts(shown);
    free(shown);
    ks_free(&text);
}

/* `state`: "in use" or "in use?". */
static void say_in_use(const char *path, const char *state)
{
    say("%-10s %8s %12s     %s", state, "", "", path);
}

/* Prints what was found, whether it is now removed or finished, and how many files of a journal are
   renamed. */
static void say_found(struct found *found, bool is_done)
{
    struct output_journal *journal = &found->journal;
    bool finishes = journal->can_be_finished;
    double hours = difftime(time(NULL), found->since) / 3600;
    char age[32], part[48] = "";
    (void)snprintf(age, sizeof age, hours >= 48 ? "%.0f d" : hours >= 1 ? "%.1f h" : "%.0f min",
                   hours >= 48 ? hours / 24 : hours >= 1 ? hours : hours * 60);
    if (found->file.n_directories > 1)
        (void)snprintf(part, sizeof part, " (part %u of %zu)", found->file.directory + 1,
                       found->file.n_directories);
    say("%-10s %8s %12.1f MB  %s%s%s", found->state, age, 1e-6 * (double)found->n_bytes,
        found->path, part, !is_done ? "" : finishes ? ", finished" : ", removed");
    if (finishes)
        say("           unfinished publishing of '%s': %zu of %zu files %s their names%s",
            journal->output, journal->n_named, journal->n_files, is_done ? "had" : "have",
            is_done ? "" : "; --yes gives the others theirs");
    free(journal->output);
}

/* Prints which sort it is and how to resume it, or why that is impossible. */
static void say_how(const struct found *found)
{
    char command[CHECKPOINT_COMMAND_BYTES];
    const char *output = found->file.output.path, *to = output ? output : "standard output";
    if (found->lost_part)
        say("           sort to '%s'; it cannot be finished without what is not on this host: '%s'",
            to, found->lost_part);
    else
        say("           sort to '%s'; to %s: %s", to,
            checkpoint_is_partial(&found->file) ? "write what there is" : "finish it",
            checkpoint_command_of(&found->file, found->path, command));
}

static int refuse_without_locks(const char *path)
{
    diag_error("'%s' is left alone: its file system has no locks, so a sort may use it; remove "
               "it yourself if none does", path);
    return -1;
}

static int refuse_to_remove(const char *path)
{
    diag_error("cannot remove '%s': %s", path, strerror(errno));
    return -1;
}

/* ---- journals, and outputs that are not complete ---- */

static int list_file(void *arg, const struct output_line *line)
{
    struct stat st;
    if (lstat(line->from, &st) == 0) (void)is_listed(arg, &st);
    return 0;
}

/* Lists a report. The files of groups are in a directory that is listed itself. */
static int list_report(void *arg, const struct output_line *line)
{
    return line->role == OUTPUT_EXTRA ? list_file(arg, line) : 0;
}

static int has_name(void *arg, const struct output_line *line)
{
    const struct cleaning *c = arg;
    return strcmp(path_name(line->to), c->output) == 0 ? -1 : 0;
}

/* Reads an open journal. `finishes`: renames its files, or removes them if that is impossible.
   Calls `list` for its files. Returns 0, or -1 after a message. */
static int finish_journal(struct cleaning *c, int fd, bool finishes,
                          int (*list)(void *arg, const struct output_line *line),
                          struct found *found)
{
    int r = output_journal_settle(fd, finishes, &found->journal);
    if (!found->journal.can_be_finished) return 0;
    found->state = "unfinished";
    (void)output_journal_each(fd, list, c);
    return r;
}

/* True if a temporary name whose first n_before bytes are the name of an output, perhaps truncated,
   belongs to the requested output or its index. Directories of groups have the same name for all
   patterns. */
static bool is_of_output(const struct cleaning *c, const char *name, size_t n_before)
{
    static const char *const endings[] = {"", ".csi", ".bai", ".crai"};
    if (!c->output) return true;
    if (c->has_groups && group_dir_is_name(name, n_before)) return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char *whole = xasprintf("%s%s", c->output, endings[i]);
        size_t n = strlen(whole);
        bool is_cut = n > n_before && n_before >= TEMP_DIR_BASE_BYTES;
        bool same = (n == n_before || is_cut) && memcmp(name, whole, n_before) == 0;
        free(whole);
        if (same) return true;
    }
    return false;
}

/* Lists a file that is open, and removes it if told to. Returns 0, or -1 after a message. */
static int clean_open_file(struct cleaning *c, const char *path, const struct output_leftover *left,
                           bool is_dead)
{
    struct found found = {.path = path, .state = "useless", .since = left->st.st_mtime};
    bool removes = c->removes && is_dead;
    int r = c->removes && !is_dead ? refuse_without_locks(path) : 0;
    if (output_leftover_is_journal(path_name(path)) &&
        finish_journal(c, left->fd, removes, list_file, &found) < 0)
        r = -1;
    found.n_bytes = found.journal.n_bytes + (uint64_t)left->st.st_blocks * 512;
    if (removes && r == 0 && output_leftover_remove(path, left) < 0 && errno != ENOENT)
        r = refuse_to_remove(path);
    say_found(&found, removes && r == 0);
    return r;
}

/* Lists a file if it is an unfinished output of a killed process, or a journal, and removes it if
   told to. `is_wanted`: also a journal of other outputs. Returns 0, or -1 after a message. */
static int clean_file(struct cleaning *c, const char *path, bool is_wanted)
{
    struct output_leftover left;
    size_t n_output;
    const char *name = path_name(path);
    if (!output_leftover_is_name(name, &n_output)) return 0;
    enum output_leftover_state state = output_leftover_open(path, &left);
    bool in_use = state == OUTPUT_LEFTOVER_IN_USE;
    /* A journal is wanted if any of its files is. Those of a live process are listed anyway. */
    if (!is_wanted)
        is_wanted = !output_leftover_is_journal(name) ||
                    (!in_use && (is_of_output(c, name, n_output) ||
                                 output_journal_each(left.fd, has_name, c) < 0));
    int r = 0;
    if (state != OUTPUT_LEFTOVER_FOREIGN && is_wanted && !is_listed(c, &left.st)) {
        c->n_found++;
        if (in_use)
            say_in_use(path, "in use");
        else
            r = clean_open_file(c, path, &left, state == OUTPUT_LEFTOVER_DEAD);
    }
    output_leftover_close(&left);
    return r;
}

/* ---- directories ---- */

/* Adds up the disk usage of all files in a directory. A run briefly has two names while it is moved
   into a database. */
static uint64_t count_bytes(const char *path)
{
    uint64_t n_bytes = 0;
    char *name = xstrdup(path), *paths[] = {name, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *entry; tree && (entry = fts_read(tree)) != NULL;)
        if (entry->fts_info == FTS_F)
            n_bytes += (uint64_t)entry->fts_statp->st_blocks * 512 / entry->fts_statp->st_nlink;
    if (tree) (void)fts_close(tree);
    free(name);
    return n_bytes;
}

/* Reads the checkpoint file. Returns the state of the checkpoint. */
static const char *read_checkpoint(const struct checkpoint_dir *dir, struct found *found)
{
    const char *problem;
    if (!checkpoint_dir_has_file(found->path)) return "useless";
    if (checkpoint_dir_read(dir, &found->file, &problem) < 0) return "damaged";
    found->lost_part = checkpoint_lost_part(&found->file);
    if (found->lost_part) return "damaged";
    if (found->file.directory > 0) return "useless";    /* its checkpoint does not list it */
    if (checkpoint_is_partial(&found->file)) return "partial";
    return found->file.state == CHECKPOINT_LOADED ? "complete" : "resumable";
}

static int clean_directory(struct cleaning *c, const char *path);

/* Cleans up the journal of this temporary file, or this directory of groups. */
static int clean_names_of(struct cleaning *c, const char *temporary)
{
    size_t n_output;
    if (temp_dir_is_name(path_name(temporary), &n_output)) return clean_directory(c, temporary);
    char *journal = output_journal_path(temporary);
    int r = journal ? clean_file(c, journal, true) : 0;
    free(journal);
    return r;
}

/* Lists one of the other directories of a sort, and removes it if told to. */
static int clean_part(struct cleaning *c, const struct found *first, size_t i, bool removes)
{
    struct found part = *first;
    struct checkpoint_dir dir;
    struct stat st;
    const char *problem;
    part.path = first->file.directories[i];
    part.file.directory = (unsigned)i;
    part.journal = (struct output_journal){0};
    int r = checkpoint_dir_open(part.path, &dir, &problem);
    if (r == CHECKPOINT_LOST && !removes) return 0;
    if (r != CHECKPOINT_OK) {
        if (r == CHECKPOINT_LOST)
            say("           its part '%s' is not on this host; without this one it is useless",
                part.path);
        else
            diag_error("'%s' %s", part.path, problem);
        return r == CHECKPOINT_LOST ? 0 : -1;
    }
    if (fstat(dir.fd, &st) == 0) (void)is_listed(c, &st);
    part.n_bytes = count_bytes(part.path);
    r = removes && temp_dir_remove(part.path) < 0 ? refuse_to_remove(part.path) : 0;
    say_found(&part, removes && r == 0);
    checkpoint_dir_close(&dir);
    return r;
}

/* Calls finish_journal if the directory has a journal of groups. */
static int finish_groups(struct cleaning *c, bool finishes, struct found *found)
{
    struct output_leftover left = {.fd = -1};
    char *name = output_journal_path(found->path);
    if (name) (void)output_leftover_open(name, &left);
    int r = left.fd < 0 ? 0 : finish_journal(c, left.fd, finishes, list_report, found);
    output_leftover_close(&left);
    free(name);
    return r;
}

/* Lists a directory that no process uses, with what belongs to it, and removes these if told to. */
static int clean_dead(struct cleaning *c, const struct checkpoint_dir *dir, struct found *found)
{
    const struct checkpoint_file *file = &found->file;
    const size_t n_names = checkpoint_n_temporaries(&file->output);
    const char *name;
    bool removes = c->removes && dir->is_locked;
    int r = c->removes && !removes ? refuse_without_locks(found->path) : 0;
    /* First rename complete results: the checkpoint stays if that fails. */
    if (finish_groups(c, removes, found) < 0) r = -1;
    for (size_t i = 0; i < n_names; i++)
        if ((name = checkpoint_temporary(&file->output, i)) && clean_names_of(c, name) < 0) r = -1;
    removes = removes && r == 0;
    if (removes && temp_dir_remove(found->path) < 0) r = refuse_to_remove(found->path);
    removes = removes && r == 0;
    say_found(found, removes);
    if (file->n_directories > 0 && !removes) say_how(found);
    for (size_t i = 0; i < n_names; i++)
        if ((name = checkpoint_temporary(&file->output, i)) && clean_file(c, name, true) < 0)
            r = -1;
    for (size_t i = 1; file->directory == 0 && i < file->n_directories; i++)
        if (clean_part(c, found, i, removes) < 0) r = -1;
    return r;
}

/* Lists a directory if it is one of rocksort's, and removes it if told to. Of a sort with several
   directories the first one leads to the others. Returns 0, or -1 after a message. */
static int clean_directory(struct cleaning *c, const char *path)
{
    struct checkpoint_dir dir;
    struct stat st;
    struct found found = {.path = path};
    const char *problem;
    char *first = checkpoint_dir_first(path);
    if (first) {
        int r = clean_directory(c, first);
        free(first);
        return r;
    }
    if (lstat(path, &st) < 0 || (S_ISDIR(st.st_mode) && is_listed(c, &st))) return 0;
    int r = checkpoint_dir_open(path, &dir, &problem);
    if (r == CHECKPOINT_LOST || r == CHECKPOINT_FOREIGN) return 0;
    c->n_found++;
    if (r == CHECKPOINT_BUSY) say_in_use(path, "in use");
    if (r == CHECKPOINT_ELSEWHERE) {
        say_in_use(path, "in use?");
        say("           it %s", problem);
    }
    if (r == CHECKPOINT_CLOSED || (r == CHECKPOINT_ELSEWHERE && c->removes)) {
        diag_error("'%s' %s", path, problem);
        return -1;
    }
    if (r != CHECKPOINT_OK) return 0;
    /* Keep it locked until it is removed, so that no process resumes it meanwhile. */
    found.state = read_checkpoint(&dir, &found);
    if (fstat(dir.lock_fd, &st) == 0) found.since = st.st_mtime;
    found.n_bytes = count_bytes(path);
    r = clean_dead(c, &dir, &found);
    checkpoint_file_release(&found.file);
    checkpoint_dir_close(&dir);
    return r;
}

/* ---- places ---- */

enum kind {                     /* in the order in the header of this file */
    JOURNAL,
    DIRECTORY,
    OUTPUT,
    N_KINDS,
    NOT_OURS = N_KINDS,
};

/* The kind of a name. The outputs of a journal are checked later. */
static enum kind kind_of(const char *name, const struct cleaning *c)
{
    size_t n;
    if (output_leftover_is_journal(name)) return JOURNAL;
    bool is_directory = temp_dir_is_name(name, &n);
    if (!is_directory && !output_leftover_is_name(name, &n)) return NOT_OURS;
    return !is_of_output(c, name, n) ? NOT_OURS : is_directory ? DIRECTORY : OUTPUT;
}

/* Cleans up in a directory. */
static int clean_below(struct cleaning *c, const char *place)
{
    struct dirent **entries;
    int r = 0, n = scandir(place, &entries, NULL, alphasort);
    if (n < 0) {
        diag_error("cannot look into '%s': %s", place, strerror(errno));
        return -1;
    }
    for (int kind = 0; kind < N_KINDS; kind++) {
        for (int i = 0; i < n; i++) {
            if ((int)kind_of(entries[i]->d_name, c) != kind) continue;
            char *path = temp_dir_path(place, entries[i]->d_name);
            int cleaned = kind == DIRECTORY ? clean_directory(c, path)
                                            : clean_file(c, path, false);
            if (cleaned < 0) r = -1;
            free(path);
        }
    }
    for (int i = 0; i < n; i++) free(entries[i]);
    free(entries);
    return r;
}

/* Cleans up leftovers of the output of this name. */
static int clean_output(struct cleaning *c, const char *name)
{
    char *parent = path_parent(name), *place = path_fixed_parent(name);
    c->output = path_name(name);
    c->has_groups = strchr(c->output, '%') || strcmp(parent, place) != 0;
    free(parent);
    int r = clean_below(c, place);
    free(place);
    return r;
}

/* Cleans up beside the output `name`, which need not exist, and beside its target if it is a
   link. */
static int clean_beside(struct cleaning *c, const char *name)
{
    struct stat st;
    bool is_link = lstat(name, &st) == 0 && S_ISLNK(st.st_mode);
    char *real = is_link ? realpath(name, NULL) : NULL;
    int r = real ? clean_output(c, real) : 0;
    free(real);
    if (clean_output(c, name) < 0) r = -1;
    if (r < 0 || c->n_found > 0 || access(name, F_OK) == 0) return r;
    diag_error("cannot find '%s', nor temporary data beside it; if -T put them elsewhere, give "
               "that directory", name);
    return -1;
}

static int clean_place(struct cleaning *c, const char *name)
{
    struct stat st;
    size_t n_output;
    int r = 0;
    if (temp_dir_is_name(path_name(name), &n_output))
        r = clean_directory(c, name);
    else
        r = clean_file(c, name, false);
    if (r < 0 || c->n_found > 0) return r;
    bool is_place = stat(name, &st) == 0 && S_ISDIR(st.st_mode);
    return is_place ? clean_below(c, name) : clean_beside(c, name);
}

int temp_clean(const char *path, bool remove)
{
    struct cleaning cleaning = {.removes = remove};
    if (!*path) {
        diag_error("option --clean takes a directory or an output file, not ''");
        return -1;
    }
    /* Completion by a shell appends a slash to the name of a directory. */
    char *name = xstrdup(path);
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--) name[n - 1] = '\0';
    int r = clean_place(&cleaning, name);
    bool is_beside = cleaning.output != NULL;
    if (r == 0 && cleaning.n_found == 0)
        say("no temporary data of rocksort %s '%s'%s", is_beside ? "beside" : "in", path,
            is_beside ? "; if -T put them elsewhere, give that directory" : "");
    free(cleaning.listed);
    free(name);
    return r;
}
