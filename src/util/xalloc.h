/*
 * xalloc.h -- allocates memory or ends the process; callers need not check the result.
 *
 * If there is no memory, the process cleans up, prints one message and exits with status 1. The
 * caller frees the results with free().
 *
 * During a sort, malloc, calloc and realloc of libraries follow the same rule
 * (os/exception_guard.h, os/interpose.h). Before and after a sort, and under sanitizers, a library
 * function may fail for lack of memory: xalloc_require applies the rule to its result. Check a size
 * that comes from a file against a limit before using it here. Callers of mmap check its result.
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

/* Makes sure that an array has room for at least n items. `array` is the address of the pointer to
   it, and *room its size in items; they start as NULL and 0. An array that must grow gets room for
   n + some_more items, so that it is not copied for every item. */
void xgrow(void *array, size_t *room, size_t n, size_t some_more, size_t item_bytes);

/* The same; new items are zeroed. */
void xgrow_zeroed(void *array, size_t *room, size_t n, size_t some_more, size_t item_bytes);

/* Ends the process if had_memory is false. For library functions that fail only for lack of
   memory: xalloc_require(kputs(text, &line) >= 0). */
void xalloc_require(bool had_memory);

/* Sets a function that is called before the process ends for lack of memory, or NULL. If it
   returns, the message is printed and the process ends. No other thread may run during the call. */
void xalloc_on_failure(void (*clean_up)(void));

#endif
