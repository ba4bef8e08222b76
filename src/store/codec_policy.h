/*
 * codec_policy.h -- chooses the codec of the next run from what the sort has measured so far.
 *
 * Compressing temporary data costs CPU time and saves bytes. 2.1 GB of records took in 64 MB, with
 * 2 cores and a disk of 1 GB/s: none 12.6 s, lz4 13.8 s, snappy 14.8 s, zstd 16.6 s. On four
 * modelled rotating drives zstd was 12 % faster than lz4. So the choice is
 *   - none in memory (tmpfs); also where workers are busy and the disk would easily take three
 *     times the bytes;
 *   - zstd where threads wait for the disk, or where it is slow to seek;
 *   - lz4 otherwise.
 * The codec none also needs enough space. Each block names its codec, so runs may have different
 * ones.
 *
 * Pure functions.
 */
#ifndef ROCKSORT_STORE_CODEC_POLICY_H
#define ROCKSORT_STORE_CODEC_POLICY_H

#include "store/temp_codec.h"

#include <stdbool.h>

struct codec_facts {
    bool in_memory;
    bool slow_to_seek;
    double bytes_per_second;    /* that the disk reads in order; 0: unknown */
    unsigned n_threads;
    double free_bytes;          /* in the temporary directories */
    double raw_bytes_left;      /* uncompressed bytes that may still be spilled */
    /* since the last decision; all 0 at first */
    enum temp_codec codec;      /* the codec that was used */
    double seconds;
    double write_seconds;       /* of `seconds`: a thread wrote to the disk, or waited for it */
    double wait_seconds;        /* of `seconds`: the next run waited for that thread */
    double worker_seconds;      /* that all workers together were busy */
    double stored_ratio;        /* stored bytes to raw bytes */
    bool left_none;             /* TEMP_CODEC_NONE was chosen before and was too much for the
                                   disk */
};

enum codec_reason {
    CODEC_ASKED_FOR,
    CODEC_MEMORY,
    CODEC_FAST_DISK,
    CODEC_SLOW_DISK,
    CODEC_WAITING,
    CODEC_USUAL,
};

/* True if what is still to be spilled fits uncompressed. */
bool codec_has_space(const struct codec_facts *facts);

enum temp_codec codec_choose(const struct codec_facts *facts, enum codec_reason *reason);

/* The reason in words, as part of a sentence. */
const char *codec_reason_text(enum codec_reason reason);

#endif
