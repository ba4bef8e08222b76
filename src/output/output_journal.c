/* output_journal.c -- see output_journal.h. */
#include "output/output_journal.h"

#include "machine/file_lock.h"
#include "output/output_leftover.h"
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

static const char magic[] = "rocksort-names 1", end_mark[] = "end";
static const char role_letters[] = "smx";       /* of enum output_role */

static struct output_mark mark_of(const struct stat *st)
{
    return (struct output_mark){st->st_size,
                                (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec};
}

struct output_mark output_mark_of(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 ? mark_of(&st) : (struct output_mark){-1, 0};
}

static bool same_mark(const struct output_mark *a, const struct output_mark *b)
{
    return a->n_bytes == b->n_bytes && a->mtime_ns == b->mtime_ns;
}

/* ---- writing ---- */

static void flush(struct output_journal_writer *w)
{
    for (size_t at = 0; at < w->n_buffered && !w->error;) {
        ssize_t n = write(w->fd, w->buffer + at, w->n_buffered - at);
        if (n < 0 && errno != EINTR) w->error = errno;
        if (n > 0) at += (size_t)n;
    }
    w->n_buffered = 0;
}

/* Puts a text with its NUL. */
static void put(struct output_journal_writer *w, const char *text)
{
    for (size_t n = strlen(text) + 1; n > 0;) {
        if (w->n_buffered == sizeof w->buffer) flush(w);
        size_t room = sizeof w->buffer - w->n_buffered, part = n < room ? n : room;
        memcpy(w->buffer + w->n_buffered, text, part);
        w->n_buffered += part;
        text += part;
        n -= part;
    }
}

void output_journal_create(struct output_journal_writer *w, const char *path, const char *output,
                           size_t n, bool make_directories)
{
    char number[32], here[PATH_MAX];
    w->n_buffered = 0;
    w->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    w->error = w->fd < 0 || file_lock_patiently(w->fd) == FILE_LOCK_ERROR || !getcwd(here, PATH_MAX)
                   ? errno : 0;
    if (w->error) return;
    (void)snprintf(number, sizeof number, "%zu", n);
    put(w, magic);
    put(w, here);
    put(w, output);
    put(w, number);
    put(w, make_directories ? "1" : "0");
}

void output_journal_add(struct output_journal_writer *w, const struct output_line *line)
{
    char text[128];
    (void)snprintf(text, sizeof text, "%c %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
                   role_letters[line->role], line->is.n_bytes, line->is.mtime_ns,
                   line->was.n_bytes, line->was.mtime_ns);
    put(w, text);
    put(w, line->from);
    put(w, line->to);
}

int output_journal_end(struct output_journal_writer *w, const char *path)
{
    put(w, end_mark);
    flush(w);
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
    char *texts[3];             /* the last ones; owned */
    size_t rooms[3];
    char *here;                 /* the working directory of the process */
    char *output;
    size_t n;
    bool make_directories;
};

static const char *get(struct reader *r, int slot)
{
    char **text = &r->texts[slot];
    ssize_t n = getdelim(text, &r->rooms[slot], '\0', r->from);
    return n > 1 && (*text)[n - 1] == '\0' ? *text : NULL;
}

static void close_reader(struct reader *r)
{
    for (int i = 0; i < 3; i++) free(r->texts[i]);
    free(r->here);
    free(r->output);
    if (r->from) (void)fclose(r->from);
}

/* Reads the head. Returns 0, or -1; the reader is to be closed in any case. */
static int open_reader(struct reader *r, int fd)
{
    const char *text;
    int own = dup(fd);
    *r = (struct reader){.from = own >= 0 ? fdopen(own, "r") : NULL};
    if (!r->from && own >= 0) (void)close(own);
    if (!r->from || fseek(r->from, 0, SEEK_SET) < 0) return -1;
    if (!(text = get(r, 0)) || strcmp(text, magic) != 0) return -1;
    if (!(text = get(r, 0)) || *text != '/') return -1;
    r->here = xstrdup(text);
    if (!(text = get(r, 0))) return -1;
    r->output = xstrdup(text);
    if (!(text = get(r, 0)) || sscanf(text, "%zu", &r->n) != 1) return -1;
    if (!(text = get(r, 0))) return -1;
    r->make_directories = strcmp(text, "1") == 0;
    return 0;
}

/* Makes a name absolute. */
static const char *whole_name(struct reader *r, int slot)
{
    if (r->texts[slot][0] == '/') return r->texts[slot];
    char *whole = xasprintf("%s/%s", r->here, r->texts[slot]);
    free(r->texts[slot]);
    r->texts[slot] = whole;
    r->rooms[slot] = strlen(whole) + 1;
    return whole;
}

static int read_line(struct reader *r, struct output_line *line)
{
    char letter;
    const char *text = get(r, 0), *found;
    if (!text || sscanf(text, "%c %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &letter,
                        &line->is.n_bytes, &line->is.mtime_ns, &line->was.n_bytes,
                        &line->was.mtime_ns) != 5)
        return -1;
    found = strchr(role_letters, letter);
    if (!found || !letter || !get(r, 1) || !get(r, 2)) return -1;
    line->role = (enum output_role)(found - role_letters);
    line->from = whole_name(r, 1);
    line->to = whole_name(r, 2);
    return 0;
}

/* Calls visit for each line, and looks whether the end is there. */
static int each(struct reader *r, int (*visit)(void *arg, const struct output_line *line), void *arg)
{
    const char *text;
    struct output_line line;
    for (size_t i = 0; i < r->n; i++)
        if (read_line(r, &line) < 0 || visit(arg, &line) < 0) return -1;
    return (text = get(r, 0)) && strcmp(text, end_mark) == 0 ? 0 : -1;
}

int output_journal_each(int fd, int (*visit)(void *arg, const struct output_line *line), void *arg)
{
    struct reader reader;
    int r = open_reader(&reader, fd);
    if (r == 0) r = each(&reader, visit, arg);
    close_reader(&reader);
    return r;
}

/* ---- what there is ---- */

char *output_journal_path(const char *temporary)
{
    struct stat st;
    size_t n_output, n = strlen(temporary);
    if (output_leftover_is_name(path_name(temporary), &n_output))
        return xasprintf("%.*s" OUTPUT_JOURNAL_ENDING, (int)(n - strlen(OUTPUT_PATH_ENDING)),
                         temporary);
    bool is_directory = lstat(temporary, &st) == 0 && S_ISDIR(st.st_mode);
    return is_directory ? xasprintf("%s/" OUTPUT_JOURNAL_OF_PIECES, temporary) : NULL;
}

int output_journal_open(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid())) return fd;
    (void)close(fd);
    errno = EPERM;
    return -1;
}

