/* temp_clean.c -- see temp_clean.h. */
#include "command/temp_clean.h"

#include "output/output_journal.h"
#include "output/output_leftover.h"
#include "pipeline/piece_dir.h"
#include "store/checkpoint.h"
#include "store/temp_dir.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/terminal_text.h"
#include "util/xalloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct found {
    const char *state;
    double age_seconds;
    uint64_t n_bytes;
    size_t part, n_parts;       /* of a sort with several temporary directories */
    const char *lost_part;      /* a directory without which the sort cannot be finished, or NULL */
    bool has_file;
    struct checkpoint_file file;    /* owned */
    struct output_journal journal;      /* {0}: there is none */
};

struct cleaning {
    bool removes;
    const char *output;         /* only what belongs to this output, a name without its directory;
                                   NULL: all */
    bool has_pieces;            /* its name is a pattern of --split-by */
    unsigned n_found;
    struct file_id {
        dev_t device;
        ino_t inode;
    } *listed;                  /* directories and outputs: a checkpoint may name them again */
    size_t n_listed, listed_room;
};

/* ---- what there is ---- */

/* True if a file or directory is listed already; else it is from now on. */
static bool is_listed(struct cleaning *c, const struct stat *st)
{
    for (size_t i = 0; i < c->n_listed; i++)
        if (c->listed[i].device == st->st_dev && c->listed[i].inode == st->st_ino) return true;
    xgrow(&c->listed, &c->listed_room, c->n_listed + 1, c->n_listed + 15, sizeof *c->listed);
    c->listed[c->n_listed++] = (struct file_id){st->st_dev, st->st_ino};
    return false;
}

/* Adds up the bytes on disk of the files in an open directory and, with `below`, in its
   subdirectories. Closes the directory. */
static uint64_t count_bytes(int dir_fd, bool below)
{
    uint64_t n_bytes = 0;
    DIR *dir = fdopendir(dir_fd);
    if (!dir) {
        (void)close(dir_fd);
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        struct stat st;
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        /* A run that is moved into a database has two names for a moment. */
        n_bytes += (uint64_t)st.st_blocks * 512 / (S_ISREG(st.st_mode) ? st.st_nlink : 1);
        if (!S_ISDIR(st.st_mode) || !below) continue;
        int fd = openat(dirfd(dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) n_bytes += count_bytes(fd, false);
    }
    (void)closedir(dir);
    return n_bytes;
}

/* Reads the checkpoint file. Returns the state of the checkpoint. */
static const char *read_checkpoint(const struct checkpoint_dir *dir, struct found *found)
{
    const struct checkpoint_file *file = &found->file;
    const char *problem;
    if (!checkpoint_dir_has_file(dir)) return "useless";
    if (checkpoint_dir_read(dir, &found->file, &problem) < 0) return "damaged";
    found->has_file = true;
    found->part = file->directory + 1;
    found->n_parts = file->n_directories;
    found->lost_part = checkpoint_lost_part(file);
    if (found->lost_part) return "damaged";
    if (checkpoint_is_partial(file)) return "partial";
    return file->state == CHECKPOINT_LOADED ? "complete" : "resumable";
}

static void look_at(const struct checkpoint_dir *dir, struct found *found)
{
    struct stat st;
    *found = (struct found){.n_parts = 1};
    found->state = read_checkpoint(dir, found);
    if (fstat(dir->lock_fd, &st) == 0) found->age_seconds = difftime(time(NULL), st.st_mtime);
    int fd = dup(dir->fd);
    if (fd >= 0) found->n_bytes = count_bytes(fd, true);
}

/* True if a process was killed when it had just made the directory, which has no lock yet. */
static bool is_stillborn(const char *path, struct found *found)
{
    enum { LONG_SECONDS = 60 };         /* a sort needs microseconds to make the lock */
    struct stat st;
    bool empty = true;
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 077) != 0)
        return false;
    *found = (struct found){.state = "useless", .n_parts = 1};
    found->age_seconds = difftime(time(NULL), st.st_ctime);
    if (found->age_seconds < LONG_SECONDS) return false;
    DIR *dir = opendir(path);
    if (!dir) return false;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        empty &= strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                 strcmp(entry->d_name, TEMP_DIR_LOCK_NAME ".new") == 0;
    (void)closedir(dir);
    return empty;
}

