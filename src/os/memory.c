/*
 * memory.c -- see memory.h.
 *
 * /proc/self/cgroup has a line "number:controllers:path" for each hierarchy; the line of v2 is
 * "0::path". Inside a container the path may be that of the host, while /sys/fs/cgroup shows only
 * the container's own groups. Then the directories of the path do not exist. But the root, which is
 * read last, exists and is the container's group.
 */
#include "os/memory.h"

#include "util/monotonic.h"
#include "util/path.h"
#include "util/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Finds the number after a word that begins a line, as in "MemAvailable:   1234 kB", and closes the
   file. Returns false if there is none; file may be NULL. */
static bool read_word(FILE *file, const char *word, uint64_t *value)
{
    char line[256];
    size_t n = strlen(word);
    bool found = false;
    while (!found && file && fgets(line, sizeof line, file))
        found = strncmp(line, word, n) == 0 && strchr(" \t", line[n]) &&
                sscanf(line + n, "%" SCNu64, value) == 1;
    if (file) (void)fclose(file);
    return found;
}

/* ---- control groups ---- */

enum { PATH_BYTES = 512, FILE_BYTES = PATH_BYTES + 256 };

struct group {
    const char *root;           /* directory of the hierarchy; v1 has one for each controller */
    const char *path;           /* of the group, below root */
};

static FILE *open_file(const struct group *group, const char *name)
{
    char path[FILE_BYTES];
    int n = snprintf(path, sizeof path, "%s%s/%s", group->root, group->path, name);
    return n > 0 && (size_t)n < sizeof path ? fopen(path, "r") : NULL;
}

/* Reads the number in a file of one line; returns false if there is none: it may say "max". */
static bool read_number(const struct group *group, const char *name, uint64_t *value)
{
    FILE *file = open_file(group, name);
    if (!file) return false;
    bool found = fscanf(file, "%" SCNu64, value) == 1;
    (void)fclose(file);
    return found;
}

struct memory_names {
    const char *limit, *used, *unused_cache;
};

static void look_at_memory(const struct group *group, const struct memory_names *names,
                           struct cgroup *limits)
{
    uint64_t limit, used, cache;
    if (!read_number(group, names->limit, &limit)) return;
    if (limit < limits->limit_bytes) limits->limit_bytes = limit;
    if (!read_number(group, names->used, &used)) used = 0;
    if (read_word(open_file(group, "memory.stat"), names->unused_cache, &cache))
        used = used > cache ? used - cache : 0;
    uint64_t left = limit > used ? limit - used : 0;
    if (left < limits->free_bytes) limits->free_bytes = left;
}

/* v1 has two files, and a quota of -1 if there is no limit; v2 one: "200000 100000", "max 100000".
   */
static void look_at_cpus(const struct group *group, bool is_v2, struct cgroup *limits)
{
    int64_t quota = -1;
    uint64_t period = 0;
    FILE *file = open_file(group, is_v2 ? "cpu.max" : "cpu.cfs_quota_us");
    if (!file) return;
    int n = fscanf(file, "%" SCNd64 " %" SCNu64, &quota, &period);
    (void)fclose(file);
    if (!is_v2 && !read_number(group, "cpu.cfs_period_us", &period)) return;
    if (n < 1 || quota <= 0 || period == 0) return;
    double cpus = (double)quota / (double)period;
    if (limits->cpus <= 0 || cpus < limits->cpus) limits->cpus = cpus;
}

enum kind { MEMORY_1, CPU_1, BOTH_2 };

static void look_at_group(const struct group *group, enum kind kind, struct cgroup *limits)
{
    static const struct memory_names names_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                                "total_inactive_file"};
    static const struct memory_names names_2 = {"memory.max", "memory.current", "inactive_file"};
    if (kind == CPU_1) look_at_cpus(group, false, limits);
    if (kind == MEMORY_1) look_at_memory(group, &names_1, limits);
    if (kind != BOTH_2) return;
    look_at_cpus(group, true, limits);
    look_at_memory(group, &names_2, limits);
}

/* Reads the limits of a group and of all groups above it. Changes the path. */
static void look_upwards(const char *root, char *path, enum kind kind, struct cgroup *limits)
{
    do {
        look_at_group(&(struct group){root, path}, kind, limits);
    } while (path_go_up(path));
}

