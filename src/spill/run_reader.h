/*
 * run_reader.h -- reads the runs in the store ahead of the dispatcher, one thread a database.
 *
 * So several disks are read at the same time, and the dispatcher can cut output chunks while run
 * readers wait for a disk. Each run reader puts blocks, in the order of their keys, into a queue of
 * bounded size.
 *
 * Order of calls: start; first and drop for each run reader, in any order, until first returns 0;
 * stop at any time. Threads: one.
 */
#ifndef ROCKSORT_SPILL_RUN_READER_H
#define ROCKSORT_SPILL_RUN_READER_H

#include "order/slice_merge.h"
#include "os/thread_pool.h"
#include "spill/run_store.h"

struct run_readers;

struct run_reader_settings {
    struct threads *threads;
    struct run_scan *const *scans; /* of all databases; the run readers use them until they stop */
    size_t n_scans;
    const uint32_t *dropped_runs;       /* runs to skip (resume.h) */
    size_t n_dropped;
    size_t queue_bytes;         /* limit for all queues together */
};

struct stored_block {           /* a block on its way from the store to the merge */
    struct stored_block *next;
    const char *dir;            /* its directory, for messages */
    uint8_t *value;             /* from malloc; a new owner sets this to NULL */
    size_t value_bytes;         /* known from the start */
    size_t key_bytes;
    uint8_t key[];              /* the bound of its first record */
};

/* Starts the threads. NULL after a message. */
struct run_readers *run_readers_start(const struct run_reader_settings *settings);

/* Waits for the first block in the queue of run reader i, of database i. Further calls return the
   same block until it is dropped. Returns 1, 0 after the last block, or -1 if the thread pool has
   failed. */
int run_readers_first(struct run_readers *run_readers, size_t i, struct stored_block **block);

/* Removes the block that run_readers_first returned from the queue of run reader i, and frees it.
 */
void run_readers_drop(struct run_readers *run_readers, size_t i);

/* Ends the threads and frees blocks that were not taken. Scans stay open. NULL is accepted. */
void run_readers_stop(struct run_readers *run_readers);

/* Print that a run in this directory fails its checksum, or that an entry there is not a block.
   Return -1. */
int stored_block_report_run(const char *dir, uint32_t run);
int stored_block_report_entry(const char *dir);

/* NULL is accepted. */
void stored_block_free(struct stored_block *block);

#endif
