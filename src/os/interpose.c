/*
 * interpose.c -- see interpose.h.
 *
 * Memory. RocksDB uses the result of posix_memalign without a check, and when an allocation fails,
 * htslib's CRAM encoder frees memory that its threads still use: both crash (`make fault-sweep`
 * shows it). So no library ever sees an allocation fail during a sort: instead the process prints a
 * message, removes its temporary data, and ends (exception_guard.h). Sanitizers have their own
 * allocators, which are not replaced. With a sanitizer, and before and after a sort, the caller
 * gets NULL.
 *
 * Page cache. RocksDB's SstFileWriter drops each file from the page cache as it writes it; the C
 * interface cannot prevent that. The merge would read the whole file from the disk; and when a file
 * is ingested, RocksDB reads its last and first blocks, which takes a rotating disk as long as
 * writing the run.
 *
 * sync_file_range. RocksDB calls it once for each file, with size and flags 0, to see whether the
 * file system supports it. If RocksDB is built with asserts, as Debian's 7.8.3 is, it aborts at any
 * error except ENOSYS. So if this trial fails, the error is always ENOSYS.
 *
 * Syncs. RocksDB syncs half a dozen times for each run; its C interface has no way to skip them.
 */
#define _GNU_SOURCE             /* RTLD_NEXT */
#include "os/interpose.h"

#include "os/exception_guard.h"
#include "os/find_function.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- memory ---- */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define HAS_OWN_ALLOCATOR
#endif
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(HAS_OWN_ALLOCATOR)

/* The C library's own allocator, for allocations within dlsym. */
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

/* The first call comes from the dynamic linker or from a constructor of a library, before there are
   any threads. The allocator found here will free that memory, so it must also allocate it. */
static inline void find_allocator(void)
{
    if (__builtin_expect(next.known, true) || next.looking) return;
    next.looking = true;
    next.malloc = __libc_malloc;
    next.calloc = __libc_calloc;
    next.realloc = __libc_realloc;
    find_function(RTLD_NEXT, "malloc", &next.malloc);
    find_function(RTLD_NEXT, "calloc", &next.calloc);
    find_function(RTLD_NEXT, "realloc", &next.realloc);
    find_function(RTLD_NEXT, "posix_memalign", &next.posix_memalign);
    next.known = true;
}

void *malloc(size_t n_bytes)
{
    find_allocator();
    void *mem = next.malloc(n_bytes);
    if (!mem) exception_guard_no_memory();
    return mem;
}

void *calloc(size_t n, size_t n_bytes)
{
    find_allocator();
    void *mem = next.calloc(n, n_bytes);
    if (!mem) exception_guard_no_memory();
    return mem;
}

void *realloc(void *mem, size_t n_bytes)
{
    find_allocator();
    void *grown = next.realloc(mem, n_bytes);
    if (!grown && n_bytes > 0) exception_guard_no_memory();
    return grown;
}

int posix_memalign(void **mem, size_t alignment, size_t n_bytes)
{
    find_allocator();
    int error = next.posix_memalign ? next.posix_memalign(mem, alignment, n_bytes) : ENOMEM;
    if (error == ENOMEM) exception_guard_no_memory();
    return error;
}
#endif

/* ---- page cache ---- */

int posix_fadvise(int fd, off_t offset, off_t n_bytes, int advice)
{
    if (advice == POSIX_FADV_DONTNEED) return 0;
    int errno_before = errno;   /* the error is returned; errno stays, as in the C library */
    int error = syscall(SYS_fadvise64, fd, offset, n_bytes, advice) == 0 ? 0 : errno;
    errno = errno_before;
    return error;
}

int sync_file_range(int fd, off_t offset, off_t n_bytes, unsigned flags)
{
    int (*sync_range)(int, off_t, off_t, unsigned) = NULL;
    find_function(RTLD_NEXT, "sync_file_range", &sync_range);
    int r = sync_range(fd, offset, n_bytes, flags);
    if (r < 0 && n_bytes == 0 && flags == 0) errno = ENOSYS;
    return r;
}

/* ---- syncs ---- */

static char *const *_Atomic skipped;    /* directories that are not synced; NULL: none */
static _Thread_local bool puts_off;     /* this thread syncs nothing */

void interpose_put_off_syncs(bool put_off)
{
    puts_off = put_off;
}

void interpose_skip_syncs(char *const *paths)
{
    atomic_store(&skipped, paths);
}

bool interpose_make_all_syncs(void)
{
    return atomic_exchange(&skipped, NULL) != NULL;
}

static bool is_skipped(int fd)
{
    char *const *paths = atomic_load(&skipped);
    char link[64], target[PATH_MAX];
    if (puts_off) return true;
    if (!paths) return false;
    int errno_before = errno;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, target, sizeof target - 1);
    errno = errno_before;
    if (n < 0) return false;
    target[n] = '\0';
    for (size_t i = 0; paths[i]; i++) {
        size_t n_path = strlen(paths[i]);
        if (strncmp(target, paths[i], n_path) == 0 &&
            (target[n_path] == '/' || target[n_path] == '\0'))
            return true;
    }
    return false;
}

/* Some network file systems cannot sync a directory and report EINVAL, at which RocksDB would fail.
   So EINVAL counts as success for a directory. */
static int check_sync(int fd, int result)
{
    struct stat st;
    if (result == 0 || errno != EINVAL) return result;
    bool is_directory = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    errno = EINVAL;
    return is_directory ? 0 : result;
}

#define SYNC_FUNCTION(name)                                                                        \
    int name(int fd)                                                                               \
    {                                                                                              \
        int (*sync_fd)(int) = NULL;                                                                \
        find_function(RTLD_NEXT, #name, &sync_fd);                                                 \
        return is_skipped(fd) ? 0 : check_sync(fd, sync_fd(fd));                                   \
    }

SYNC_FUNCTION(fsync)
SYNC_FUNCTION(fdatasync)
