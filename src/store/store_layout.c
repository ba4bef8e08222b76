/*
 * store_layout.c -- see store_layout.h.
 *
 * Lanes. RocksDB's iterator reads one file after the other and waits for each. So where a disk is
 * slow to seek, each directory has several databases, and as many scans read at the same time: all
 * drives of an array have something to do, and a single drive can choose the nearest data.
 */
#include "store/store_layout.h"

#include "machine/memory.h"

enum {
    OTHER_FILES = 42,           /* inputs, outputs, libraries, runs being written */
    DATABASE_FILES = 6,         /* manifest, lock, logs, directories */
    MIN_FILES = 16,
    LANE_FILES = 32,            /* if a database could have fewer, there are fewer databases */
};

/* Returns how many runs may be open. */
static unsigned most_open_runs(size_t n_databases)
{
    size_t others = OTHER_FILES + DATABASE_FILES * n_databases, limit = open_files_raise_limit();
    return limit < others + MIN_FILES ? MIN_FILES : (unsigned)(limit - others);
}

unsigned store_layout_most_files(size_t n_databases)
{
    return most_open_runs(n_databases) / (unsigned)n_databases;
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
        RATIO = 3,              /* of compression */
        SCANS = 4,              /* a sort that spills is several times as large as its memory */
    };
    uint64_t n_bytes = input_bytes / RATIO, least = SCANS * scan_bytes;
    return memory_available() < (n_bytes > least ? n_bytes : least);
}
