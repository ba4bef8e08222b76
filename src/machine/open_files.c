/* open_files.c -- see open_files.h. */
#include "machine/open_files.h"

#include <sys/resource.h>

enum { MOST_FILES = 1 << 20 };

size_t open_files_raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    if (limit.rlim_cur < limit.rlim_max) {
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
    }
    return limit.rlim_cur > MOST_FILES ? MOST_FILES : (size_t)limit.rlim_cur;
}

bool open_files_suffice(size_t needed, size_t *limit)
{
    *limit = open_files_raise_limit();
    return *limit == 0 || *limit >= needed;
}
