/* path.c -- see path.h. */
#include "util/path.h"

#include <string.h>

bool path_go_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || strcmp(path, "/") == 0) return false;
    slash[slash == path] = '\0';
    return true;
}

char *path_parent(const char *path)
{
    if (!strchr(path, '/')) return strdup(".");
    char *dir = strdup(path);
    if (dir) (void)path_go_up(dir);
    return dir;
}
