/*
 * allocation.c -- no library ever sees an allocation fail.
 *
 * RocksDB uses what posix_memalign gives it unchecked, and htslib's CRAM encoder frees what its
 * threads are using when an allocation fails: both crash (`make fault-sweep` shows it). So these
 * definitions, which come before those of the C library when libraries are bound to the program,
 * end a sort that gets no memory at the place where it gets none: with a message and without
 * leavings (exception_guard.h). They call what would have been called without them, be it the C
 * library's allocator or one that a user preloads. A call costs two jumps more; a sort of 600,000
 * records, 208 MB in 32 MB, makes 48,000 of them.
 *
 * Sanitizers have allocators of their own: there, and before and after a sort, failures are seen by
 * whoever asked.
 */
#define _GNU_SOURCE             /* RTLD_NEXT */
#include "machine/exception_guard.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define HAS_OWN_ALLOCATOR
#endif
#endif

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&       \
    !defined(HAS_OWN_ALLOCATOR)

/* Those of the C library under other names: for what is asked while the others are looked up. */
extern void *__libc_malloc(size_t n_bytes);
extern void *__libc_calloc(size_t n, size_t n_bytes);
extern void *__libc_realloc(void *mem, size_t n_bytes);

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    bool known, looking;
} next;

static void find(const char *symbol, void *function)
{
    void *address = dlsym(RTLD_NEXT, symbol);
    if (address) memcpy(function, &address, sizeof address);
}

/* The first call comes from the dynamic linker or a library's constructor, before there are any
   threads. Whatever it is given must be known to the `free` that will get it. */
static inline void know_next(void)
{
    if (__builtin_expect(next.known, true) || next.looking) return;
    next.looking = true;
    next.malloc = __libc_malloc;
    next.calloc = __libc_calloc;
    next.realloc = __libc_realloc;
    find("malloc", &next.malloc);
    find("calloc", &next.calloc);
    find("realloc", &next.realloc);
    find("posix_memalign", &next.posix_memalign);
    next.known = true;
}

void *malloc(size_t n_bytes)
{
    know_next();
    void *mem = next.malloc(n_bytes);
    if (!mem) exception_guard_no_memory();
    return mem;
}

void *calloc(size_t n, size_t n_bytes)
{
    know_next();
    void *mem = next.calloc(n, n_bytes);
    if (!mem) exception_guard_no_memory();
    return mem;
}

void *realloc(void *mem, size_t n_bytes)
{
    know_next();
    void *grown = next.realloc(mem, n_bytes);
    if (!grown && n_bytes > 0) exception_guard_no_memory();
    return grown;
}

int posix_memalign(void **mem, size_t alignment, size_t n_bytes)
{
    know_next();
    int error = next.posix_memalign ? next.posix_memalign(mem, alignment, n_bytes) : ENOMEM;
    if (error == ENOMEM) exception_guard_no_memory();
    return error;
}
#endif
