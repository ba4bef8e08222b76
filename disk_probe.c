/* disk_probe.c -- see disk_probe.h. */
#define _GNU_SOURCE              /* O_DIRECT */
#include "disk_probe.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum {
    ALIGNMENT = 4096,
    N_SEEKS = 12,
    SEQUENTIAL_BYTES = 4 << 20,
    MIN_FILE_BYTES = 1 << 20,
};

/* Between the 10 ms of a disk and the 0.1 ms of an SSD, nearer to the disk: network volumes under
   load take 1 ms. */
static const double slow_seek_seconds = 0.003;

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
    {0x65735546, "fuse", false, false},   {0x0000ef53, "ext4", false, false},
    {0x58465342, "xfs", false, false},    {0x9123683e, "btrfs", false, false},
    {0x2fc12fc1, "zfs", false, false},    {0x794c7630, "overlay", false, false},
    {0xf2f52010, "f2fs", false, false},
};

/* The flag of a disk, or of the disk that it is a partition of; -1 if there is none. */
static int rotating_flag(dev_t device)
{
    static const char *const places[] = {"queue", "../queue"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "/sys/dev/block/%u:%u/%s/rotational", major(device),
                       minor(device), places[i]);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        int flag = fgetc(file);
        (void)fclose(file);
        if (flag == '0' || flag == '1') return flag - '0';
    }
    return -1;
}

void disk_probe_directory(const char *path, struct disk_traits *traits)
{
    struct statfs fs;
    struct stat st;
    *traits = (struct disk_traits){.file_system = "unknown", .rotating = -1};
    if (stat(path, &st) == 0) traits->rotating = rotating_flag(st.st_dev);
    if (statfs(path, &fs) != 0) return;
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++) {
        if (file_systems[i].magic != (uint32_t)fs.f_type) continue;
        traits->file_system = file_systems[i].name;
        traits->is_memory = file_systems[i].is_memory;
        traits->is_network = file_systems[i].is_network;
    }
}

static double now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds that a read takes; negative if it fails. */
static double time_read(int fd, void *buffer, size_t n_bytes, off_t at)
{
    double start = now_seconds();
    if (pread(fd, buffer, n_bytes, at) != (ssize_t)n_bytes) return -1;
    return now_seconds() - start;
}

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The lower quartile: others use the disk, too. */
static double measure_seek(int fd, void *buffer, off_t file_bytes)
{
    double seconds[N_SEEKS];
    uint64_t place = 0, n_places = (uint64_t)file_bytes / ALIGNMENT;
    for (int i = 0; i < N_SEEKS; i++) {
        /* Golden-section steps: far apart, and never twice the same. */
        place = (place + n_places * 618 / 1000 + 1) % n_places;
        seconds[i] = time_read(fd, buffer, ALIGNMENT, (off_t)(place * ALIGNMENT));
        if (seconds[i] < 0) return 0;
    }
    qsort(seconds, N_SEEKS, sizeof *seconds, compare_doubles);
    return seconds[N_SEEKS / 4];
}

/* Two reads: the first one pays for the seek. */
static double measure_rate(int fd, void *buffer, off_t file_bytes)
{
    off_t n_bytes = file_bytes / 2 & ~(off_t)(ALIGNMENT - 1);
    if (n_bytes > SEQUENTIAL_BYTES) n_bytes = SEQUENTIAL_BYTES;
    if (time_read(fd, buffer, (size_t)n_bytes, 0) < 0) return 0;
    double seconds = time_read(fd, buffer, (size_t)n_bytes, n_bytes);
    return seconds > 0 ? (double)n_bytes / seconds : 0;
}

bool disk_probe_file(const char *path, struct disk_traits *traits)
{
    struct stat st;
    void *buffer = NULL;
    bool done = false;
    int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0) return false;
    if (fstat(fd, &st) == 0 && st.st_size >= MIN_FILE_BYTES &&
        posix_memalign(&buffer, ALIGNMENT, SEQUENTIAL_BYTES) == 0) {
        traits->seek_seconds = measure_seek(fd, buffer, st.st_size);
        traits->bytes_per_second = measure_rate(fd, buffer, st.st_size);
        done = traits->seek_seconds > 0 && traits->bytes_per_second > 0;
    }
    free(buffer);
    (void)close(fd);
    return done;
}

bool disk_is_slow_to_seek(const struct disk_traits *traits)
{
    if (traits->seek_seconds > 0) return traits->seek_seconds >= slow_seek_seconds;
    return false;
}
