/*
 * disk_probe.h -- what the disk behind a file is like, asked of the disk itself.
 *
 * The kernel's flag for rotating disks says 1 for most virtual disks, whatever they are, and nothing
 * for network, RAID and FUSE file systems. So a file of some MB, that was just written and synced,
 * is read past the page cache: a few blocks at random places, and a stretch in order. On a rotating
 * disk this takes about 0.2 s, on others 0.01 s.
 *
 * Pure but for the reading. Any thread.
 */
#ifndef ROCKSORT_DISK_PROBE_H
#define ROCKSORT_DISK_PROBE_H

#include <stdbool.h>

struct disk_traits {
    const char *file_system;    /* "ext4", "nfs", ...; a static string */
    bool is_memory;             /* tmpfs: no disk at all */
    bool is_network;
    int rotating;               /* the kernel's flag: 0, 1 or -1, unknown */
    double seek_seconds;        /* of a random read; 0: not measured */
    double bytes_per_second;    /* of a sequential read; 0: not measured */
};

/* Finds out what needs no reading. Never fails: what is unknown stays 0, false or -1. */
void disk_probe_directory(const char *path, struct disk_traits *traits);

/* Measures seek time and rate on a file. Returns false if it could not. */
bool disk_probe_file(const char *path, struct disk_traits *traits);

/* Whether random reads cost so much that reading order matters. */
bool disk_is_slow_to_seek(const struct disk_traits *traits);

#endif
