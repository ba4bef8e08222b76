/*
 * disk_space.h -- how much space a file system has left, and how to say it.
 *
 * Pure questions to the system; any thread, at any time, also when the disk is full or memory is
 * short: nothing is allocated. No messages.
 */
#ifndef ROCKSORT_MACHINE_DISK_SPACE_H
#define ROCKSORT_MACHINE_DISK_SPACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct disk_space {
    bool known;
    uint64_t free_bytes;        /* for this user */
    uint64_t free_files;        /* likewise; UINT64_MAX where files are not counted */
    dev_t device;               /* two paths with the same one share the space */
    char mount[PATH_MAX];       /* where the file system is mounted */
};

/* Looks at the file system of a file or directory, or, if it does not exist, of the directory it
   would be in. Returns true if something is known. */
bool disk_space_look(const char *path, struct disk_space *space);

/* What is free for this user on the file system of a path that exists. Returns 0, or -1 with errno
   set and *free_bytes 0. */
int disk_space_free(const char *path, uint64_t *free_bytes);

/* True if the errno says that there is no space. */
bool disk_space_is_short(int error);

enum { DISK_SPACE_SIZE_BYTES = 32, DISK_SPACE_TEXT_BYTES = PATH_MAX + 128 };

/* 1.5 GB, 20.0 MB, 512 bytes: returns text. */
const char *disk_space_size(uint64_t n_bytes, char text[DISK_SPACE_SIZE_BYTES]);

/*
 * What a message about a full disk adds: "; file system '/scratch' has 0 bytes free, about 1.5 GB
 * more are needed". needed_bytes 0: nobody knows. Where files are what is short it says that.
 * Returns text, which is empty if nothing is known.
 */
const char *disk_space_describe(const char *path, uint64_t needed_bytes,
                                char text[DISK_SPACE_TEXT_BYTES]);

#endif
