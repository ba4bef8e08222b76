/* input_file.c -- see input_file.h. */
#include "input/input_file.h"

#include "util/xalloc.h"

#include <htslib/hts.h>
#include <string.h>
#include <unistd.h>

const char *input_shown_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

char *input_plain_name(const char *name)
{
    static const char *const schemes[] = {"file://localhost/", "file:///"};
    const char *end = strstr(name, HTS_IDX_DELIM);
    size_t n = end ? (size_t)(end - name) : strlen(name);
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t before = strlen(schemes[i]) - 1;         /* the last slash belongs to the path */
        if (n > before && strncmp(name, schemes[i], before + 1) == 0)
            return xasprintf("%.*s", (int)(n - before), name + before);
    }
    return xasprintf("%.*s", (int)n, name);
}

int input_stat(const char *path, struct stat *st)
{
    return strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, st) : stat(path, st);
}

bool input_is_regular(const char *path, struct stat *st)
{
    return input_stat(path, st) == 0 && S_ISREG(st->st_mode);
}

bool input_is_among(const char *const *paths, size_t n, const char *file)
{
    struct stat st, in;
    if (stat(file, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    for (size_t i = 0; i < n; i++)
        if (input_stat(paths[i], &in) == 0 && in.st_dev == st.st_dev && in.st_ino == st.st_ino)
            return true;
    return false;
}

bool input_is_pipe(const char *path)
{
    struct stat st;
    return input_stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

int64_t input_bytes(const char *path)
{
    struct stat st;
    return input_is_regular(path, &st) ? (int64_t)st.st_size : -1;
}

uint64_t input_bytes_of_all(const char *const *paths, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t n_bytes = input_bytes(paths[i]);
        if (n_bytes < 0) return 0;
        sum += (uint64_t)n_bytes;
    }
    return sum;
}
