/*
 * diag.h -- messages to the person at the terminal.
 *
 * A failing run prints exactly one error message: the first. Several threads may notice the
 * consequences of one fault (a full disk fails the spill, which cancels the reader, ...); what
 * comes after the first message is noise and is dropped. Whoever knows the cause prints; callers
 * only pass -1 on. All functions may be called from any thread.
 *
 * Below the messages of a terminal there may be a status line, which is drawn anew again and again.
 * A message takes its place; the next status comes below it.
 *
 * A message is one line. Names out of files may hold control characters, which are printed as \xNN
 * (terminal_text.h); callers pass names as they are.
 */
#ifndef ROCKSORT_UTIL_DIAG_H
#define ROCKSORT_UTIL_DIAG_H

#include <stdbool.h>

/* Prints "samtools rocksort: MESSAGE" to standard error if no error was printed before. */
void diag_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same of temporary data that are not what was written. */
void diag_damaged(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The errors that can happen anywhere, in the same words everywhere: no memory; and no thread, for
   what pthread_create or pthread_mutex_init returned. */
void diag_no_memory(void);
void diag_no_thread(int error);

/* Prints "samtools rocksort: warning: MESSAGE", unless quiet; any number of times. */
void diag_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints "samtools rocksort: MESSAGE", unless quiet; any number of times. */
void diag_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, also when quiet: what a failed run leaves, and what can be done with it, belongs to its
   error. */
void diag_left(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Only errors, and what they leave, are printed from now on. */
void diag_set_quiet(void);
bool diag_is_quiet(void);

/*
 * From now on what libraries print on the stream stderr, htslib above all, which quotes lines of
 * headers, is made fit for a terminal, too. Once, before any other thread is started. (With the GNU
 * C library; elsewhere it does nothing.)
 */
void diag_guard_stderr(void);

/* As at the start: an error is printed again, and the status line is drawn. Between runs, when no
   other thread is left. */
void diag_renew(void);

/* No more errors are printed from now on. */
void diag_silence(void);

/* True once diag_error was called. */
bool diag_failed(void);

/* True if the error that was printed is one of damaged temporary data. */
bool diag_is_damage(void);

/* The error that was printed, or NULL. Only when no other thread can fail any more. */
const char *diag_error_text(void);

/* Draws the status line, which fits into a line of the terminal that standard error is. A terminal
   that takes no bytes at the moment is not waited for. */
void diag_status(const char *line);

/* Removes it; none is drawn any more. Waits for nobody. */
void diag_end_status(void);

#endif
