/*
 * cgroup.h -- the limits of CPU time and memory that control groups (v1 and v2) set for this
 * process: those of a container, for example, or of a cluster's job.
 *
 * The limits of the group of the process and of all groups above it apply. Any thread; never fails:
 * a limit that cannot be read counts as no limit.
 */
#ifndef ROCKSORT_MACHINE_CGROUP_H
#define ROCKSORT_MACHINE_CGROUP_H

#include <stdint.h>

struct cgroup {
    double cpus;                /* seconds of CPU time per second; 0: no limit */
    uint64_t limit_bytes;       /* of memory, page cache included; UINT64_MAX: no limit */
    uint64_t free_bytes;        /* the limit less what is used, without inactive page cache */
};

/* Reads the limits of this process. */
void cgroup_read(struct cgroup *limits);

/* For tests: reads the limits. `list` is a file like /proc/self/cgroup, `root` a directory like
   /sys/fs/cgroup. */
void cgroup_read_at(const char *list, const char *root, struct cgroup *limits);

#endif
