/*
 * store_layout.c -- see store_layout.h.
 *
 * RocksDB's iterator reads one file after another and waits for each. So if a disk is slow to seek,
 * each directory has several databases (lanes), which are scanned at the same time: all drives of
 * an array are busy, and a single drive can choose the nearest data.
 */
#include "spill/store_layout.h"

#include "os/memory.h"

enum {
    OTHER_FILES = 42,           /* inputs, outputs, libraries, runs being written */
    DATABASE_FILES = 6,         /* manifest, lock, logs, directories */
    MIN_FILES = 16,
    LANE_FILES = 32,            /* least number of open files for each of several databases */
};

unsigned store_layout_most_files(size_t n_databases)
{
    size_t others = OTHER_FILES + DATABASE_FILES * n_databases, limit = open_files_raise_limit();
    size_t n_runs = limit < others + MIN_FILES ? MIN_FILES : limit - others;
    return (unsigned)(n_runs / n_databases);
}

unsigned store_layout_lanes(size_t n_dirs, bool slow_to_seek)
{
    unsigned n_lanes = slow_to_seek ? STORE_LAYOUT_MOST_LANES : 1;
    while (n_lanes > 1 && store_layout_most_files(n_dirs * n_lanes) < LANE_FILES) n_lanes--;
    return n_lanes;
}

bool store_layout_exceeds_memory(uint64_t input_bytes, size_t scan_bytes)
{
    enum {
        RATIO = 3,              /* compression */
        SCANS = 4,              /* data that spill are several times as large as the memory */
    };
    uint64_t n_bytes = input_bytes / RATIO, least = SCANS * scan_bytes;
    return memory_available() < (n_bytes > least ? n_bytes : least);
}

/* ---- all disks of a sort ---- */

void run_store_disks_add(struct run_store_disks *disks, const struct disk_traits *disk)
{
    double rate = disk->bytes_per_second;
    if (!disk->is_memory) disks->in_memory = false;
    if (disk_is_slow_to_seek(disk)) disks->slow_to_seek = true;
    if (disk->seek_seconds > disks->seek_seconds) {
        disks->seek_seconds = disk->seek_seconds;
        disks->parallel = disk->parallel;
    }
    if (rate > 0 && (disks->bytes_per_second <= 0 || rate < disks->bytes_per_second))
        disks->bytes_per_second = rate;
}

/* ---- the codec ---- */

/* A worker merges and deflates about 100 MB/s at level 1. The disk should read twice as fast. */
static const double worker_bytes_per_second = 200e6;

/* Space for the runs and for the output of a compaction, written before its runs are deleted. */
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
