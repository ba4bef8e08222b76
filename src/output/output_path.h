/*
 * output_path.h -- under which name a file is written, and which it gets when it is complete.
 *
 * A regular file is written under a temporary name beside it and renamed, so that its name never
 * stands for half a result, and a file can be sorted onto itself. A symbolic link is followed
 * first, also to a file that is not there; other hard links stay what they are. Devices, pipes,
 * URLs, open files (/dev/fd/5), files that are mounted, and those in directories in which nothing
 * can be made are written as they stand.
 *
 * Order of calls: choose, before hours of work; open, write, close; commit, or drop; release at any
 * time. Errors: -1 after a message, unless said otherwise.
 *
 * A signal may end the process at any moment, and the thread that takes it removes the temporary
 * file. A file that is made behind its back would stay. So files are made with `lock` held, and
 * that thread takes the lock before it removes them and never gives it back.
 */
#ifndef ROCKSORT_OUTPUT_OUTPUT_PATH_H
#define ROCKSORT_OUTPUT_OUTPUT_PATH_H

#include <htslib/hfile.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct output_path {            /* starts as {0} */
    const char *name;           /* as it was given, borrowed */
    char *final;                /* the regular file; NULL: written as it stands */
    char *temporary;            /* NULL likewise */
    bool replaces;              /* a file that is there: the new one gets its permissions, and, */
    mode_t mode;
    uid_t uid;                  /* as far as that is allowed, its owner and group */
    gid_t gid;
    /* set by the caller after choosing */
    pthread_mutex_t *lock;      /* held while the temporary file is made; NULL: nobody removes it */
    bool durable;               /* commit waits until file and name are on the disk */
};

/* Also checks that the file can probably be made. */
int output_path_choose(struct output_path *path, const char *name);

static inline const char *output_path_to_write(const struct output_path *path)
{
    return path->temporary ? path->temporary : path->name;
}

/* Opens the file; the temporary one must not exist. NULL on failure, with errno set. */
hFILE *output_path_open(const struct output_path *path);

/* The same as a descriptor; not for URLs. -1 on failure, with errno set. */
int output_path_create(const struct output_path *path);

/* The same for a library that opens the file by its name: calls `make`, which returns 0 or -1, when
   an empty file is there and before the lock is let go. Returns -1 with errno set, or 0. */
int output_path_make(const struct output_path *path, int (*make)(void *arg), void *arg);

/* True if both stand for the same regular file. */
bool output_path_same(const struct output_path *a, const struct output_path *b);

/* Gives the complete, closed file its name. */
int output_path_commit(const struct output_path *path);

/* Removes the temporary file, if there is one; warns if that fails. */
void output_path_drop(const struct output_path *path);

/* Removes the temporary file of a process that is dead and could not, if the name looks like one
   and the file is ours; NULL is accepted. */
void output_path_remove_leftover(const char *temporary);

void output_path_release(struct output_path *path);

#endif
