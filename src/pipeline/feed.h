/*
 * feed.h -- feeders: threads that read the runs in the store ahead of the dispatcher.
 *
 * There is one feeder for each database. So several disks are read at the same time, and the
 * dispatcher can cut segments while feeders wait for a disk. Each feeder puts the blocks that it
 * has read into a queue of bounded size. The dispatcher takes the block with the smallest key of
 * all queues.
 *
 * Order of calls: start; next and drop, by the dispatcher, until next returns 0; stop at any time.
 */
#ifndef ROCKSORT_PIPELINE_FEED_H
#define ROCKSORT_PIPELINE_FEED_H

#include "pipeline/crew.h"
#include "pipeline/fed_block.h"

struct feeders;

struct feed_settings {
    struct crew *crew;
    struct run_scan *const *scans;      /* of all databases; the feeders use them until they stop */
    size_t n_scans;
    const uint32_t *dropped_runs;       /* runs to leave out (resume.h) */
    size_t n_dropped;
    size_t queue_bytes;         /* limit for all queues together */
};

/* Starts the threads. NULL after a message. */
struct feeders *feeders_start(const struct feed_settings *settings);

/*
 * Waits for the next block and sets *block to it. Further calls return the same block until
 * feeders_drop is called. Returns 1, 0 after the last block, or -1 if the crew has failed.
 */
int feeders_next(struct feeders *feeders, struct fed_block **block);

/* Removes from its queue the block that feeders_next returned, and frees it. */
void feeders_drop(struct feeders *feeders);

/* Ends the threads, and frees blocks that were not taken. The scans stay. NULL is accepted. */
void feeders_stop(struct feeders *feeders);

#endif
