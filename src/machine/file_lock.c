/* file_lock.c -- see file_lock.h. */
#include "machine/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum file_lock file_lock_try(int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return FILE_LOCK_HELD;
    if (errno == EWOULDBLOCK) return FILE_LOCK_BUSY;
    bool has_none = errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL;
    return has_none ? FILE_LOCK_NONE : FILE_LOCK_ERROR;
}

enum file_lock file_lock_patiently(int fd)
{
    enum { TRIES = 10, WAIT_MICROSECONDS = 20000 };
    enum file_lock lock = file_lock_try(fd);
    for (int i = 0; lock == FILE_LOCK_BUSY && i < TRIES; i++) {
        (void)usleep(WAIT_MICROSECONDS);
        lock = file_lock_try(fd);
    }
    return lock;
}

void file_lock_drop(int fd)
{
    (void)flock(fd, LOCK_UN);
}

bool file_lock_has_name(int fd, int dir_fd, const char *name)
{
    struct stat held, there;
    return fstat(fd, &held) == 0 && fstatat(dir_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}
