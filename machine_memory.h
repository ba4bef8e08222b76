/*
 * machine_memory.h -- how much memory is there for programs and for the page cache.
 */
#ifndef ROCKSORT_MACHINE_MEMORY_H
#define ROCKSORT_MACHINE_MEMORY_H

#include <stdint.h>

/*
 * Bytes that could still be used: MemAvailable of the kernel, or less where a memory cgroup (v1 or
 * v2, such as a container's) allows less. UINT64_MAX: unknown. Any thread.
 */
uint64_t machine_memory_available(void);

#endif