/* Reads the limits of the groups of one line of the list. Changes the line. */
static void look_at_line(char *line, const char *root, struct cgroup *limits)
{
    static const struct {
        const char *controller;
        enum kind kind;
    } kinds[] = {{"memory", MEMORY_1}, {"cpu", CPU_1}};
    char below[PATH_BYTES], path[PATH_BYTES];
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return;
    *group++ = '\0';
    controllers++;
    if (!*controllers) look_upwards(root, group, BOTH_2, limits);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!words_list_has(controllers, kinds[i].controller)) continue;
        int n = snprintf(below, sizeof below, "%s/%s", root, kinds[i].controller);
        if (n < 0 || (size_t)n >= sizeof below) continue;
        memcpy(path, group, strlen(group) + 1);
        look_upwards(below, path, kinds[i].kind, limits);
    }
}

void cgroup_read_at(const char *list, const char *root, struct cgroup *limits)
{
    *limits = (struct cgroup){0, UINT64_MAX, UINT64_MAX};
    FILE *file = fopen(list, "r");
    char line[PATH_BYTES];
    while (file && fgets(line, sizeof line, file)) look_at_line(line, root, limits);
    if (file) (void)fclose(file);
}

void cgroup_read(struct cgroup *limits)
{
    cgroup_read_at("/proc/self/cgroup", "/sys/fs/cgroup", limits);
}

/* ---- memory ---- */

uint64_t memory_of_kernel(void)
{
    uint64_t n_kib;
    FILE *file = fopen("/proc/meminfo", "r");
    return read_word(file, "MemAvailable:", &n_kib) ? n_kib << 10 : UINT64_MAX;
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
    uint64_t n_kib;
    struct rusage used;
    if (read_word(fopen("/proc/self/status", "r"), "VmHWM:", &n_kib)) return n_kib << 10;
    return getrusage(RUSAGE_SELF, &used) == 0 ? (uint64_t)used.ru_maxrss << 10 : 0;
}

/* ---- files ---- */

enum { MOST_FILES = 1 << 20 };

size_t open_files_raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    if (limit.rlim_cur < limit.rlim_max) {
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
    }
    return limit.rlim_cur > MOST_FILES ? MOST_FILES : (size_t)limit.rlim_cur;
}

bool open_files_suffice(size_t needed, size_t *limit)
{
    *limit = open_files_raise_limit();
    return *limit == 0 || *limit >= needed;
}

/* ---- usage ---- */

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

/* The file counts all threads of the process. Some containers hide it. */
static void read_io(struct process_usage *usage)
{
    FILE *file = fopen("/proc/self/io", "r");
    if (!file) return;
    int n = fscanf(file,
                   "rchar: %" SCNu64 " wchar: %" SCNu64 " syscr: %*u syscw: %*u "
                   "read_bytes: %" SCNu64 " write_bytes: %" SCNu64,
                   &usage->read_bytes, &usage->written_bytes, &usage->disk_read_bytes,
                   &usage->disk_written_bytes);
    usage->has_io = n == 4;
    (void)fclose(file);
}

void process_usage_now(struct process_usage *usage)
{
    struct rusage used;
    *usage = (struct process_usage){.wall_seconds = monotonic_seconds()};
    if (getrusage(RUSAGE_SELF, &used) == 0) {
        usage->user_seconds = seconds_of(&used.ru_utime);
        usage->system_seconds = seconds_of(&used.ru_stime);
        usage->minor_faults = (uint64_t)used.ru_minflt;
        usage->major_faults = (uint64_t)used.ru_majflt;
    }
    read_io(usage);
}

void process_usage_add(struct process_usage *sum, const struct process_usage *from,
                       const struct process_usage *to)
{
    sum->wall_seconds += to->wall_seconds - from->wall_seconds;
    sum->user_seconds += to->user_seconds - from->user_seconds;
    sum->system_seconds += to->system_seconds - from->system_seconds;
    sum->minor_faults += to->minor_faults - from->minor_faults;
    sum->major_faults += to->major_faults - from->major_faults;
    sum->has_io = from->has_io && to->has_io;
    if (!sum->has_io) return;
    sum->read_bytes += to->read_bytes - from->read_bytes;
    sum->written_bytes += to->written_bytes - from->written_bytes;
    sum->disk_read_bytes += to->disk_read_bytes - from->disk_read_bytes;
    sum->disk_written_bytes += to->disk_written_bytes - from->disk_written_bytes;
}
