/* path.c -- see path.h. */
#include "util/path.h"

#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool path_go_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || strcmp(path, "/") == 0) return false;
    slash[slash == path] = '\0';        /* keeps the slash of the root */
    return true;
}

bool path_make_parent(const char *path)
{
    char parent[PATH_MAX];
    (void)snprintf(parent, sizeof parent, "%s", path);
    return path_go_up(parent) && mkdir(parent, 0777) == 0;
}

void path_remove_parent(const char *path)
{
    char parent[PATH_MAX];
    (void)snprintf(parent, sizeof parent, "%s", path);
    if (path_go_up(parent)) (void)rmdir(parent);
}

char *path_parent(const char *path)
{
    char *dir = xstrdup(path);
    if (path_go_up(dir) || strcmp(dir, "/") == 0) return dir;
    free(dir);
    return xstrdup(".");
}

char *path_fixed_parent(const char *pattern)
{
    char *dir = path_parent(pattern);
    if (!strchr(path_name(dir), '%')) return dir;
    char *above = path_parent(dir);
    free(dir);
    return above;
}

bool path_is_url(const char *name)
{
    return strstr(name, "://") != NULL;
}

bool path_is_standard_output(const char *name)
{
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static int sync_path(const char *path, int flags)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (fd < 0) return -1;
    int r = fsync(fd), error = errno;
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
    return sync_path(path, O_DIRECTORY);
}
