/* output_journal.c -- see output_journal.h. */
#include "output/output_journal.h"

#include "os/file_owner.h"
#include "output/output_path.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- leftovers ---- */

bool output_leftover_is_journal(const char *name)
{
    const char *ending = strrchr(name, '.');
    return ending && strcmp(ending, OUTPUT_JOURNAL_ENDING) == 0;
}

bool output_leftover_is_name(const char *name, size_t *n_output)
{
    const char *word = NULL;    /* the last one */
    for (const char *at = name; (at = strstr(at, OUTPUT_PATH_WORD)); at++) word = at;
    if (!word || word == name) return false;
    *n_output = (size_t)(word - name);
    const char *at = word + strlen(OUTPUT_PATH_WORD);
    size_t n = strspn(at, "0123456789");
    if (n == 0 || at[n] != '.') return false;
    at += n + 1;
    if (strspn(at, "0123456789") != OUTPUT_PATH_NANOSECOND_DIGITS) return false;
    at += OUTPUT_PATH_NANOSECOND_DIGITS;
    return strcmp(at, OUTPUT_PATH_ENDING) == 0 || strcmp(at, OUTPUT_JOURNAL_ENDING) == 0;
}

enum output_leftover_state output_leftover_open_of_dead(const char *path,
                                                       struct output_leftover *left)
{
    /* On NFS, a lock needs a writable descriptor. */
    left->fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (left->fd < 0) return OUTPUT_LEFTOVER_FOREIGN;
    enum output_leftover_state state = OUTPUT_LEFTOVER_FOREIGN;
    if (fstat(left->fd, &left->st) == 0 && S_ISREG(left->st.st_mode) &&
        left->st.st_uid == geteuid()) {
        enum file_lock lock = file_lock_try(left->fd, true);
        state = lock == FILE_LOCK_HELD   ? OUTPUT_LEFTOVER_DEAD
                : lock == FILE_LOCK_NONE ? OUTPUT_LEFTOVER_UNKNOWN
                                         : OUTPUT_LEFTOVER_IN_USE;
        /* The process that wrote the file may have renamed it meanwhile. */
        if (!file_lock_has_name(left->fd, AT_FDCWD, path)) state = OUTPUT_LEFTOVER_FOREIGN;
    }
    if (state != OUTPUT_LEFTOVER_DEAD && state != OUTPUT_LEFTOVER_UNKNOWN)
        output_leftover_close(left);
    return state;
}

/* The process id in a temporary name; 0 for other names. */
static long process_of(const char *name)
{
    size_t n_output;
    if (!output_leftover_is_name(name, &n_output)) return 0;
    return strtol(name + n_output + strlen(OUTPUT_PATH_WORD), NULL, 10);
}

enum output_leftover_state output_leftover_open(const char *path, struct output_leftover *left)
{
    enum output_leftover_state state = output_leftover_open_of_dead(path, left);
    long process = process_of(path_name(path));
    if (state == OUTPUT_LEFTOVER_DEAD && process &&
        file_owner_writes_output(left->fd, process)) {
        output_leftover_close(left);
        return OUTPUT_LEFTOVER_IN_USE;
    }
    return state;
}

int output_leftover_remove(const char *path, const struct output_leftover *left)
{
    if (file_lock_has_name(left->fd, AT_FDCWD, path)) return unlink(path);
    errno = ENOENT;
    return -1;
}

void output_leftover_close(struct output_leftover *left)
{
    int error = errno;
    if (left->fd >= 0) (void)close(left->fd);
    left->fd = -1;
    errno = error;
}

void output_leftover_drop(const char *path)
{
    struct output_leftover left;
    if (!path || !process_of(path_name(path))) return;
    enum output_leftover_state state = output_leftover_open_of_dead(path, &left);
    if (state == OUTPUT_LEFTOVER_DEAD || state == OUTPUT_LEFTOVER_UNKNOWN)
        (void)output_leftover_remove(path, &left);
    output_leftover_close(&left);
}

/* ---- journals ---- */

static const char magic[] = "rocksort-names 1", end_mark[] = "end";
static const char role_letters[] = "smx";       /* of enum output_role */

struct output_mark output_mark_of(const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0) return (struct output_mark){-1, 0};
    return (struct output_mark){st.st_size,
                                (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec};
}

