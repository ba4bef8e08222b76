/*
 * memory.h -- how much memory there is for programs and for the page cache.
 */
#ifndef ROCKSORT_MACHINE_MEMORY_H
#define ROCKSORT_MACHINE_MEMORY_H

#include <stdint.h>

/*
 * Bytes that programs and page cache may take: MemAvailable of the kernel, or the limit of a memory
 * cgroup (v1 or v2, such as a container's) if that is less. UINT64_MAX: unknown. Any thread.
 */
uint64_t memory_available(void);

/* MemAvailable alone, whatever the limits of this process. */
uint64_t memory_of_kernel(void);

#endif
