/* disk_probe.c -- see disk_probe.h. */
#define _GNU_SOURCE             /* O_DIRECT */
#include "os/disk_probe.h"

#include "util/monotonic.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

enum {
    ALIGNMENT = 4096,
    N_SEEKS = 12,
    CHUNK_BYTES = 4 << 20,
    N_CHUNKS = 4,               /* 16 MiB in all: more than a disk caches of one region */
};

/* A disk is slow to seek if a random read takes at least this time, which lies between the 10 ms of
   a rotating disk and the 0.1 ms of an SSD. The probe's file is small, so a quarter of its reads
   take less than 3 ms on a rotating disk. A cloud volume of 500 IOPS, which needs the settings for
   slow disks, takes 2 ms; fast network volumes take 1 ms under load. */
static const double slow_seek_seconds = 0.0015;

/* No read from a slow disk takes less than this; some reads from an SSD do, even if other processes
   keep it busy. */
static const double busy_seek_seconds = 0.0005;

static const struct {
    uint32_t magic;
    const char *name;
    bool is_memory, is_network;
} file_systems[] = {
    {0x01021994, "tmpfs", true, false},   {0x858458f6, "ramfs", true, false},
    {0x00006969, "nfs", false, true},     {0xff534d42, "cifs", false, true},
    {0xfe534d42, "smb2", false, true},    {0x0bd00bd0, "lustre", false, true},
    {0x47504653, "gpfs", false, true},    {0x19830326, "beegfs", false, true},
    {0x00c36400, "ceph", false, true},    {0x5346414f, "afs", false, true},
    {0x0000517b, "smb", false, true},     {0xaad7aaea, "panfs", false, true},
    {0x20030528, "orangefs", false, true}, {0x01161970, "gfs2", false, true},
    {0x7461636f, "ocfs2", false, true},   {0x01021997, "9p", false, true},
    {0x65735546, "fuse", false, false},   {0x0000ef53, "ext4", false, false},
    {0x58465342, "xfs", false, false},    {0x9123683e, "btrfs", false, false},
    {0x2fc12fc1, "zfs", false, false},    {0x794c7630, "overlay", false, false},
    {0xf2f52010, "f2fs", false, false},
};

static void look_at_file_system(const char *path, struct disk_traits *traits)
{
    struct statfs fs;
    *traits = (struct disk_traits){.file_system = "unknown"};
    if (statfs(path, &fs) != 0) return;
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++) {
        if (file_systems[i].magic != (uint32_t)fs.f_type) continue;
        traits->file_system = file_systems[i].name;
        traits->is_memory = file_systems[i].is_memory;
        traits->is_network = file_systems[i].is_network;
    }
}

const char *disk_problem(const struct disk_traits *traits, char text[DISK_PROBLEM_TEXT_BYTES])
{
    static const char *const of_clusters[] = {"lustre", "gpfs", "beegfs", "panfs", "orangefs"};
    const char *name = traits->file_system;
    if (strcmp(name, "fuse") == 0)
        return "a FUSE file system, maybe a network or an object store";
    if (!traits->is_network) return NULL;
    for (size_t i = 0; i < sizeof of_clusters / sizeof *of_clusters; i++)
        if (strcmp(name, of_clusters[i]) == 0) return NULL;
    (void)snprintf(text, DISK_PROBLEM_TEXT_BYTES, "a network file system (%s)", name);
    return text;
}

/* Returns the seconds that a read takes; negative if it fails. */
static double time_read(int fd, void *buffer, size_t n_bytes, off_t at)
{
    double start = monotonic_seconds();
    if (pread(fd, buffer, n_bytes, at) != (ssize_t)n_bytes) return -1;
    return monotonic_seconds() - start;
}

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

double disk_seek_of(double *seconds, size_t n, bool *is_busy)
{
    qsort(seconds, n, sizeof *seconds, compare_doubles);
    double quartile = seconds[n / 4];
    *is_busy = quartile >= slow_seek_seconds && seconds[0] < busy_seek_seconds;
    return quartile;
}

