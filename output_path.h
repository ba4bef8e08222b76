/*
 * output_path.h -- under which name a file is written, and which it gets when it is complete.
 *
 * A regular file is written under a temporary name beside it and renamed, so that its name never
 * stands for half a result, and a file can be sorted onto itself. A link is followed first.
 * Devices, pipes, URLs, and files in directories in which nothing can be made are written as they
 * stand.
 *
 * Order of calls: choose, before hours of work; write to output_path_to_write; commit; release at
 * any time. Whoever gives up unlinks `temporary`. Errors: -1 after a message.
 */
#ifndef ROCKSORT_OUTPUT_PATH_H
#define ROCKSORT_OUTPUT_PATH_H

#include <stdbool.h>
#include <sys/types.h>

struct output_path {            /* starts as {0} */
    const char *name;           /* as it was given, borrowed */
    char *final;                /* the regular file; NULL: written as it stands */
    char *temporary;            /* NULL likewise */
    mode_t mode;                /* permissions for the file; the umask applies to new ones */
};

/* Also checks that the file can probably be made. */
int output_path_choose(struct output_path *path, const char *name);

static inline const char *output_path_to_write(const struct output_path *path)
{
    return path->temporary ? path->temporary : path->name;
}

/* True if both stand for the same regular file. */
bool output_path_same(const struct output_path *a, const struct output_path *b);

/* Gives the complete file its name. */
int output_path_commit(const struct output_path *path);

void output_path_release(struct output_path *path);

#endif
