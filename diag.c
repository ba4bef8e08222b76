/*
 * diag.c -- see diag.h. Each message is formatted into one buffer and written with one call, so
 * that messages of different threads and of other programs in a pipeline do not interleave.
 */
#include "diag.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_bool error_printed;

static void print_message(const char *kind, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void print_message(const char *kind, const char *format, va_list args)
{
    char text[4096];
    if (vsnprintf(text, sizeof text, format, args) < 0) return;
    /* Nothing useful can be done when standard error itself cannot be written. */
    (void)fprintf(stderr, "samtools rocksort: %s%s\n", kind, text);
}

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
