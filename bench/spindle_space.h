/*
 * spindle_space.h -- where on the modelled device the bytes of each file lie.
 *
 * A space contains the free addresses of the device; a map says which addresses a file has. Space
 * is allocated when data arrive from the page cache, as in file systems with delayed allocation:
 * the first pieces of a file are as large as what is written, later ones as large as the file is by
 * then, up to 32 MiB. A piece follows the file's last one if that place is free; otherwise it is
 * the first free place that fits. So small files lie side by side, one file written alone is
 * contiguous, and files written at the same time alternate by pieces, not by requests (ext4 and XFS
 * preallocate in the same way).
 *
 * Places are whole blocks of 4 KiB. Only one thread at a time may call. Errors: -1 if memory is
 * short.
 */
#ifndef SPINDLE_SPACE_H
#define SPINDLE_SPACE_H

#include <stddef.h>
#include <stdint.h>

#define SPACE_BLOCK_BYTES UINT64_C(4096)
/* The first 128 MiB are the file system's journal, which fsync writes. */
#define SPACE_JOURNAL_BYTES (UINT64_C(128) << 20)

struct range {
    uint64_t addr;
    uint64_t len;
};

struct extent {
    uint64_t offset; /* in the file */
    uint64_t addr;
    uint64_t len;
};

struct file_map {
    struct extent *extents; /* by offset */
    size_t n_extents, room;
    uint64_t mapped_bytes;
};

struct space;

struct space *space_create(void);
void space_destroy(struct space *space);

/* Allocates places for those of the file's bytes that have none. */
int space_map(struct space *space, struct file_map *map, uint64_t offset, uint64_t len);

/* Gives back the places of a part of the file. Calls freed(arg, range) for each place before. */
int space_unmap(struct space *space, struct file_map *map, const struct range *part,
                void (*freed)(void *arg, struct range range), void *arg);

/* Writes the places of the file's bytes, at most max of them, without holes. Returns how many there
 * are. */
size_t space_ranges(const struct file_map *map, uint64_t offset, uint64_t len, struct range *ranges,
                    size_t max);

/* Frees the list only. Call space_unmap before to give back the places. */
void file_map_release(struct file_map *map);

#endif
