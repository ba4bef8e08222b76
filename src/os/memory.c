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

enum { PATH_BYTES = 512, FILE_BYTES = 2 * PATH_BYTES };

static FILE *open_file(const char *dir, const char *name)
{
    char path[FILE_BYTES];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n > 0 && (size_t)n < sizeof path ? fopen(path, "r") : NULL;
}

/* Reads at most two numbers from a file of one line. Returns how many it found: none in "max".
   Bytes are exact up to 8 PiB. */
static int read_numbers(const char *dir, const char *name, double numbers[2])
{
    FILE *file = open_file(dir, name);
    int n = file ? fscanf(file, "%lf %lf", &numbers[0], &numbers[1]) : 0;
    if (file) (void)fclose(file);
    return n;
}

static void look_at_memory(const char *dir, struct cgroup *limits)
{
    static const struct {
        const char *limit, *used, *unused_cache;
    } names[] = {{"memory.max", "memory.current", "inactive_file"},
                 {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double limit[2], used[2];
        uint64_t cache;
        if (read_numbers(dir, names[i].limit, limit) < 1) continue;
        if (read_numbers(dir, names[i].used, used) < 1) *used = 0;
        if (read_word(open_file(dir, "memory.stat"), names[i].unused_cache, &cache))
            *used = *used > (double)cache ? *used - (double)cache : 0;
        uint64_t left = *limit > *used ? (uint64_t)(*limit - *used) : 0;
        if (*limit < (double)limits->limit_bytes) limits->limit_bytes = (uint64_t)*limit;
        if (left < limits->free_bytes) limits->free_bytes = left;
    }
}

/* v2 has one file: "200000 100000", "max 100000"; v1 two, and a quota of -1 if there is no limit.
   */
static void look_at_cpus(const char *dir, struct cgroup *limits)
{
    double quota[2], period[2];
    if (read_numbers(dir, "cpu.max", quota) == 2)
        *period = quota[1];
    else if (read_numbers(dir, "cpu.cfs_quota_us", quota) < 1 ||
             read_numbers(dir, "cpu.cfs_period_us", period) < 1)
        return;
    if (*quota <= 0 || *period <= 0) return;
    double cpus = *quota / *period;
    if (limits->cpus <= 0 || cpus < limits->cpus) limits->cpus = cpus;
}

/* Reads the limits of a group and of all groups above it: v1 and v2 call their files differently.
   root: of the hierarchy; v1 has one for each controller. Changes the path. */
static void look_upwards(const char *root, char *path, struct cgroup *limits)
{
    char dir[FILE_BYTES];
    do {
        (void)snprintf(dir, sizeof dir, "%s%s", root, path);
        look_at_memory(dir, limits);
        look_at_cpus(dir, limits);
    } while (path_go_up(path));
}

/* Reads the limits of the groups of one line of the list. Changes the line. */
static void look_at_line(char *line, const char *root, struct cgroup *limits)
{
    static const char *const names[] = {"memory", "cpu"};
    char below[PATH_BYTES], path[PATH_BYTES];
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return;
    *group++ = '\0';
    controllers++;
    if (!*controllers) look_upwards(root, group, limits);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!words_list_has(controllers, names[i])) continue;
        (void)snprintf(below, sizeof below, "%s/%s", root, names[i]);
        memcpy(path, group, strlen(group) + 1);
        look_upwards(below, path, limits);
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
