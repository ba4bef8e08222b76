/* path_sync.c -- see path_sync.h. */
#include "machine/path_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int sync_path(const char *path, int flags)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (fd < 0) return -1;
    int r;
    do r = fsync(fd);
    while (r < 0 && errno == EINTR);
    int error = errno;
    if (close(fd) < 0 && r == 0) return -1;
    errno = error;
    return r;
}

int path_sync_file(const char *path)
{
    return sync_path(path, 0);
}

int path_sync_directory(const char *path)
{
    /* A file system that cannot sync directories says EINVAL. */
    return sync_path(path, O_DIRECTORY) == 0 || errno == EINVAL ? 0 : -1;
}
