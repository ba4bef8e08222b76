/*
 * disk_space.h -- returns the free space of a file system and prints the errors of a full disk.
 *
 * Any thread, at any time, also when the disk is full or memory is short: nothing is allocated.
 */
#ifndef ROCKSORT_OS_DISK_SPACE_H
#define ROCKSORT_OS_DISK_SPACE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct disk_space {
    bool known;
    uint64_t free_bytes;        /* for this user */
    uint64_t free_files;        /* inodes for this user; UINT64_MAX: they are not counted */
    dev_t device;               /* paths with the same device share the space */
    char mount[PATH_MAX];       /* where the file system is mounted */
};

/* Reads the free space of the file system of a file or directory. If the path does not exist, takes
   its parent directory. Returns space->known; if false, all is 0. */
bool disk_space_look(const char *path, struct disk_space *space);

/* True if the errno means that the disk is full or the user's quota is used up. */
bool disk_space_is_short(int error);

/*
 * Prints the error of a full disk: "cannot write in 'DIR': REASON; '/scratch' has 0 bytes free, 1.5
 * GB more are needed; free space or change -T". needed_bytes 0: unknown.
 */
void disk_space_print_full(const char *dir, const char *reason, uint64_t needed_bytes);

/*
 * Prints the error of an output file: "cannot write 'NAME': REASON". `error` is an errno, or 0 if
 * htslib reports none. If the disk is full, the message also says how much space is left on the
 * file system of `path`. path is NULL if the output is not a file.
 */
void disk_space_print_output_error(const char *name, int error, const char *path,
                                   uint64_t needed_bytes);

#endif
