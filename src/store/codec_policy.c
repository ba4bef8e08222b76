/* codec_policy.c -- see codec_policy.h. */
#include "store/codec_policy.h"

/* A worker merges and deflates about 100 MB/s at level 1. The disk should read twice as fast. */
static const double worker_bytes_per_second = 200e6;

/* Room for the runs and for the result of a compaction, which is written before its runs go. */
static const double space_reserve = 2;

enum temp_codec codec_choose(const struct run_store_disks *disks, unsigned n_threads,
                             uint64_t raw_bytes_left, enum codec_reason *reason)
{
    bool has_room = (double)disks->free_bytes > space_reserve * (double)raw_bytes_left;
    bool is_fast = disks->bytes_per_second >= worker_bytes_per_second * n_threads;
    *reason = CODEC_MEMORY;
    if (disks->in_memory && has_room) return TEMP_CODEC_NONE;
    *reason = CODEC_SLOW_DISK;
    if (disks->slow_to_seek) return TEMP_CODEC_ZSTD;
    *reason = CODEC_FAST_DISK;
    if (is_fast && has_room) return TEMP_CODEC_NONE;
    *reason = CODEC_USUAL;
    return TEMP_CODEC_LZ4;
}

const char *codec_reason_text(enum codec_reason reason)
{
    switch (reason) {
    case CODEC_ASKED_FOR: return "--temp-codec was given";
    case CODEC_MEMORY: return "the temporary data are in memory";
    case CODEC_FAST_DISK: return "the disk is fast";
    case CODEC_SLOW_DISK: return "the disk is slow to seek";
    case CODEC_USUAL: return "the disk is not fast enough or too small for uncompressed data";
    }
    return "";
}
