/*
 * diag.c -- see diag.h. Each message is formatted into one buffer and written with one call, so
 * that messages of different threads and of other programs in a pipeline do not interleave.
 */
#define _GNU_SOURCE             /* fopencookie */
#include "diag.h"

#include "terminal_text.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_bool error_printed;

static FILE *unguarded;         /* standard error itself; NULL: it is stderr */

static FILE *standard_error(void)
{
    return unguarded ? unguarded : stderr;
}

static void print_message(const char *kind, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void print_message(const char *kind, const char *format, va_list args)
{
    char text[4096], shown[TERMINAL_TEXT_GROWTH * sizeof text];
    if (vsnprintf(text, sizeof text, format, args) < 0) return;
    (void)terminal_text(text, shown, sizeof shown);
    /* Nothing useful can be done when standard error itself cannot be written. */
    (void)fprintf(standard_error(), "samtools rocksort: %s%s\n", kind, shown);
}

#ifdef __GLIBC__

/* Prints a piece of a line without anything that a terminal acts on. */
static void print_piece(const char *bytes, size_t n, const char *end)
{
    char piece[1024], shown[TERMINAL_TEXT_GROWTH * sizeof piece];
    memcpy(piece, bytes, n);
    piece[n] = '\0';
    (void)terminal_text(piece, shown, sizeof shown);
    (void)fprintf(standard_error(), "%s%s", shown, end);
}

/* What the stream that took the place of stderr does with its buffer. */
static ssize_t write_guarded(void *cookie, const char *bytes, size_t n_bytes)
{
    enum { MOST = 1000 };
    (void)cookie;
    for (size_t at = 0; at < n_bytes;) {
        const char *newline = memchr(bytes + at, '\n', n_bytes - at);
        size_t n = newline ? (size_t)(newline - (bytes + at)) : n_bytes - at;
        bool whole = n <= MOST;
        if (!whole) n = MOST;
        print_piece(bytes + at, n, newline && whole ? "\n" : "");
        at += n + (newline && whole);
    }
    return (ssize_t)n_bytes;
}

void diag_guard_stderr(void)
{
    cookie_io_functions_t functions = {.write = write_guarded};
    FILE *guarded = unguarded ? NULL : fopencookie(NULL, "w", functions);
    if (!guarded) return;
    /* By lines, so that those of different threads do not mix. */
    (void)setvbuf(guarded, NULL, _IOLBF, BUFSIZ);
    unguarded = stderr;
    stderr = guarded;
}

#else

void diag_guard_stderr(void)
{
}

#endif

void diag_error(const char *format, ...)
{
    if (atomic_exchange(&error_printed, true)) return;
    va_list args;
    va_start(args, format);
    print_message("", format, args);
    va_end(args);
}

void diag_warning(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message("warning: ", format, args);
    va_end(args);
}

void diag_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message("", format, args);
    va_end(args);
}

void diag_silence(void)
{
    atomic_store(&error_printed, true);
}

bool diag_failed(void)
{
    return atomic_load(&error_printed);
}
