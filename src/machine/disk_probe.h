/*
 * disk_probe.h -- what the disk behind a file is like, asked of the disk itself.
 *
 * The kernel's flag for rotating disks says 1 for most virtual disks, whatever they are, and
 * nothing for network, FUSE, btrfs and overlay file systems. So a file of 16 MiB is written and
 * read past the page cache: a few blocks at random places, one after the other and all at once, and
 * a stretch in order. On a rotating disk this takes 0.4 s, on others 0.03 s. A drive that states
 * how fast it rotates is believed, since its own cache may answer instead.
 *
 * Any thread.
 */
#ifndef ROCKSORT_MACHINE_DISK_PROBE_H
#define ROCKSORT_MACHINE_DISK_PROBE_H

#include "machine/disk_rotation.h"

#include <stdbool.h>
#include <stddef.h>

struct disk_traits {
    const char *file_system;    /* "ext4", "nfs", ...; a static string */
    bool is_memory;             /* tmpfs: no disk at all */
    bool is_network;
    struct disk_rotation rotation;
    double seek_seconds;        /* of a random read; 0: not measured */
    double bytes_per_second;    /* of a sequential read; 0: not measured */
    double parallel;            /* random reads that it does in the time of one, if it has many to
                                   choose from: the drives of an array, the nearest first */
};

/*
 * Finds out what the disk under a directory is, and, unless it is memory, measures it with a file
 * that is removed again. Never fails: what is unknown stays 0, false or -1.
 */
void disk_probe(const char *directory, struct disk_traits *traits);

/* The two steps of it that decide, for tests: */

/* Of n random reads, which are sorted, the lower quartile, as others may use the disk, too.
   *is_busy: it is slow, but some were so fast that others must be why; to be measured again. */
double disk_seek_of(double *seconds, size_t n, bool *is_busy);

/* Of drives that state that they rotate a seek takes half a turn and a way at least, whatever was
   measured. */
void disk_believe_rotation(struct disk_traits *traits);

/* Whether random reads cost so much that their number matters. */
bool disk_is_slow_to_seek(const struct disk_traits *traits);

#endif
