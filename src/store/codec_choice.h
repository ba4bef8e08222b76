/*
 * codec_choice.h -- which codec the next run should have, by what was seen while running.
 *
 * Compressing temporary data costs CPU and saves bytes. 2.1 GB of records in 64 MB, 2 cores, on a
 * disk of 1 GB/s: none 12.6 s, lz4 13.8, snappy 14.8, zstd 16.6; on four modelled rotating drives
 * zstd was 12 % faster than lz4. So
 *   - in memory (tmpfs), none; also where workers have no time for it, on a disk that would have no
 *     trouble with three times the bytes;
 *   - where threads wait for the disk, or it is slow to seek, zstd;
 *   - otherwise lz4.
 * None needs space, too. Blocks say their codec, so that runs may differ.
 *
 * Pure.
 */
#ifndef ROCKSORT_STORE_CODEC_CHOICE_H
#define ROCKSORT_STORE_CODEC_CHOICE_H

#include "store/temp_codec.h"

#include <stdbool.h>

struct codec_facts {
    bool in_memory;
    bool slow_to_seek;
    double bytes_per_second;    /* of the disk, reading in order; 0: unknown */
    unsigned n_threads;
    double free_bytes;          /* in the temporary directories */
    double raw_bytes_left;      /* that may be spilled yet, uncompressed */
    /* since the decision before; all 0 at first */
    enum temp_codec codec;      /* that was used */
    double seconds;
    double write_seconds;       /* of which a thread wrote to the disk, or waited for it */
    double wait_seconds;        /* of which the next run waited for that */
    double worker_seconds;      /* that all workers together had something to do */
    double stored_ratio;        /* stored bytes to raw bytes */
    bool left_none;             /* none was tried before, and was too much: not again */
};

enum codec_reason {
    CODEC_ASKED_FOR,
    CODEC_MEMORY,
    CODEC_FAST_DISK,
    CODEC_SLOW_DISK,
    CODEC_WAITING,
    CODEC_USUAL,
};

/* True if none would fit. */
bool codec_has_space(const struct codec_facts *facts);

enum temp_codec codec_choose(const struct codec_facts *facts, enum codec_reason *reason);

/* The reason in words, as part of a sentence. */
const char *codec_reason_text(enum codec_reason reason);

#endif
