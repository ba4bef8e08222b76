/*
 * process_usage.h -- what this process has used so far: time, CPU, bytes, memory, as the kernel
 * counts.
 *
 * Any thread. Nothing fails: what the kernel does not tell is 0, and has_io says whether it told
 * about bytes.
 */
#ifndef ROCKSORT_MACHINE_PROCESS_USAGE_H
#define ROCKSORT_MACHINE_PROCESS_USAGE_H

#include <stdbool.h>
#include <stdint.h>

struct process_usage {
    double wall_seconds;        /* of a clock that only goes forward */
    double user_seconds, system_seconds;
    uint64_t minor_faults, major_faults;
    bool has_io;                /* /proc/self/io can be read: */
    uint64_t read_bytes, written_bytes;         /* by system calls: pipes and page cache, too */
    uint64_t disk_read_bytes, disk_written_bytes;       /* that storage was asked for */
};

void process_usage_now(struct process_usage *usage);

/* Adds what was used between two moments to a sum, which starts as {0}. */
void process_usage_add(struct process_usage *sum, const struct process_usage *from,
                       const struct process_usage *to);

/* Resident memory, now and at most so far. */
uint64_t process_resident_bytes(void);
uint64_t process_peak_bytes(void);

#endif
