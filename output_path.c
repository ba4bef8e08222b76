/* output_path.c -- see output_path.h. */
#include "output_path.h"

#include "diag.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The name of a file that is not there yet, the links to its directory followed; NULL: errno. */
static char *resolve_new(const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    char *dir = slash ? strndup(name, (size_t)(slash - name) + 1) : strdup(".");
    char *real = dir ? realpath(dir, NULL) : NULL;
    size_t room = real ? strlen(real) + strlen(base) + 2 : 0;
    char *path = real ? malloc(room) : NULL;
    if (path) (void)snprintf(path, room, "%s/%s", strcmp(real, "/") == 0 ? "" : real, base);
    free(dir);
    free(real);
    return path;
}

static bool can_write_beside(const char *path)
{
    char *dir = strdup(path);
    if (!dir) return false;
    char *slash = strrchr(dir, '/');
    slash[slash == dir] = '\0';
    bool can = access(dir, W_OK | X_OK) == 0;
    free(dir);
    return can;
}

/* A name beside the file; of a long name only as much as leaves room for what is added. */
static char *make_temporary(const char *final)
{
    char tail[64];
    /* In a container every run has the same process id; the time tells them apart. */
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int n_tail = snprintf(tail, sizeof tail, ".rocksort.%ld.%09ld.tmp", (long)getpid(),
                          now.tv_nsec);
    size_t dir_bytes = (size_t)(strrchr(final, '/') + 1 - final), n = strlen(final);
    size_t most = dir_bytes + NAME_MAX - (size_t)n_tail;
    if (n > most) n = most;
    char *temporary = malloc(n + sizeof tail);
    if (temporary) (void)snprintf(temporary, n + sizeof tail, "%.*s%s", (int)n, final, tail);
    return temporary;
}

int output_path_choose(struct output_path *path, const char *name)
{
    struct stat st;
    *path = (struct output_path){.name = name, .mode = 0666};
    if (strncmp(name, "file:", 5) == 0) name += strncmp(name, "file://", 7) == 0 ? 7 : 5;
    if (strstr(name, "://")) return 0;
    path->name = name;
    bool is_link = lstat(name, &st) == 0 && S_ISLNK(st.st_mode), exists = stat(name, &st) == 0;
    if (exists && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return 0;
    if (!exists && is_link) return 0;           /* what it leads to will be made */
    size_t n = strlen(name);
    errno = exists ? EISDIR : ENOENT;
    if (n > 0 && name[n - 1] != '/' && !(exists && S_ISDIR(st.st_mode))) {
        if (exists) path->mode = st.st_mode & 07777;
        path->final = exists ? realpath(name, NULL) : resolve_new(name);
        bool beside = path->final && can_write_beside(path->final);
        if (!beside && exists && access(name, W_OK) == 0) {
            free(path->final);                  /* it can be overwritten, and nothing else */
            path->final = NULL;
            return 0;
        }
        if (beside) path->temporary = make_temporary(path->final);
    }
    if (path->temporary) return 0;
    diag_error("cannot create '%s': %s", name, strerror(errno));
    output_path_release(path);
    return -1;
}

bool output_path_same(const struct output_path *a, const struct output_path *b)
{
    return a->final && b->final && strcmp(a->final, b->final) == 0;
}

int output_path_commit(const struct output_path *path)
{
    if (!path->temporary || rename(path->temporary, path->final) == 0) return 0;
    diag_error("cannot rename '%s' to '%s': %s", path->temporary, path->final, strerror(errno));
    return -1;
}

void output_path_release(struct output_path *path)
{
    free(path->final);
    free(path->temporary);
    *path = (struct output_path){0};
}
