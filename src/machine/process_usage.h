/*
 * process_usage.h -- how much time, CPU and I/O this process has used so far, as the kernel counts.
 *
 * Any thread; no messages. A figure that the kernel does not tell is 0.
 */
#ifndef ROCKSORT_MACHINE_PROCESS_USAGE_H
#define ROCKSORT_MACHINE_PROCESS_USAGE_H

#include <stdbool.h>
#include <stdint.h>

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