static bool same_mark(const struct output_mark *a, const struct output_mark *b)
{
    return a->n_bytes == b->n_bytes && a->mtime_ns == b->mtime_ns;
}

/* ---- writing ---- */

static void flush(struct output_journal_writer *w)
{
    if (!w->error && path_write_all(w->fd, w->text.s, w->text.l) < 0) w->error = errno;
    w->text.l = 0;
}

/* Appends a text with its NUL. */
static void put(struct output_journal_writer *w, const char *text)
{
    xalloc_require(kputsn(text, strlen(text) + 1, &w->text) >= 0);
}

static void put_name(struct output_journal_writer *w, const char *name)
{
    if (*name != '/') xalloc_require(ksprintf(&w->text, "%s/", w->here) >= 0);
    put(w, name);
}

void output_journal_create(struct output_journal_writer *w, const char *path, const char *output)
{
    *w = (struct output_journal_writer){.text = KS_INITIALIZE};
    w->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (w->fd < 0 || file_lock_try(w->fd, true) == FILE_LOCK_ERROR || !getcwd(w->here, PATH_MAX))
        w->error = errno;
    put(w, magic);
    put(w, output);
}

void output_journal_add(struct output_journal_writer *w, const struct output_line *line)
{
    enum { FLUSH_BYTES = 1 << 13 };
    char text[128];
    (void)snprintf(text, sizeof text, "%c %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
                   role_letters[line->role], line->is.n_bytes, line->is.mtime_ns,
                   line->was.n_bytes, line->was.mtime_ns);
    put(w, text);
    put_name(w, line->from);
    put_name(w, line->to);
    if (w->text.l >= FLUSH_BYTES) flush(w);
}

int output_journal_end(struct output_journal_writer *w, const char *path)
{
    put(w, end_mark);
    flush(w);
    ks_free(&w->text);
    if (!w->error && fdatasync(w->fd) < 0) w->error = errno;
    if (!w->error) return 0;
    if (w->fd >= 0) {
        (void)unlink(path);
        (void)close(w->fd);
    }
    w->fd = -1;
    errno = w->error;
    return -1;
}

/* ---- reading ---- */

struct reader {
    FILE *from;
    struct field {
        char *text;             /* owned */
        size_t room;
    } output, line, names[2];   /* the last ones read */
};

static const char *get(struct reader *r, struct field *field)
{
    ssize_t n = getdelim(&field->text, &field->room, '\0', r->from);
    return n > 1 && field->text[n - 1] == '\0' ? field->text : NULL;
}

/* Returns 1, 0 at the end, or -1. */
static int read_line(struct reader *r, struct output_line *line)
{
    char letter;
    const char *text = get(r, &r->line), *found;
    if (text && strcmp(text, end_mark) == 0) return 0;
    if (!text || sscanf(text, "%c %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &letter,
                        &line->is.n_bytes, &line->is.mtime_ns, &line->was.n_bytes,
                        &line->was.mtime_ns) != 5)
        return -1;
    found = strchr(role_letters, letter);
    line->from = get(r, &r->names[0]);
    line->to = get(r, &r->names[1]);
    if (!found || !letter || !line->from || !line->to) return -1;
    line->role = (enum output_role)(found - role_letters);
    return 1;
}

int output_journal_each(int fd, int (*visit)(void *arg, const struct output_line *line), void *arg)
{
    const char *text;
    int own = dup(fd), r = -1;
    struct reader reader = {.from = own >= 0 ? fdopen(own, "r") : NULL};
    struct output_line line;
    if (!reader.from && own >= 0) (void)close(own);
    if (!reader.from) return -1;
    if (fseek(reader.from, 0, SEEK_SET) == 0 && (text = get(&reader, &reader.line)) &&
        strcmp(text, magic) == 0 && (line.output = get(&reader, &reader.output)))
        while ((r = read_line(&reader, &line)) > 0 && visit(arg, &line) == 0) {}
    free(reader.output.text);
    free(reader.line.text);
    free(reader.names[0].text);
    free(reader.names[1].text);
    (void)fclose(reader.from);
    return r == 0 ? 0 : -1;
}

/* ---- the state of the files ---- */

