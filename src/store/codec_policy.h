/*
 * codec_policy.h -- chooses the codec of temporary data by what the probe found and by the room on
 * the disks.
 *
 * Compressing costs CPU time and saves bytes. 2.1 GB of records in 64 MB, with 2 cores and a disk
 * of 1 GB/s: none 12.6 s, lz4 13.8 s, snappy 14.8 s, zstd 16.6 s. On four modelled rotating drives
 * zstd was 12 % faster than lz4.
 *
 * Pure functions.
 */
#ifndef ROCKSORT_STORE_CODEC_POLICY_H
#define ROCKSORT_STORE_CODEC_POLICY_H

#include "store/run_store.h"
#include "store/temp_codec.h"

enum codec_reason {
    CODEC_ASKED_FOR,
    CODEC_MEMORY,
    CODEC_FAST_DISK,
    CODEC_SLOW_DISK,
    CODEC_USUAL,
};

/* Chooses none, lz4 or zstd. raw_bytes_left: uncompressed bytes that may still be written. */
enum temp_codec codec_choose(const struct run_store_disks *disks, unsigned n_threads,
                             uint64_t raw_bytes_left, enum codec_reason *reason);

/* The reason in words, as part of a sentence. */
const char *codec_reason_text(enum codec_reason reason);

#endif
