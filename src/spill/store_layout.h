/*
 * store_layout.h -- decides the layout of temporary data, for the store and for --plan: how many
 * databases each directory gets, how many files they may have open, whether reads use O_DIRECT, and
 * the codec.
 *
 * Any thread.
 */
#ifndef ROCKSORT_SPILL_STORE_LAYOUT_H
#define ROCKSORT_SPILL_STORE_LAYOUT_H

#include "os/disk_probe.h"
#include "spill/temp_codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STORE_LAYOUT_MOST_LANES = 4 };   /* databases in a directory */

/* Returns how many databases each of n_dirs directories gets: one, or several if a disk is slow to
   seek and each of them may have enough open files. */
unsigned store_layout_lanes(size_t n_dirs, bool slow_to_seek);

/* Raises the limit of open files and returns how many files each of n_databases may have open. */
unsigned store_layout_most_files(size_t n_databases);

/* True if the temporary data will not fit into the page cache. If the size of the input is unknown
   (0), true unless the machine has much more memory than this sort may use. */
bool store_layout_exceeds_memory(uint64_t input_bytes, size_t scan_bytes);

/* ---- all disks of a sort ---- */

struct run_store_disks {
    bool in_memory;             /* all directories are in memory; starts as true */
    bool slow_to_seek;          /* at least one disk is slow to seek */
    double seek_seconds, parallel;      /* of the disk that is slowest to seek; 0: unknown */
    double bytes_per_second;    /* of the slowest disk; 0: unknown */
    uint64_t free_bytes;        /* in all directories that are not full */
};

/* Adds the traits of one disk to those of all. */
void run_store_disks_add(struct run_store_disks *disks, const struct disk_traits *disk);

/* ---- the codec ---- */

/*
 * Compressing costs CPU time and saves bytes. 2.1 GB of records in 64 MB, with 2 cores and a disk
 * of 1 GB/s: none 12.6 s, lz4 13.8 s, snappy 14.8 s, zstd 16.6 s. On four modelled rotating drives
 * zstd was 12 % faster than lz4.
 */
enum codec_reason {
    CODEC_ASKED_FOR,
    CODEC_MEMORY,
    CODEC_FAST_DISK,
    CODEC_SLOW_DISK,
    CODEC_USUAL,
};

/* Chooses none, lz4 or zstd. raw_bytes_left: uncompressed bytes still to be written. */
enum temp_codec codec_choose(const struct run_store_disks *disks, unsigned n_threads,
                             uint64_t raw_bytes_left, enum codec_reason *reason);

/* Returns the reason in words, as part of a sentence. */
const char *codec_reason_text(enum codec_reason reason);

#endif