enum place {
    PLACE_FREE,                 /* the file has its temporary name, and can get its own */
    PLACE_NAMED,                /* it has its name */
    PLACE_TAKEN,                /* another file stands there */
    PLACE_LOST,                 /* the file has neither name */
};

static enum place find_place(const struct output_line *line)
{
    struct output_mark to = output_mark_of(line->to);
    struct stat st;
    if (lstat(line->from, &st) < 0 && errno == ENOENT)
        return same_mark(&to, &line->is) ? PLACE_NAMED : PLACE_LOST;
    /* If it cannot be looked at, renaming will say why. */
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
    if (line->role == OUTPUT_STALE) return 0;
    enum place place = find_place(line);
    journal->n_files++;
    if (place == PLACE_NAMED) journal->n_named++;
    if (place == PLACE_FREE) journal->n_bytes += (uint64_t)line->is.n_bytes;
    if (line->role == OUTPUT_MAIN && place == PLACE_TAKEN) counting->n_taken++;
    if (line->role == OUTPUT_MAIN && place == PLACE_LOST) counting->n_lost++;
    return 0;
}

int output_journal_look(int fd, struct output_journal *journal)
{
    struct reader reader;
    struct counting counting = {.journal = journal};
    *journal = (struct output_journal){0};
    int r = open_reader(&reader, fd);
    if (r == 0) r = each(&reader, count_line, &counting);
    if (r == 0) journal->output = xstrdup(reader.output);
    journal->can_be_finished =
        counting.n_lost == 0 && (counting.n_taken == 0 || journal->n_named > 0);
    close_reader(&reader);
    return r;
}

void output_journal_release(struct output_journal *journal)
{
    free(journal->output);
    journal->output = NULL;
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
    const struct reader *reader = arg;
    enum place place = line->role == OUTPUT_STALE ? PLACE_NAMED : find_place(line);
    if (line->role == OUTPUT_STALE) drop_stale(line);
    if (place == PLACE_TAKEN && line->role == OUTPUT_MAIN) {
        diag_error("'%s' is in the way of a file whose set has other names already: move it away, "
                   "and try again", line->to);
        return -1;
    }
    if (place == PLACE_TAKEN) (void)unlink(line->from);
    if (place != PLACE_FREE) return 0;
    if (reader->make_directories) (void)path_make_parent(line->to);
    int r = line->was.n_bytes < 0 ? output_path_rename_new(line->from, line->to)
                                  : rename(line->from, line->to);
    if (r < 0)
        diag_error("cannot rename '%s' to '%s': %s", line->from, line->to, strerror(errno));
    return r;
}

int output_journal_finish(int fd)
{
    struct reader reader;
    int r = open_reader(&reader, fd);
    if (r == 0) r = each(&reader, finish_line, &reader);
    close_reader(&reader);
    return r;
}

static int discard_line(void *arg, const struct output_line *line)
{
    (void)arg;
    (void)unlink(line->from);
    return 0;
}

void output_journal_discard(int fd)
{
    (void)output_journal_each(fd, discard_line, NULL);
}
