/*
 * memory.h -- how much memory, CPU time and open files this process may have, and how much memory
 * it uses.
 *
 * Any thread; no messages. If the kernel does not tell, available memory is UINT64_MAX, used memory
 * is 0, and a limit of a control group counts as none.
 */
#ifndef ROCKSORT_OS_MEMORY_H
#define ROCKSORT_OS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes that programs and page cache may use: MemAvailable of the kernel, or the limit of a memory
 * cgroup (v1 or v2, such as that of a container) if that is less.
 */
uint64_t memory_available(void);

/* Bytes that this process can have at the most: those of the machine, or the limit of a memory
   cgroup if that is less. */
uint64_t memory_of_machine(void);

/* MemAvailable of the kernel alone, without the limits of this process. */
uint64_t memory_of_kernel(void);

/* All memory of the machine, without the limits of this process. */
uint64_t memory_installed(void);

/* Resident bytes of this process: now, and the most so far. */
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

/* Raises the limit as far as it goes, and returns it: 2^20 at most, 0 if it is not known. */
size_t open_files_raise_limit(void);

/* Raises the limit, too. True if `needed` files can be open, or if the limit is not known. *limit:
   the limit. */
bool open_files_suffice(size_t needed, size_t *limit);

/* ---- usage ---- */

/* What this process has used so far, as the kernel counts; 0: the kernel does not tell. */
struct process_usage {
    double wall_seconds;        /* by the clock of monotonic.h */
    double user_seconds, system_seconds;
    uint64_t minor_faults, major_faults;
    bool has_io;                /* /proc/self/io could be read; else the next four are not known */
    uint64_t read_bytes, written_bytes;         /* by system calls, pipes and page cache included */
    uint64_t disk_read_bytes, disk_written_bytes;       /* from and to storage */
};

void process_usage_now(struct process_usage *usage);

/* Adds what was used between two moments, `from` and `to`, to a sum, which starts as {0}. has_io of
   the sum becomes true if both moments have it. */
void process_usage_add(struct process_usage *sum, const struct process_usage *from,
                       const struct process_usage *to);

#endif
