/*
 * xalloc.h -- memory that is always there: callers check nothing.
 *
 * There is one rule for memory that cannot be had: the process ends, with one message and status 1,
 * and nothing is left behind. These functions never return NULL. Memory that they return is freed
 * with free().
 *
 * While a sort runs, machine/exception_guard.h has set a function that cleans up. Besides, the C
 * library's own functions follow the same rule then (machine/interpose.c), so that memory that a
 * library asks for needs no check either. Sanitizers have their own allocators: there, and before
 * and after a sort, xalloc_require says what follows from a NULL of a library.
 *
 * Only a size that comes from a file needs a limit of its own, before memory of that size is asked
 * for. Address space from mmap is checked where it is asked for.
 *
 * Threads: any.
 */
#ifndef ROCKSORT_UTIL_XALLOC_H
#define ROCKSORT_UTIL_XALLOC_H

#include <stdbool.h>
#include <stddef.h>

void *xmalloc(size_t n_bytes);
void *xcalloc(size_t n, size_t item_bytes);
void *xrealloc(void *mem, size_t n_bytes);
char *xstrdup(const char *text);

/* A copy of n_bytes of mem. */
void *xmemdup(const void *mem, size_t n_bytes);

/* The text that printf would print. */
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Gives the allocated array whose pointer is at `array` room for n items. If it must grow it gets
 * room for some_more items besides, so that it is not copied for every item. *room is its size in
 * items, 0 at first.
 */
void xgrow(void *array, size_t *room, size_t n, size_t some_more, size_t item_bytes);

/* Ends the process unless the memory was had: for functions of libraries that fail for nothing but
   lack of memory, such as xalloc_require(kputs(text, &line) >= 0). */
void xalloc_require(bool was_had);

/* Has end() called before the process ends; NULL: nothing. Not while other threads run. */
void xalloc_on_failure(void (*end)(void));

#endif