/* ---- printing ---- */

/* Prints a text without newlines and characters that a terminal would act on. */
static void print_safely(const char *text)
{
    char shown[TERMINAL_TEXT_GROWTH * CHECKPOINT_COMMAND_BYTES];
    (void)terminal_text(text, shown, sizeof shown);
    (void)fputs(shown, stdout);
}

/* Says which sort it is and how to go on with it, or why that is not possible. */
static void print_how(const char *path, const struct found *found)
{
    char command[CHECKPOINT_COMMAND_BYTES];
    const struct checkpoint_file *file = &found->file;
    const char *output = file->output.path;
    bool partial = checkpoint_is_partial(file);
    char *real = realpath(path, NULL);
    char *name = output ? xasprintf("%.*s", (int)checkpoint_output_length(output), output) : NULL;
    (void)printf("           sort to '");
    print_safely(name ? name : "standard output");
    if (!found->lost_part) {
        (void)printf("'; to %s: ", partial ? "write what there is" : "finish it");
        const struct checkpoint_resuming resuming = {
            .path = real ? real : path, .partial = partial, .has_output = output != NULL};
        print_safely(checkpoint_command(&resuming, command));
    } else {
        (void)printf("'; it cannot be finished without what is not on this host: '");
        print_safely(found->lost_part);
        (void)putchar('\'');
    }
    (void)putchar('\n');
    free(name);
    free(real);
}

/* `state`: "in use" or "in use?". */
static void print_in_use(const char *path, const char *state)
{
    (void)printf("%-10s %8s %12s     ", state, "", "");
    print_safely(path);
    (void)putchar('\n');
}

static void print_found(const char *path, const struct found *found, const char *done)
{
    char age[32], part[48] = "";
    double hours = found->age_seconds / 3600;
    if (hours >= 48)
        (void)snprintf(age, sizeof age, "%.0f d", hours / 24);
    else if (hours >= 1)
        (void)snprintf(age, sizeof age, "%.1f h", hours);
    else
        (void)snprintf(age, sizeof age, "%.0f min", hours * 60);
    if (found->n_parts > 1)
        (void)snprintf(part, sizeof part, " (part %zu of %zu)", found->part, found->n_parts);
    (void)printf("%-10s %8s %12.1f MB  ", found->state, age, 1e-6 * (double)found->n_bytes);
    print_safely(path);
    (void)printf("%s%s\n", part, done);
}

static int refuse_without_locks(const char *path)
{
    diag_error("'%s' is left alone: its file system has no locks, so a sort may use it; remove "
               "it yourself if none does", path);
    return -1;
}

/* ---- files that wait for their names ---- */

static int list_file(void *arg, const struct output_line *line)
{
    struct stat st;
    if (lstat(line->from, &st) == 0) (void)is_listed(arg, &st);
    return 0;
}

/* The files of pieces themselves lie in a directory that stays, too. */
static int list_report(void *arg, const struct output_line *line)
{
    return line->role == OUTPUT_EXTRA ? list_file(arg, line) : 0;
}

static int has_name(void *arg, const struct output_line *line)
{
    const struct cleaning *c = arg;
    return strcmp(path_name(line->to), c->output) == 0 ? -1 : 0;
}

static bool is_of_output(const struct cleaning *c, const char *name, size_t n_before);

/* Looks at a journal that is open. If told to, finishes it, or removes its files if that cannot be.
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

/* Prints what is found, and how far the files of a journal had their names. */
static void print_journal(const char *path, struct found *found, bool is_done)
{
    const struct output_journal *journal = &found->journal;
    print_found(path, found,
                !is_done ? "" : journal->can_be_finished ? ", finished" : ", removed");
    if (journal->can_be_finished) {
        (void)printf("           unfinished publishing of '");
        print_safely(journal->output);
        (void)printf("': %zu of %zu files %s their names%s\n", journal->n_named, journal->n_files,
                     is_done ? "had" : "have", is_done ? "" : "; --yes gives the others theirs");
    }
    free(journal->output);
}

/* ---- temporary outputs and journals ---- */

