/*
 * run_store_internal.h -- what the files of run_store.h share.
 *
 * run_store.c          databases and disks; runs that are written
 * run_store_compact.c  what is compacted when
 * run_store_scan.c     how the runs are read, and what that costs
 */
#ifndef ROCKSORT_STORE_RUN_STORE_INTERNAL_H
#define ROCKSORT_STORE_RUN_STORE_INTERNAL_H

#include "store/run_store.h"

#include <pthread.h>

enum {
    OTHER_FILES = 42,           /* inputs, outputs, libraries, runs being written */
    /* RocksDB syncs its manifest twice and its directory once whenever runs are admitted: 90 ms on
       a rotating disk. */
    ADMITTED_WHEN_SLOW = 4,
};

struct volume {                 /* a database in a temporary directory */
    const char *dir;
    unsigned lane;              /* its number there */
    struct run_db *db;          /* NULL until the first run */
    struct disk_traits disk;
    bool shares_space;          /* an earlier directory is on the same file system */
    const char *full_reason;    /* why the database could not be made; who writes runs only */
    /* under the lock */
    bool full;                  /* or nearly so, and another is not */
    unsigned n_runs;
    uint64_t n_bytes;
    double write_seconds;
    /* who ends runs only */
    struct compaction_plan plan;
    unsigned applied_width, applied_max_files;  /* of the compaction that is on; 0: none */
    bool compact_failed;        /* and was switched off */
};

struct run_store {
    struct run_store_settings settings;
    struct compaction_facts facts;
    unsigned width;             /* of compactions */
    size_t compaction_read_bytes, scan_read_bytes;
    bool slow_to_seek;          /* one of the disks */
    size_t scan_bytes;          /* memory for the scans to read ahead */
    bool direct;                /* reading goes past the page cache */
    struct volume *volumes;
    size_t n_volumes;
    unsigned n_retries;         /* of runs that had no space; who writes runs only */
    unsigned n_end_waits;       /* the same at the end of a run; who ends runs only */
    pthread_mutex_t lock;
    unsigned n_runs;            /* that have ended; under the lock, as what volumes count */
    uint64_t raw_done, raw_left;        /* of the input; likewise */
};

#endif
