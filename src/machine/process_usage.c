/* process_usage.c -- see process_usage.h. */
#include "machine/process_usage.h"

#include "util/monotonic.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

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