char *output_journal_path(const char *temporary)
{
    struct stat st;
    size_t n_output, n = strlen(temporary);
    if (output_leftover_is_name(path_name(temporary), &n_output))
        return xasprintf("%.*s" OUTPUT_JOURNAL_ENDING, (int)(n - strlen(OUTPUT_PATH_ENDING)),
                         temporary);
    bool is_directory = lstat(temporary, &st) == 0 && S_ISDIR(st.st_mode);
    return is_directory ? xasprintf("%s/" OUTPUT_JOURNAL_OF_GROUPS, temporary) : NULL;
}

enum place {
    PLACE_FREE,                 /* the file has its temporary name, and can be renamed */
    PLACE_NAMED,                /* it has its final name */
    PLACE_TAKEN,                /* another file has its final name */
    PLACE_LOST,                 /* the file has neither name */
};

static enum place find_place(const struct output_line *line)
{
    struct output_mark to = output_mark_of(line->to);
    struct stat st;
    if (lstat(line->from, &st) < 0 && errno == ENOENT)
        return same_mark(&to, &line->is) ? PLACE_NAMED : PLACE_LOST;
    /* If stat fails, renaming will report why. */
    return to.n_bytes < 0 || same_mark(&to, &line->was) ? PLACE_FREE : PLACE_TAKEN;
}

struct counting {
    struct output_journal *journal;
    size_t n_taken, n_lost;     /* outputs */
};

static int count_line(void *arg, const struct output_line *line)
{
    struct counting *counting = arg;
    struct output_journal *journal = counting->journal;
    if (!journal->output) journal->output = xstrdup(line->output);
    if (line->role == OUTPUT_STALE) return 0;
    enum place place = find_place(line);
    journal->n_files++;
    if (place == PLACE_NAMED) journal->n_named++;
    if (place == PLACE_FREE) journal->n_bytes += (uint64_t)line->is.n_bytes;
    if (line->role == OUTPUT_MAIN && place == PLACE_TAKEN) counting->n_taken++;
    if (line->role == OUTPUT_MAIN && place == PLACE_LOST) counting->n_lost++;
    return 0;
}

/* ---- finishing ---- */

static void drop_stale(const struct output_line *line)
{
    struct output_mark is = output_mark_of(line->to);
    if (same_mark(&is, &line->is)) (void)unlink(line->to);
    (void)unlink(line->from);
}

static int finish_line(void *arg, const struct output_line *line)
{
    (void)arg;
    if (line->role == OUTPUT_STALE) {
        drop_stale(line);
        return 0;
    }
    enum place place = find_place(line);
    if (place == PLACE_TAKEN && line->role == OUTPUT_MAIN) {
        diag_error("'%s' is in the way of a file whose set has other names already: move it away, "
                   "and try again", line->to);
        return -1;
    }
    if (place == PLACE_TAKEN) (void)unlink(line->from);
    if (place != PLACE_FREE) return 0;
    (void)path_make_parent(line->to);
    int r = line->was.n_bytes < 0 ? output_path_rename_new(line->from, line->to)
                                  : rename(line->from, line->to);
    if (r < 0)
        diag_error("cannot rename '%s' to '%s': %s", line->from, line->to, strerror(errno));
    return r;
}

static int discard_line(void *arg, const struct output_line *line)
{
    (void)arg;
    (void)unlink(line->from);
    return 0;
}

/* Removes the copy of the journal beside a file, if any. */
static int drop_copy(void *arg, const struct output_line *line)
{
    size_t n_output;
    (void)arg;
    if (!output_leftover_is_name(path_name(line->from), &n_output)) return 0;
    char *copy = output_journal_path(line->from);
    (void)unlink(copy);
    free(copy);
    return 0;
}

int output_journal_settle(int fd, bool acts, struct output_journal *journal)
{
    struct counting counting = {.journal = journal};
    *journal = (struct output_journal){0};
    if (output_journal_each(fd, count_line, &counting) < 0) return 0;
    journal->can_be_finished =
        counting.n_lost == 0 && (counting.n_taken == 0 || journal->n_named > 0);
    if (!acts) return 0;
    int r = output_journal_each(fd, journal->can_be_finished ? finish_line : discard_line, NULL);
    if (r == 0) (void)output_journal_each(fd, drop_copy, NULL);
    return r;
}
