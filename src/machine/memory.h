/*
 * memory.h -- how much memory is available, and how much this process uses.
 *
 * Any thread; no messages. If the kernel does not tell, available memory is UINT64_MAX, and used
 * memory is 0.
 */
#ifndef ROCKSORT_MACHINE_MEMORY_H
#define ROCKSORT_MACHINE_MEMORY_H

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

#endif
