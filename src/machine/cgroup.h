/*
 * cgroup.h -- the limits of the control groups that this process is in, such as those of a
 * container or of a cluster's job: CPU time and memory, of cgroup v1 and v2.
 *
 * A limit of any group on the way to the root counts. Any thread; never fails: what cannot be read
 * is no limit.
 */
#ifndef ROCKSORT_MACHINE_CGROUP_H
#define ROCKSORT_MACHINE_CGROUP_H

#include <stdint.h>

struct cgroup {
    double cpus;                /* CPU time that may be used in a second; 0: no limit */
    uint64_t limit_bytes;       /* of memory, page cache included; UINT64_MAX: no limit */
    uint64_t free_bytes;        /* ... less what is used and is not unused page cache */
};

/* Of this process. */
void cgroup_read(struct cgroup *limits);

/* The same from a list as in /proc/self/cgroup and a hierarchy as in /sys/fs/cgroup, for tests. */
void cgroup_read_at(const char *list, const char *root, struct cgroup *limits);

#endif
