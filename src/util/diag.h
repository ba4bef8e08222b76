/*
 * diag.h -- prints errors, warnings, notes and the status line on standard error.
 *
 * A run that fails prints exactly one error: the first. One fault can make several threads fail;
 * errors after the first are dropped. The function that knows the cause prints; its callers only
 * return -1. A message is one line; control characters in it, as in names from files, are printed
 * as \xNN (terminal_text.h).
 *
 * On a terminal, a status line may be the last line. A message erases it; the next status line is
 * drawn below the message.
 *
 * Any thread may call any function that does not say otherwise.
 */
#ifndef ROCKSORT_UTIL_DIAG_H
#define ROCKSORT_UTIL_DIAG_H

#include <stdbool.h>

/* ---- errors ---- */

/* Prints "samtools rocksort: MESSAGE" if no error was printed before. */
void diag_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Causes that the caller of the sort treats differently. */
enum diag_cause {
    DIAG_OTHER,
    DIAG_DAMAGE,                /* temporary data changed after they were written */
    DIAG_HOPELESS,              /* the sort would fail again when it is resumed */
    DIAG_FULL_DISK
};

/* Like diag_error, with a cause. */
void diag_error_of(enum diag_cause cause, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Like diag_error, when the disk of `place`, a file or directory, is full; see diag_full_place. */
void diag_full_disk(const char *place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Print the errors "no memory" and "cannot start a thread". error: what pthread_create or
   pthread_mutex_init returned. */
void diag_no_memory(void);
void diag_no_thread(int error);

/* Returns a hint to print after strerror's text when a file cannot be opened or written:
   "; raise 'ulimit -n' ...", or "". */
const char *diag_advice(int error);

/* ---- other messages ---- */

/* Print "samtools rocksort: warning: MESSAGE" or "samtools rocksort: MESSAGE", unless quiet. */
void diag_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void diag_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like diag_note, but also when quiet. For files that a failed run keeps, and for results that the
   user probably does not want. */
void diag_left(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- which messages are printed ---- */

/* From now on only errors and diag_left are printed. */
void diag_set_quiet(void);
bool diag_is_quiet(void);

/* From now on no error is printed. */
void diag_silence(void);

/* Forgets the error, so that the next one is printed, and allows the status line again. Call it
   between runs, while no other thread runs. */
void diag_renew(void);

/* From now on, text that libraries print on stderr is also made safe for a terminal: htslib quotes
   lines of headers. Call it once, before any other thread starts. */
void diag_guard_stderr(void);

/* After diag_guard_stderr: calls react() whenever a library prints `words`, a constant text, in the
   thread that prints them. */
void diag_watch_libraries(const char *words, void (*react)(void));

/* From now on lines of htslib, which begin with "[", are not shown. */
void diag_hide_htslib(void);

/* Returns a hint to print after "htslib refuses ...": that the library's message is above, or which
   option shows it, or "" if it printed none. */
const char *diag_library_words(void);

/* ---- the error ---- */

/* True after an error, or after diag_silence. */
bool diag_failed(void);

enum diag_cause diag_cause(void);

/* Returns the place if the error was printed by diag_full_disk, else NULL. */
const char *diag_full_place(void);

/* Returns the error, or NULL. Call it only when no other thread can fail any more. */
const char *diag_error_text(void);

/* ---- the status line ---- */

/* Draws a line, which must fit into one line of the terminal. If the terminal takes no bytes now,
   draws nothing and does not wait. */
void diag_status(const char *line);

/* Erases the status line and draws none from now on. Waits at most 20 ms for another thread that
   prints a message. */
void diag_end_status(void);

#endif
