/*
 * other_disk.h -- after a sort has failed because a disk is full, finds another disk with room for
 * the command that resumes it.
 *
 * Threads: any. other_disk_release frees what other_disk_choose returns.
 */
#ifndef ROCKSORT_RESUME_OTHER_DISK_H
#define ROCKSORT_RESUME_OTHER_DISK_H

#include "resume/checkpoint_dir.h"
#include "util/size.h"

struct other_disk {
    struct checkpoint_places places;
    char note[PATH_MAX + SIZE_TEXT_BYTES + 64];         /* follows "to finish"; may be empty */
};

/* Chooses the directory with the most free space that is not on the disk of diag_full_place, for
   files and temporary directories that `file` describes. writes_runs: the resumed sort will write
   more runs. If no disk was full, all is NULL, and the note is empty. */
struct other_disk other_disk_choose(const struct checkpoint_file *file, bool writes_runs);

void other_disk_release(struct other_disk *other);

#endif
