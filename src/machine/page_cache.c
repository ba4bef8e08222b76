/*
 * page_cache.c -- keeps the temporary data in the page cache.
 *
 * RocksDB's SstFileWriter drops each file from the page cache as it writes it, and its C interface
 * has no way to tell it not to. What is dropped is read from the disk again: its last and first
 * blocks when the file becomes part of the database, four random reads a run, which take as long as
 * writing the run on a rotating disk; and all of it in the merge, which on a machine with memory to
 * spare need not read the disk at all.
 *
 * This definition comes before that of the C library when librocksdb is bound to the program; it
 * leaves that one piece of advice out and passes on all other.
 *
 * RocksDB asks once for each file whether sync_file_range works there, and where asserts are
 * compiled in, as in Debian, it aborts at any error but ENOSYS (7.8.3). So it gets no other.
 */
#define _GNU_SOURCE             /* RTLD_NEXT */
#include "machine/interposed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__linux__) && defined(__LP64__)
int posix_fadvise(int fd, off_t offset, off_t n_bytes, int advice)
{
    if (advice == POSIX_FADV_DONTNEED) return 0;
    int errno_before = errno;
    int error = syscall(SYS_fadvise64, fd, offset, n_bytes, advice) == 0 ? 0 : errno;
    errno = errno_before;       /* the result is returned, as in the C library */
    return error;
}

int sync_file_range(int fd, off_t offset, off_t n_bytes, unsigned flags)
{
    static void *_Atomic known;
    int (*sync_range)(int, off_t, off_t, unsigned);
    interposed_next(&known, "sync_file_range", &sync_range);
    int r = sync_range(fd, offset, n_bytes, flags);
    if (r < 0 && n_bytes == 0 && flags == 0) errno = ENOSYS;
    return r;
}
#endif
