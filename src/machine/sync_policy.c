/* sync_policy.c -- see sync_policy.h. */
#define _GNU_SOURCE             /* RTLD_NEXT */
#include "machine/sync_policy.h"

#include "machine/interposed.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *const *_Atomic left_out;   /* NULL: nothing is */

void sync_policy_leave_out(char *const *paths)
{
    atomic_store(&left_out, paths);
}

bool sync_policy_make_all(void)
{
    return atomic_exchange(&left_out, NULL) != NULL;
}

#if defined(__linux__)
static bool is_left_out(int fd)
{
    char *const *paths = atomic_load(&left_out);
    char link[64], target[PATH_MAX];
    if (!paths) return false;
    int error = errno;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, target, sizeof target - 1);
    errno = error;
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

/* File systems that cannot sync directories, some that are shared with other systems among them,
   say EINVAL: there is nothing to wait for, and RocksDB would give up. A file must be synced. */
static int is_synced(int fd, int result)
{
    struct stat st;
    if (result == 0 || errno != EINVAL) return result;
    bool is_directory = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    errno = EINVAL;
    return is_directory ? 0 : result;
}

#define PASSED_ON(name)                                                                            \
    int name(int fd)                                                                               \
    {                                                                                              \
        static void *_Atomic known;                                                                \
        int (*sync_fd)(int);                                                                       \
        interposed_next(&known, #name, &sync_fd);                                                  \
        return is_left_out(fd) ? 0 : is_synced(fd, sync_fd(fd));                                   \
    }

PASSED_ON(fsync)
PASSED_ON(fdatasync)
#endif