/* Lists a file that is open, and removes it if told to. Returns 0, or -1 after a message. */
static int clean_open_file(struct cleaning *c, const char *path, const struct output_leftover *left,
                           bool removes, bool is_journal)
{
    struct found found = {.state = "useless", .n_parts = 1,
                          .age_seconds = difftime(time(NULL), left->st.st_mtime)};
    int r = c->removes && !removes ? refuse_without_locks(path) : 0;
    if (is_journal && finish_journal(c, left->fd, removes, list_file, &found) < 0) r = -1;
    found.n_bytes = found.journal.n_bytes + (uint64_t)left->st.st_blocks * 512;
    if (removes && r == 0 && output_leftover_remove(path, left) < 0 && errno != ENOENT) {
        diag_error("cannot remove '%s': %s", path, strerror(errno));
        r = -1;
    }
    print_journal(path, &found, removes && r == 0);
    return r;
}

/* Lists a file if it is an output that a killed process has not finished, or a journal, and removes
   it if told to. Returns 0, or -1 after a message. */
static int clean_file(struct cleaning *c, const char *path)
{
    struct output_leftover left;
    size_t n_output;
    const char *name = path_name(path);
    bool is_journal = output_leftover_is_journal(name);
    if (!output_leftover_is_name(name, &n_output)) return 0;
    enum output_leftover_state state = output_leftover_open(path, &left);
    bool in_use = state == OUTPUT_LEFTOVER_IN_USE;
    /* A journal is wanted if any of its files is. Those of a living process are listed anyway. */
    bool is_wanted = !is_journal || (!in_use && (is_of_output(c, name, n_output) ||
                                                 output_journal_each(left.fd, has_name, c) < 0));
    int r = 0;
    if (state != OUTPUT_LEFTOVER_FOREIGN && is_wanted && !is_listed(c, &left.st)) {
        c->n_found++;
        if (in_use)
            print_in_use(path, "in use");
        else
            r = clean_open_file(c, path, &left, c->removes && state == OUTPUT_LEFTOVER_DEAD,
                                is_journal);
    }
    output_leftover_close(&left);
    return r;
}

/* ---- directories ---- */

static int clean_part(struct cleaning *c, const char *path, bool alone);

/* Cleans up the journal of the file with this temporary name, or the directory of pieces, whatever
   the other output is called. */
static int clean_names_of(struct cleaning *c, const char *temporary)
{
    const char *output = c->output;
    size_t n_output;
    char *journal = output_journal_path(temporary);
    c->output = NULL;
    int r = temp_dir_is_name(path_name(temporary), &n_output) ? clean_part(c, temporary, true)
            : journal                                         ? clean_file(c, journal) : 0;
    c->output = output;
    free(journal);
    return r;
}

/* Prints what a directory is and, if told to, removes it and the outputs that its sort has not
   finished. Returns 0, or -1 after a message. */
static int clean_found(struct cleaning *c, const char *path, bool removes, struct found *found)
{
    const char *names[CHECKPOINT_N_TEMPORARIES];        /* NULL without a checkpoint file */
    for (int i = 0; i < CHECKPOINT_N_TEMPORARIES; i++)
        names[i] = found->file.output.temporaries[i];
    /* Results that only lack their names come first: the checkpoint stays if they cannot get them. */
    int r = 0;
    for (int i = 0; i < CHECKPOINT_N_TEMPORARIES; i++)
        if (names[i] && clean_names_of(c, names[i]) < 0) r = -1;
    if (removes && r == 0 && temp_dir_remove(path) < 0) {
        diag_error("cannot remove '%s': %s", path, strerror(errno));
        r = -1;
    }
    print_journal(path, found, removes && r == 0);
    if (!found->has_file) return r;
    if (!removes) print_how(path, found);
    for (int i = 0; i < CHECKPOINT_N_TEMPORARIES; i++)
        if (names[i] && clean_file(c, names[i]) < 0) r = -1;
    return r;
}

/* True if a process uses one of the other directories of a sort, or may use it. */
static bool has_used_part(const struct checkpoint_file *file)
{
    bool used = false;
    for (size_t i = 0; i < file->n_directories && !used; i++) {
        struct checkpoint_dir dir;
        const char *problem;
        if (i == file->directory) continue;
        int r = checkpoint_dir_open_patiently(file->directories[i], &dir, &problem);
        used = r == CHECKPOINT_BUSY || r == CHECKPOINT_ELSEWHERE || r == CHECKPOINT_CLOSED;
        if (r == CHECKPOINT_OK) checkpoint_dir_close(&dir);
    }
    return used;
}

