/* xalloc.c -- see xalloc.h. */
#define _GNU_SOURCE             /* vasprintf */
#include "util/xalloc.h"

#include "util/diag.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void (*on_failure)(void);

void xalloc_on_failure(void (*clean_up)(void))
{
    on_failure = clean_up;
}

/* Calls _exit, because exit would destroy objects of libraries that other threads still use.
   Standard error has no buffer, and output in other buffers is not needed. */
static _Noreturn void end_without_memory(void)
{
    if (on_failure) on_failure();
    diag_no_memory();
    _exit(EXIT_FAILURE);
}

void xalloc_require(bool had_memory)
{
    if (!had_memory) end_without_memory();
}

/* Allocates 1 byte for size 0, because malloc(0) may return NULL on success. */
void *xmalloc(size_t n_bytes)
{
    void *mem = malloc(n_bytes ? n_bytes : 1);
    if (!mem) end_without_memory();
    return mem;
}

void *xcalloc(size_t n, size_t item_bytes)
{
    bool is_empty = n == 0 || item_bytes == 0;
    void *mem = calloc(is_empty ? 1 : n, is_empty ? 1 : item_bytes);
    if (!mem) end_without_memory();
    return mem;
}

void *xrealloc(void *mem, size_t n_bytes)
{
    void *grown = realloc(mem, n_bytes ? n_bytes : 1);
    if (!grown) end_without_memory();
    return grown;
}

void *xmemdup(const void *mem, size_t n_bytes)
{
    void *copy = xmalloc(n_bytes);
    if (n_bytes > 0) memcpy(copy, mem, n_bytes);
    return copy;
}

char *xstrdup(const char *text)
{
    return xmemdup(text, strlen(text) + 1);
}

char *xasprintf(const char *format, ...)
{
    va_list args;
    char *text;
    va_start(args, format);
    /* Else it fails only for wide characters and texts of 2 GiB; no format of ours has either. */
    xalloc_require(vasprintf(&text, format, args) >= 0);
    va_end(args);
    return text;
}

void xgrow(void *array, size_t *room, size_t n, size_t some_more, size_t item_bytes)
{
    if (n <= *room) return;
    size_t most = SIZE_MAX / item_bytes;
    xalloc_require(n <= most && some_more <= most - n);
    /* The pointer may be of any type, so it is read and written with memcpy. */
    void *items;
    memcpy(&items, array, sizeof items);
    items = xrealloc(items, (n + some_more) * item_bytes);
    memcpy(array, &items, sizeof items);
    *room = n + some_more;
}

void xgrow_zeroed(void *array, size_t *room, size_t n, size_t some_more, size_t item_bytes)
{
    size_t old_room = *room;
    char *items;
    xgrow(array, room, n, some_more, item_bytes);
    memcpy(&items, array, sizeof items);
    if (*room > old_room) memset(items + old_room * item_bytes, 0, (*room - old_room) * item_bytes);
}
