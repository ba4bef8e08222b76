/*
 * xalloc.h -- allocates memory, or ends the process: callers check nothing.
 *
 * There is one rule for memory that cannot be had: the process cleans up and ends, with one message
 * and status 1. These functions never return NULL. The caller frees what they return, with free().
 *
 * During a sort, exception_guard.h has set the function that cleans up. At that time malloc and the
 * like follow the same rule themselves (machine/interpose.h), so that libraries see no failure
 * either. Before and after a sort, and under sanitizers, which have their own allocators, a library
 * may return NULL: xalloc_require applies the rule to that.
 *
 * A size that comes from a file must be checked against a limit before it is used here. Address
 * space from mmap is checked where it is asked for.
 *
 * Any thread.
 */
#ifndef ROCKSORT_UTIL_XALLOC_H
#define ROCKSORT_UTIL_XALLOC_H

#include <stdbool.h>
#include <stddef.h>

void *xmalloc(size_t n_bytes);
void *xcalloc(size_t n, size_t item_bytes);
void *xrealloc(void *mem, size_t n_bytes);
char *xstrdup(const char *text);

/* Returns a copy of n_bytes of mem. */
void *xmemdup(const void *mem, size_t n_bytes);

/* Returns the text that printf would print. */
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Gives an allocated array room for at least n items. `array` points to the pointer to it, and
 * *room is its size in items; they start as NULL and 0. An array that must grow gets room for n +
 * some_more items, so that it is not copied for every item.
 */
void xgrow(void *array, size_t *room, size_t n, size_t some_more, size_t item_bytes);

/* Ends the process unless there was memory. For functions of libraries that fail only without
   memory: xalloc_require(kputs(text, &line) >= 0). */
void xalloc_require(bool had_memory);

/* Sets a function that is called before the process ends for lack of memory, or NULL. If it
   returns, the message is printed and the process ends. No other thread may run during the call. */
void xalloc_on_failure(void (*clean_up)(void));

#endif
