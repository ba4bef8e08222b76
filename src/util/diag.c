/*
 * diag.c -- see diag.h.
 *
 * Each message is formatted into one buffer and printed by one call, so that messages of different
 * threads, and of other programs in a shell pipeline, do not interleave.
 *
 * The cursor stays at the beginning of the status line, so that libraries and other programs print
 * over it.
 */
#define _GNU_SOURCE             /* fopencookie, memmem */
#include "util/diag.h"

#include "util/terminal_text.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CLEAR_TO_END "\033[K"

enum { MESSAGE_BYTES = 4096, MOST_TRIES = 20 };

static atomic_bool error_printed, quiet, status_ended;
static _Atomic enum diag_cause error_cause;
static char error_text[MESSAGE_BYTES], full_place[PATH_MAX];    /* written by the one thread that
                                                                   prints the error */

static pthread_mutex_t status_lock = PTHREAD_MUTEX_INITIALIZER;
static bool status_shown;       /* under status_lock */

static atomic_bool htslib_hidden;
static atomic_bool library_shown, library_hidden;       /* a library has printed an error */

static FILE *unguarded;         /* stderr as it was before diag_guard_stderr; NULL before that */

/* Prints to standard error itself. If standard error is a pipe whose reader is gone, drops the
   SIGPIPE: it must not end a sort that may still complete its output. */
static __attribute__((format(printf, 1, 2)))
void print_anyway(const char *format, ...)
{
    static const struct timespec no_time;
    sigset_t pipe, before;
    va_list args;
    int error = errno;          /* a library may print first and look at errno afterwards */
    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe, &before);
    va_start(args, format);
    /* A failure to write to standard error cannot be reported. */
    (void)vfprintf(unguarded ? unguarded : stderr, format, args);
    va_end(args);
    if (!sigismember(&before, SIGPIPE)) (void)sigtimedwait(&pipe, NULL, &no_time);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
}

static void print_message(const char *kind, const char *text)
{
    char shown[TERMINAL_TEXT_GROWTH * sizeof error_text];
    (void)terminal_text(text, shown, sizeof shown);
    (void)pthread_mutex_lock(&status_lock);
    const char *clear = status_shown ? "\r" CLEAR_TO_END : "";
    status_shown = false;
    print_anyway("%ssamtools rocksort: %s%s\n", clear, kind, shown);
    (void)pthread_mutex_unlock(&status_lock);
}

enum { PIECE_BYTES = 1024 };

static const char *_Atomic watched_words;       /* NULL: none */
static void (*_Atomic react_to_words)(void);

/* Prints a piece of a line, with control characters escaped. */
static void print_piece(const char *bytes, size_t n, const char *end)
{
    char piece[PIECE_BYTES], shown[TERMINAL_TEXT_GROWTH * sizeof piece];
    memcpy(piece, bytes, n);
    piece[n] = '\0';
    (void)terminal_text(piece, shown, sizeof shown);
    print_anyway("%s%s", shown, end);
}

/* Notes whether the user sees the error of a library: a line of htslib that begins with "[E::", or
   any line of another library, such as that of a failed assert. */
static void note_error(const char *line, size_t n, bool is_hidden)
{
    static const char kind[] = "[E::";
    bool is_error = n > 0 && (*line != '[' || (n >= strlen(kind) &&
                                               memcmp(line, kind, strlen(kind)) == 0));
    if (is_error) atomic_store(is_hidden ? &library_hidden : &library_shown, true);
}

/* Called when the stream that replaces stderr writes its buffer. */
static ssize_t write_guarded(void *cookie, const char *bytes, size_t n_bytes)
{
    enum { MOST = PIECE_BYTES - 1 };
    (void)cookie;
    for (size_t at = 0; at < n_bytes;) {
        const char *newline = memchr(bytes + at, '\n', n_bytes - at);
        size_t n = newline ? (size_t)(newline - (bytes + at)) : n_bytes - at;
        bool whole = n <= MOST;
        if (!whole) n = MOST;
        bool is_hidden = bytes[at] == '[' && atomic_load(&htslib_hidden);
        if (!is_hidden) print_piece(bytes + at, n, newline && whole ? "\n" : "");
        note_error(bytes + at, n, is_hidden);
        at += n + (newline && whole);
    }
    const char *words = atomic_load(&watched_words);
    if (words && memmem(bytes, n_bytes, words, strlen(words))) atomic_load(&react_to_words)();
    return (ssize_t)n_bytes;
}

void diag_guard_stderr(void)
{
    cookie_io_functions_t functions = {.write = write_guarded};
    FILE *guarded = unguarded ? NULL : fopencookie(NULL, "w", functions);
    if (!guarded) return;
    /* Buffered by lines, so that lines of different threads do not mix. */
    (void)setvbuf(guarded, NULL, _IOLBF, BUFSIZ);
    unguarded = stderr;
    stderr = guarded;
}

