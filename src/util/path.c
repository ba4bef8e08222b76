/* path.c -- see path.h. */
#include "util/path.h"

#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool path_go_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || strcmp(path, "/") == 0) return false;
    slash[slash == path] = '\0';        /* the slash of the root stays */
    return true;
}

char *path_parent(const char *path)
{
    char *dir = xstrdup(path);
    if (path_go_up(dir) || strcmp(dir, "/") == 0) return dir;
    free(dir);
    return xstrdup(".");
}
