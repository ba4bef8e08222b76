/*
 * memory.h -- returns the limits of this process (memory, CPUs, open files) and what it uses
 * (memory, CPU time, I/O).
 *
 * Any thread; no messages. If the kernel reports nothing, available memory is UINT64_MAX, used
 * memory is 0, and a control group has no limit.
 */
#ifndef ROCKSORT_OS_MEMORY_H
#define ROCKSORT_OS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Returns the bytes that programs and page cache may use: the kernel's MemAvailable, or the limit
 * of a memory cgroup (v1 or v2, such as that of a container) if that is less.
 */
uint64_t memory_available(void);

/* Returns the memory of the machine, or the limit of a memory cgroup if that is less. */
uint64_t memory_of_machine(void);

/* Returns the kernel's MemAvailable; ignores control groups. */
uint64_t memory_of_kernel(void);

/* Returns the memory of the machine; ignores control groups. */
uint64_t memory_installed(void);

/* Return the resident bytes of this process: now, and at their peak. */
uint64_t memory_resident(void);
uint64_t memory_peak(void);

/* ---- control groups ---- */

/* The limits that control groups (v1 and v2) set for this process, such as those of a container or
   of a cluster's job: of its group, and of all groups above it. */
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

/* ---- files ---- */

/* Raises the soft limit of open files to the hard limit, at most 2^20. Returns it; 0: unknown. */
size_t open_files_raise_limit(void);

/* Also raises the limit. True if `needed` files can be open, or if the limit is unknown. Stores the
   limit. */
bool open_files_suffice(size_t needed, size_t *limit);

/* ---- usage ---- */

/* What this process has used so far, as the kernel counts; 0: unknown. */
struct process_usage {
    double wall_seconds;        /* by the clock of monotonic.h */
    double user_seconds, system_seconds;
    uint64_t minor_faults, major_faults;
    bool has_io;                /* /proc/self/io could be read; else the next four are unknown */
    uint64_t read_bytes, written_bytes;         /* by system calls, pipes and page cache included */
    uint64_t disk_read_bytes, disk_written_bytes;       /* from and to storage */
};

void process_usage_now(struct process_usage *usage);

/* Adds the difference between `from` and `to` to a sum, which starts as {0}. Sets has_io of the sum
   if both have it. */
void process_usage_add(struct process_usage *sum, const struct process_usage *from,
                       const struct process_usage *to);

#endif
