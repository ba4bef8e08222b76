/*
 * feed.h -- feeders: threads that read the runs in the store ahead of the dispatcher.
 *
 * There is one feeder for each database. So several disks are read at the same time, and the
 * dispatcher can cut segments while feeders wait for a disk. Each feeder puts the blocks that it
 * reads, in the order of their keys, into a queue of bounded size.
 *
 * Order of calls: start; first and drop, for each feeder in any turn, until first returns 0; stop at
 * any time. Threads: one.
 */
#ifndef ROCKSORT_PIPELINE_FEED_H
#define ROCKSORT_PIPELINE_FEED_H

#include "order/slice_merge.h"
#include "pipeline/crew.h"
#include "store/run_store.h"

struct feeders;

struct feed_settings {
    struct crew *crew;
    struct run_scan *const *scans;      /* of all databases; the feeders use them until they stop */
    size_t n_scans;
    const uint32_t *dropped_runs;       /* runs to leave out (resume.h) */
    size_t n_dropped;
    size_t queue_bytes;         /* limit for all queues together */
};

struct fed_block {              /* a block on its way from the store to the merge */
    struct fed_block *next;
    const char *dir;            /* directory that it is read from, for messages */
    uint8_t *value;             /* from malloc; code that takes it over sets this to NULL */
    size_t value_bytes;         /* known from the start */
    size_t key_bytes;
    uint8_t key[];              /* the bound of its first record */
};

/* Starts the threads. NULL after a message. */
struct feeders *feeders_start(const struct feed_settings *settings);

/* Waits for the first block in the queue of feeder i, of database i. Further calls return the same
   block until it is dropped. Returns 1, 0 after the last block, or -1 if the crew has failed. */
int feeders_first(struct feeders *feeders, size_t i, struct fed_block **block);

/* Removes the block that feeders_first returned from the queue of feeder i, and frees it. */
void feeders_drop(struct feeders *feeders, size_t i);

/* Ends the threads, and frees blocks that were not taken. The scans stay. NULL is accepted. */
void feeders_stop(struct feeders *feeders);

/* Print that a run in this directory fails its checksum, or that an entry there is not a block.
   Return -1. */
int fed_block_report_run(const char *dir, uint32_t run);
int fed_block_report_entry(const char *dir);

/* NULL is accepted. */
void fed_block_free(struct fed_block *block);

#endif
