/*
 * disk_probe.h -- measures random and sequential reads of the disk under a directory.
 *
 * The kernel's flag for rotating disks is 1 for most virtual disks, and is missing for network,
 * FUSE, btrfs and overlay file systems. So disk_probe writes a file of 16 MiB and reads it with
 * O_DIRECT: blocks at random places, first one by one and then all at once, and 12 MiB in order.
 * This takes 0.4 s on a rotating disk, 0.03 s on others. Any thread.
 */
#ifndef ROCKSORT_OS_DISK_PROBE_H
#define ROCKSORT_OS_DISK_PROBE_H

#include <stdbool.h>
#include <stddef.h>

struct disk_traits {
    const char *file_system;    /* "ext4", "nfs", ...; a static string */
    bool is_memory;             /* the file system has no disk, such as tmpfs */
    bool is_network;
    double seek_seconds;        /* of a random read; 0: not measured */
    double bytes_per_second;    /* of a sequential read; 0: not measured */
    double parallel;            /* concurrent random reads that take the time of one: an array
                                   divides them among its drives, and each drive does the nearest
                                   read first */
};

/*
 * Identifies the file system of a directory and, unless it is memory, measures its disk with a
 * temporary file in the directory. Never fails: unknown traits are 0 or false.
 */
void disk_probe(const char *directory, struct disk_traits *traits);

/* Returns why temporary data should not be there, such as "a network file system (nfs)", or NULL.
   Cluster file systems, such as lustre, are made for such data. Writes into text. */
enum { DISK_PROBLEM_TEXT_BYTES = 80 };
const char *disk_problem(const struct disk_traits *traits, char text[DISK_PROBLEM_TEXT_BYTES]);

/* True if random reads are slow enough to limit a sort. */
bool disk_is_slow_to_seek(const struct disk_traits *traits);

/* ---- a step of disk_probe, public for tests ---- */

/* Sorts the times of n random reads and returns the lower quartile, because other processes may use
   the disk at the same time. Sets *is_busy if the result is slow but the fastest read was fast:
   then other processes slowed the reads, and they should be repeated. */
double disk_seek_of(double *seconds, size_t n, bool *is_busy);

#endif
