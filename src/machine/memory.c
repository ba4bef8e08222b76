/* memory.c -- see memory.h. */
#include "machine/memory.h"

#include "machine/cgroup.h"

#include <inttypes.h>
#include <stdio.h>

uint64_t memory_of_kernel(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    if (!file) return UINT64_MAX;
    char line[256];
    uint64_t kib = UINT64_MAX >> 10;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1) break;
    (void)fclose(file);
    return kib << 10;
}

uint64_t memory_available(void)
{
    struct cgroup limits;
    cgroup_read(&limits);
    uint64_t available = memory_of_kernel();
    return limits.limit_bytes < available ? limits.limit_bytes : available;
}