/* True if a directory is still that part of the sort whose checkpoint file this is. */
static bool is_part(const struct checkpoint_file *file, size_t i)
{
    struct checkpoint_file other;
    int r = checkpoint_dir_peek(file->directories[i], &other);
    if (r != CHECKPOINT_OK) return r == CHECKPOINT_BAD;         /* it may have been full */
    bool same = strcmp(other.id, file->id) == 0;
    checkpoint_file_release(&other);
    return same;
}

/* Cleans up the other directories of a sort, wherever they are: the sort needs all of them. */
static int clean_other_parts(struct cleaning *c, const struct checkpoint_file *file,
                             bool removed)
{
    int r = 0;
    for (size_t i = 0; i < file->n_directories; i++) {
        const char *part = file->directories[i];
        if (i == file->directory) continue;
        if (is_part(file, i)) {
            if (clean_part(c, part, true) < 0) r = -1;
        } else if (removed && access(part, F_OK) < 0) {
            (void)printf("           its part '");
            print_safely(part);
            (void)printf("' is not on this host; without this one it is useless\n");
        }
    }
    return r;
}

/* If the directory has the journal of pieces: as finish_journal. */
static int finish_pieces(struct cleaning *c, const char *path, bool finishes, struct found *found)
{
    struct output_leftover left = {.fd = -1};
    char *name = output_journal_path(path);
    if (name) (void)output_leftover_open(name, &left);
    int r = left.fd < 0 ? 0 : finish_journal(c, left.fd, finishes, list_report, found);
    output_leftover_close(&left);
    free(name);
    return r;
}

/* A directory that no process uses, or none that shows it. `alone`: without the other directories
   of its sort. */
static int clean_dead(struct cleaning *c, const char *path, const struct checkpoint_dir *dir,
                      bool alone)
{
    struct found found;
    look_at(dir, &found);
    bool has_others = !alone && found.has_file && found.n_parts > 1;
    if (has_others && has_used_part(&found.file)) {
        print_in_use(path, "in use");
        checkpoint_file_release(&found.file);
        return 0;
    }
    bool may_remove = c->removes && dir->is_locked;
    int r = c->removes && !may_remove ? refuse_without_locks(path) : 0;
    if (finish_pieces(c, path, may_remove, &found) < 0) {
        r = -1;
        may_remove = false;
    }
    if (clean_found(c, path, may_remove, &found) < 0) r = -1;
    if (has_others && clean_other_parts(c, &found.file, may_remove && r == 0) < 0) r = -1;
    if (found.has_file) checkpoint_file_release(&found.file);
    return r;
}

/* Lists the outputs that a process of another host may write. Their locks may not be seen here, and
   the file of an index may not have been written to for long. */
static void list_outputs_elsewhere(struct cleaning *c, const char *path)
{
    struct checkpoint_file file;
    struct stat st;
    if (checkpoint_dir_peek(path, &file) != CHECKPOINT_OK) return;
    for (int i = 0; i < CHECKPOINT_N_TEMPORARIES; i++) {
        const char *name = file.output.temporaries[i];
        if (name && lstat(name, &st) == 0 && !is_listed(c, &st)) print_in_use(name, "in use?");
    }
    checkpoint_file_release(&file);
}

/* Lists a directory in which a process of another host may work. */
static int refuse_elsewhere(struct cleaning *c, const char *path, const char *problem)
{
    print_in_use(path, "in use?");
    (void)printf("           it %s\n", problem);
    list_outputs_elsewhere(c, path);
    if (!c->removes) return 0;
    diag_error("'%s' %s", path, problem);
    return -1;
}

/* Lists one directory if it is one of rocksort's, and removes it if told to. `alone`: without the
   other directories of its sort. Returns 0, or -1 after a message. */
