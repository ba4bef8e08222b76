/*
 * other_disk.h -- names a disk with room for a sort that failed because a disk is full, so that the
 * command that resumes it works.
 *
 * Any thread, also when the disk is full. other_disk_choose returns strings that other_disk_release
 * frees.
 */
#ifndef ROCKSORT_RESUME_OTHER_DISK_H
#define ROCKSORT_RESUME_OTHER_DISK_H

#include "resume/checkpoint_file.h"
#include "util/size.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct other_disk_sort {
    const char *const *temp_dirs;       /* its temporary directories */
    size_t n_temp_dirs;
    bool writes_runs;           /* resumed, it will write further temporary data */
    const char *files[CHECKPOINT_N_FILES];      /* that it writes, or patterns with a %; or NULL */
    uint64_t output_bytes;      /* about the size of an output: that of the input; 0: unknown */
};

struct other_disk {
    /* where it can write instead; NULL: where it wrote */
    char *temp_dir, *files[CHECKPOINT_N_FILES];
    char note[PATH_MAX + SIZE_TEXT_BYTES + 64];         /* follows "to finish"; may be empty */
};

/* Chooses the directory with the most free space on another disk than diag_full_place. Without such
   an error all is NULL, and the note is empty. */
struct other_disk other_disk_choose(const struct other_disk_sort *sort);

void other_disk_release(struct other_disk *other);

#endif