void diag_watch_libraries(const char *words, void (*react)(void))
{
    atomic_store(&react_to_words, react);
    atomic_store(&watched_words, words);
}

void diag_hide_htslib(void)
{
    atomic_store(&htslib_hidden, true);
}

const char *diag_library_words(void)
{
    return atomic_load(&library_shown)    ? "; its words are above"
           : atomic_load(&library_hidden) ? "; --verbosity 1 shows its words"
                                          : "";
}

/* Prints the error and returns true if it is the first one; otherwise returns false. */
static __attribute__((format(printf, 1, 0)))
bool print_error(const char *format, va_list args)
{
    if (atomic_exchange(&error_printed, true)) return false;
    int n = vsnprintf(error_text, sizeof error_text, format, args);
    if (n >= 0) print_message("", error_text);
    return true;
}

void diag_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)print_error(format, args);
    va_end(args);
}

void diag_error_of(enum diag_cause cause, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (print_error(format, args)) atomic_store(&error_cause, cause);
    va_end(args);
}

void diag_full_disk(const char *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (print_error(format, args)) {
        (void)snprintf(full_place, sizeof full_place, "%s", place);
        atomic_store(&error_cause, DIAG_FULL_DISK);
    }
    va_end(args);
}

void diag_no_memory(void)
{
    diag_error("out of memory; give less with -m, or raise the limit (ulimit -v, cgroup)");
}

void diag_no_thread(int error)
{
    diag_error("cannot start a thread: %s; give fewer with -@, or raise the limit (ulimit -u, -v)",
               strerror(error));
}

const char *diag_advice(int error)
{
    /* A sort in memory needs 12 files. Tests sort with temporary data under a limit of 64. */
    if (error == EMFILE) return "; raise 'ulimit -n' to 64 or more";
    return error == EFBIG ? "; raise 'ulimit -f'" : "";
}

static __attribute__((format(printf, 2, 0)))
void print_text(const char *kind, const char *format, va_list args)
{
    char text[MESSAGE_BYTES];
    if (vsnprintf(text, sizeof text, format, args) >= 0) print_message(kind, text);
}

void diag_warning(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!diag_is_quiet()) print_text("warning: ", format, args);
    va_end(args);
}

void diag_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!diag_is_quiet()) print_text("", format, args);
    va_end(args);
}

void diag_left(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_text("", format, args);
    va_end(args);
}

void diag_set_quiet(void)
{
    atomic_store(&quiet, true);
}

bool diag_is_quiet(void)
{
    return atomic_load(&quiet);
}

void diag_renew(void)
{
    error_text[0] = '\0';
    atomic_store(&error_printed, false);
    atomic_store(&error_cause, DIAG_OTHER);
    atomic_store(&status_ended, false);
    atomic_store(&library_shown, false);
    atomic_store(&library_hidden, false);
}

void diag_silence(void)
{
    atomic_store(&error_printed, true);
}

bool diag_failed(void)
{
    return atomic_load(&error_printed);
}

enum diag_cause diag_cause(void)
{
    return atomic_load(&error_cause);
}

const char *diag_full_place(void)
{
    return diag_cause() == DIAG_FULL_DISK ? full_place : NULL;
}

const char *diag_error_text(void)
{
    return error_text[0] ? error_text : NULL;
}

/* True if writing to standard error does not block; after Ctrl-S a terminal blocks. */
static bool can_write(void)
{
    struct pollfd terminal = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&terminal, 1, 0) == 1 && (terminal.revents & POLLOUT);
}

void diag_status(const char *line)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "\r%s" CLEAR_TO_END "\r", line);
    if (n < 0 || (size_t)n >= sizeof text) return;
    (void)pthread_mutex_lock(&status_lock);
    if (!atomic_load(&status_ended) && can_write())
        status_shown = write(STDERR_FILENO, text, (size_t)n) > 0 || status_shown;
    (void)pthread_mutex_unlock(&status_lock);
}

void diag_end_status(void)
{
    static const char clear[] = "\r" CLEAR_TO_END;
    atomic_store(&status_ended, true);
    /* diag_status never holds the lock for long. print_message may hold it while it waits for the
       terminal, but then it erases the status line itself. */
    for (int tries = 0; pthread_mutex_trylock(&status_lock) != 0; tries++) {
        if (tries == MOST_TRIES) return;
        (void)usleep(1000);
    }
    if (status_shown && can_write()) (void)!write(STDERR_FILENO, clear, sizeof clear - 1);
    status_shown = false;
    (void)pthread_mutex_unlock(&status_lock);
}
