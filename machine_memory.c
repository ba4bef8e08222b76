/* machine_memory.c -- see machine_memory.h. */
#include "machine_memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 512 };

/* The number in a file of one line; false if there is none, as for "max". */
static bool read_number(const char *path, uint64_t *value)
{
    FILE *file = fopen(path, "r");
    if (!file) return false;
    bool found = fscanf(file, "%" SCNu64, value) == 1;
    (void)fclose(file);
    return found;
}

static uint64_t kernel_available(void)
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

/* The least limit of a cgroup and those above it. */
static uint64_t cgroup_limit(const char *root, char *group, const char *limit_name)
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        char path[PATH_BYTES + 128];
        uint64_t limit;
        (void)snprintf(path, sizeof path, "%s%s/%s", root, group, limit_name);
        if (read_number(path, &limit) && limit < least) least = limit;
        char *slash = strrchr(group, '/');
        if (!slash) return least;
        *slash = '\0';
    }
}

uint64_t machine_memory_available(void)
{
    uint64_t least = kernel_available();
    FILE *file = fopen("/proc/self/cgroup", "r");
    char line[PATH_BYTES];
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        uint64_t available = UINT64_MAX;
        if (strcmp(controllers + 1, "memory") == 0)
            available = cgroup_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
        else if (controllers[1] == '\0')
            available = cgroup_limit("/sys/fs/cgroup", group, "memory.max");
        if (available < least) least = available;
    }
    if (file) (void)fclose(file);
    return least;
}