/* Returns the seconds of a random read; 0 if one fails. */
static double measure_seek(int fd, void *buffer)
{
    enum { N_PLACES = N_CHUNKS * (CHUNK_BYTES / ALIGNMENT), MOST_ROUNDS = 4 };
    double seconds[N_SEEKS], least = 0;
    unsigned place = 0;
    bool is_busy = true;
    for (int round = 0; is_busy && round < MOST_ROUNDS; round++) {
        for (int i = 0; i < N_SEEKS; i++) {
            /* Steps of the golden ratio give places that are far apart and seldom repeat. */
            place = (place + N_PLACES * 618 / 1000 + 1) % N_PLACES;
            seconds[i] = time_read(fd, buffer, ALIGNMENT, (off_t)place * ALIGNMENT);
            if (seconds[i] < 0) return 0;
        }
        double seek = disk_seek_of(seconds, N_SEEKS, &is_busy);
        if (round == 0 || seek < least) least = seek;
    }
    return least;
}

/*
 * Requests blocks at random places all at once, then waits for them. Returns how many were read in
 * the time of one. POSIX_FADV_WILLNEED starts a read without blocking the caller. The file was
 * written with O_DIRECT, so none of it is cached.
 */
static double measure_parallel(int fd, void *buffer, double seek_seconds)
{
    enum { STEP = N_CHUNKS * CHUNK_BYTES / N_SEEKS / ALIGNMENT * ALIGNMENT };
    double start = monotonic_seconds();
    for (int i = 0; i < N_SEEKS; i++)
        (void)posix_fadvise(fd, (off_t)i * STEP + STEP / 2, ALIGNMENT, POSIX_FADV_WILLNEED);
    for (int i = 0; i < N_SEEKS; i++)
        if (time_read(fd, buffer, ALIGNMENT, (off_t)i * STEP + STEP / 2) < 0) return 1;
    double seconds = monotonic_seconds() - start, parallel = N_SEEKS * seek_seconds / seconds;
    return parallel < 1 ? 1 : parallel;
}

/* Returns the bytes per second of sequential reads. Ignores the first read, which includes a seek.
   */
static double measure_rate(int fd, void *buffer)
{
    double seconds = 0;
    for (int i = 0; i < 3; i++) {
        double s = time_read(fd, buffer, CHUNK_BYTES, (off_t)i * CHUNK_BYTES);
        if (s < 0) return 0;
        if (i > 0) seconds += s;
    }
    return seconds > 0 ? 2 * CHUNK_BYTES / seconds : 0;
}

/* Fills the file with random bytes, which no file system can compress. */
static bool fill(int fd, uint64_t *buffer)
{
    uint64_t x = 88172645463325252u;    /* xorshift64 */
    for (int chunk = 0; chunk < N_CHUNKS; chunk++) {
        for (size_t i = 0; i < CHUNK_BYTES / sizeof x; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            buffer[i] = x;
        }
        if (pwrite(fd, buffer, CHUNK_BYTES, (off_t)chunk * CHUNK_BYTES) != CHUNK_BYTES)
            return false;
    }
    return fsync(fd) == 0;
}

static void measure(const char *directory, struct disk_traits *traits)
{
    char path[4096];
    void *buffer = NULL;
    int n = snprintf(path, sizeof path, "%s/probe", directory);
    if (n < 0 || (size_t)n >= sizeof path) return;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600);
    if (fd < 0) {
        /* A file system without O_DIRECT may create the file before it fails. */
        if (errno == EINVAL) (void)unlink(path);
        return;
    }
    xalloc_require(posix_memalign(&buffer, ALIGNMENT, CHUNK_BYTES) == 0);
    if (fill(fd, buffer)) {
        traits->seek_seconds = measure_seek(fd, buffer);
        traits->bytes_per_second = measure_rate(fd, buffer);
        int cached = open(path, O_RDONLY | O_CLOEXEC);
        if (cached >= 0) {
            traits->parallel = measure_parallel(cached, buffer, traits->seek_seconds);
            (void)close(cached);
        }
    }
    free(buffer);
    (void)unlink(path);
    (void)close(fd);
}

void disk_probe(const char *directory, struct disk_traits *traits)
{
    look_at_file_system(directory, traits);
    if (!traits->is_memory) measure(directory, traits);
}

bool disk_is_slow_to_seek(const struct disk_traits *traits)
{
    return traits->seek_seconds >= slow_seek_seconds;
}
