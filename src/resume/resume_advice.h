/*
 * resume_advice.h -- finds what the user needs besides the command that resumes the sort:
 * checkpoints of earlier attempts, and another disk with room after a disk was full.
 *
 * Failures here are not errors of the sort.
 */
#ifndef ROCKSORT_RESUME_RESUME_ADVICE_H
#define ROCKSORT_RESUME_RESUME_ADVICE_H

#include "resume/checkpoint_dir.h"
#include "util/size.h"

/* A killed process cannot print that its sort can be resumed. The next sort, usually the same
   command again, prints it instead: looks in the parents of its temporary directories, and prints a
   note for each checkpoint of an earlier sort with the same output or a common input. Threads:
   one. */
void orphan_checkpoints_tell(const struct checkpoint_file *own);

struct other_disk {
    struct checkpoint_places places;
    char note[PATH_MAX + SIZE_TEXT_BYTES + 64];         /* follows "to finish"; may be empty */
};

/* Chooses the directory with the most free space that is not on the disk of diag_full_place, for
   files and temporary directories that `file` describes. writes_runs: the resumed sort will write
   more runs. If no disk was full, all is NULL, and the note is empty. Any thread;
   other_disk_release frees the result. */
struct other_disk other_disk_choose(const struct checkpoint_file *file, bool writes_runs);

void other_disk_release(struct other_disk *other);

#endif
