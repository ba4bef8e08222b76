/*
 * other_disk.h -- after a sort has failed because a disk is full, finds another disk with room for
 * the command that resumes it.
 *
 * Threads: any. other_disk_release frees what other_disk_choose returns.
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
    bool writes_runs;           /* the resumed sort will write more runs */
    const char *files[CHECKPOINT_N_FILES];      /* its output files, or patterns with a %; or
                                                   NULL */
    uint64_t output_bytes;      /* estimated size of an output: that of the input; 0: unknown */
};

struct other_disk {
    /* new places; NULL: the old place is good */
    char *temp_dir, *files[CHECKPOINT_N_FILES];
    char note[PATH_MAX + SIZE_TEXT_BYTES + 64];         /* follows "to finish"; may be empty */
};

/* Chooses the directory with the most free space that is not on the disk of diag_full_place. If no
   disk was full, all is NULL, and the note is empty. */
struct other_disk other_disk_choose(const struct other_disk_sort *sort);

void other_disk_release(struct other_disk *other);

#endif
