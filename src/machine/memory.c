/* memory.c -- see memory.h. */
#include "machine/memory.h"

#include "machine/cgroup.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Reads the number that follows a word at the beginning of a line: "MemAvailable:   1234 kB". */
static bool read_kib(const char *path, const char *word, uint64_t *n_bytes)
{
    FILE *file = fopen(path, "r");
    char line[256];
    uint64_t kib;
    size_t n = strlen(word);
    bool found = false;
    while (!found && file && fgets(line, sizeof line, file))
        found = strncmp(line, word, n) == 0 && sscanf(line + n, "%" SCNu64, &kib) == 1;
    if (file) (void)fclose(file);
    if (found) *n_bytes = kib << 10;
    return found;
}

uint64_t memory_of_kernel(void)
{
    uint64_t n_bytes;
    return read_kib("/proc/meminfo", "MemAvailable:", &n_bytes) ? n_bytes : UINT64_MAX;
}

uint64_t memory_installed(void)
{
    long n_pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return n_pages > 0 && page_bytes > 0 ? (uint64_t)n_pages * (uint64_t)page_bytes : UINT64_MAX;
}

static uint64_t limited_by_cgroup(uint64_t n_bytes)
{
    struct cgroup limits;
    cgroup_read(&limits);
    return limits.limit_bytes < n_bytes ? limits.limit_bytes : n_bytes;
}

uint64_t memory_available(void)
{
    return limited_by_cgroup(memory_of_kernel());
}

uint64_t memory_of_machine(void)
{
    return limited_by_cgroup(memory_installed());
}

uint64_t memory_resident(void)
{
    uint64_t n_pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%*u %" SCNu64, &n_pages) != 1) n_pages = 0;
    (void)fclose(file);
    return n_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* After a fork from a large parent, getrusage also counts memory of the parent. So /proc is read
   first. */
uint64_t memory_peak(void)
{
    uint64_t n_bytes;
    struct rusage used;
    if (read_kib("/proc/self/status", "VmHWM:", &n_bytes)) return n_bytes;
    return getrusage(RUSAGE_SELF, &used) == 0 ? (uint64_t)used.ru_maxrss << 10 : 0;
}