static int clean_part(struct cleaning *c, const char *path, bool alone)
{
    struct checkpoint_dir dir;
    struct found found;
    struct stat st;
    const char *problem;
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && is_listed(c, &st)) return 0;
    int r = checkpoint_dir_open_patiently(path, &dir, &problem);
    if (r == CHECKPOINT_LOST || (r == CHECKPOINT_FOREIGN && !is_stillborn(path, &found))) return 0;
    c->n_found++;
    if (r == CHECKPOINT_FOREIGN) return clean_found(c, path, c->removes, &found);
    if (r == CHECKPOINT_ELSEWHERE) return refuse_elsewhere(c, path, problem);
    if (r == CHECKPOINT_CLOSED) {
        diag_error("'%s' %s", path, problem);
        return -1;
    }
    if (r == CHECKPOINT_BUSY) {
        print_in_use(path, "in use");
        return 0;
    }
    /* It stays locked until it is removed, so that no process resumes it meanwhile. */
    r = clean_dead(c, path, &dir, alone);
    checkpoint_dir_close(&dir);
    return r;
}

static int clean_directory(struct cleaning *c, const char *path)
{
    return clean_part(c, path, false);
}

/* ---- places ---- */

/* True if a temporary name whose first n_before bytes are the name of an output belongs to the
   output that is asked for, or to its index. The name of the output may have been cut. Pieces of
   all patterns of a directory are written in directories of the same name. */
static bool is_of_output(const struct cleaning *c, const char *name, size_t n_before)
{
    static const char *const endings[] = {"", ".csi", ".bai", ".crai"};
    if (!c->output) return true;
    if (c->has_pieces && piece_dir_is_name(name, n_before)) return true;
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

/* Lists and removes what has one of the n names in a directory, and frees them. */
static int clean_names(struct cleaning *c, const char *place, char **names, ssize_t n,
                       int (*clean)(struct cleaning *c, const char *path))
{
    int r = 0;
    for (ssize_t i = 0; i < n; i++) {
        char *path = temp_dir_path(place, names[i]);
        if (clean(c, path) < 0) r = -1;
        free(path);
        free(names[i]);
    }
    if (n >= 0) free(names);
    return r;
}

static bool is_journal(const char *name, const void *cleaning)
{
    (void)cleaning;             /* what it lists is looked at later */
    return output_leftover_is_journal(name);
}

static bool is_directory(const char *name, const void *cleaning)
{
    size_t n;
    return temp_dir_is_name(name, &n) && is_of_output(cleaning, name, n);
}

static bool is_file(const char *name, const void *cleaning)
{
    size_t n;
    return output_leftover_is_name(name, &n) && is_of_output(cleaning, name, n);
}

/* Cleans up in a directory: first files that wait for their names, then checkpoints, which say whose
   the other files are. */
static int clean_below(struct cleaning *c, const char *place)
{
    static const struct {
        bool (*is_wanted)(const char *name, const void *cleaning);
        int (*clean)(struct cleaning *c, const char *path);
    } kinds[] = {{is_journal, clean_file}, {is_directory, clean_directory},
                 {is_file, clean_file}};
    int r = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char **names;
        ssize_t n = path_list(place, kinds[i].is_wanted, c, &names);
        if (n < 0) {
            diag_error("cannot look into '%s': %s", place, strerror(errno));
            return -1;
        }
        if (clean_names(c, place, names, n, kinds[i].clean) < 0) r = -1;
    }
    return r;
}

/* Cleans up what belongs to the output of this very name. */
static int clean_output(struct cleaning *c, const char *name)
{
    char *parent = path_parent(name), *place = path_fixed_parent(name);
    c->output = path_name(name);
    c->has_pieces = strchr(c->output, '%') || strcmp(parent, place) != 0;
    free(parent);
    int r = clean_below(c, place);
    free(place);
    return r;
}

/* `name` is an output, which need not exist: cleans up beside it and, if it is a link, beside the
   file that it leads to. */
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
        r = clean_file(c, name);
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
    /* A shell that completes the name of a directory ends it with a slash. */
    char *name = xstrdup(path);
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--) name[n - 1] = '\0';
    int r = clean_place(&cleaning, name);
    if (r == 0 && cleaning.n_found == 0) {
        (void)printf("no temporary data of rocksort %s '", cleaning.output ? "beside" : "in");
        print_safely(path);
        (void)printf("'%s\n", cleaning.output ? "; if -T put them elsewhere, give that directory"
                                              : "");
    }
    free(cleaning.listed);
    free(name);
    return r;
}
