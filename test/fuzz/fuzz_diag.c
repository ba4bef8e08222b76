/*
 * fuzz_diag.c -- begins a fuzz target, and takes the place of util/diag.c in it.
 *
 * diag.c prints the first error only, but a target runs millions of times. Here each message is
 * formatted, so that a format that does not fit its arguments is found, and each error is counted.
 * htslib prints nothing.
 */
#include "fuzz_input.h"

#include "util/diag.h"
#include "util/terminal_text.h"

#include <htslib/hts_log.h>
#include <pthread.h>
#include <stdarg.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char first_error[4096];
static unsigned n_errors;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    hts_set_log_level(HTS_LOG_OFF);
    if (fuzz_begin) fuzz_begin();
    return 0;
}

/* Formats a message as diag.c does, and checks that it has no control characters. */
static void format_message(char text[4096], const char *format, va_list args)
{
    char plain[4096], shown[TERMINAL_TEXT_GROWTH * sizeof plain];
    FUZZ_CHECK(vsnprintf(plain, sizeof plain, format, args) >= 0);
    (void)terminal_text(plain, shown, sizeof shown);
    for (const char *at = shown; *at; at++)
        FUZZ_CHECK((unsigned char)*at >= 0x20 && *at != 0x7f);
    size_t n = strlen(shown) < 4095 ? strlen(shown) : 4095;
    memcpy(text, shown, n);
    text[n] = '\0';
}

static void count_error(const char *format, va_list args)
{
    char text[4096];
    format_message(text, format, args);
    (void)pthread_mutex_lock(&lock);
    if (n_errors++ == 0) memcpy(first_error, text, sizeof text);
    (void)pthread_mutex_unlock(&lock);
}

void diag_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    count_error(format, args);
    va_end(args);
}

void diag_error_of(enum diag_cause cause, const char *format, ...)
{
    va_list args;
    (void)cause;
    va_start(args, format);
    count_error(format, args);
    va_end(args);
}

void diag_full_disk(const char *place, const char *format, ...)
{
    (void)place;
    diag_error("%s", format);
}

void diag_no_memory(void)
{
    diag_error("out of memory");
}

void diag_no_thread(int error)
{
    diag_error("cannot start a thread: %s", strerror(error));
}

const char *diag_advice(int error)
{
    (void)error;
    return "";
}

void diag_warning(const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    format_message(text, format, args);
    va_end(args);
}

void diag_note(const char *format, ...) __attribute__((alias("diag_warning")));
void diag_left(const char *format, ...) __attribute__((alias("diag_warning")));

void diag_guard_stderr(void)
{
}

void diag_silence(void)
{
}

const char *diag_error_text(void)
{
    return first_error[0] ? first_error : NULL;
}

void diag_set_quiet(void)
{
}

bool diag_is_quiet(void)
{
    return false;
}

void diag_status(const char *line)
{
    (void)line;
}

void diag_end_status(void)
{
}

void diag_renew(void)
{
}

void diag_watch_libraries(const char *words, void (*react)(void))
{
    (void)words;
    (void)react;
}

void diag_hide_htslib(void)
{
}

const char *diag_library_words(void)
{
    return "";
}

bool diag_failed(void)
{
    return fuzz_n_errors() > 0;
}

const char *diag_full_place(void)
{
    return NULL;
}

enum diag_cause diag_cause(void)
{
    return DIAG_OTHER;
}

void fuzz_forget_messages(void)
{
    (void)pthread_mutex_lock(&lock);
    n_errors = 0;
    first_error[0] = '\0';
    (void)pthread_mutex_unlock(&lock);
}

unsigned fuzz_n_errors(void)
{
    (void)pthread_mutex_lock(&lock);
    unsigned n = n_errors;
    (void)pthread_mutex_unlock(&lock);
    return n;
}

const char *fuzz_first_error(void)
{
    return first_error;
}
