/*
 * feed.h -- feeders: threads that read the runs in the store ahead of the dispatcher.
 *
 * There is one for each database, so that several disks are read at the
 * same time, and waiting for a disk does not keep the dispatcher from cutting segments. What they
 * have read waits in queues of bounded size; the dispatcher takes the block that is first of all.
 *
 * Order of calls: start once; next by the dispatcher until it returns NULL; stop, after a failure
 * with pipeline_fail before.
 */
#ifndef ROCKSORT_PIPELINE_FEED_H
#define ROCKSORT_PIPELINE_FEED_H

#include "pipeline/pipeline_internal.h"

struct fed_block {
    struct fed_block *next;
    const char *dir;            /* where it comes from, for messages */
    uint8_t *value;             /* malloc'ed; whoever takes it sets this to NULL */
    size_t value_bytes;
    size_t key_bytes;
    uint8_t key[];
};

struct feeders;

/* Starts scans and threads, whose queues hold queue_bytes together. NULL after a message. */
struct feeders *feeders_start(struct pipeline *p, size_t queue_bytes);

/*
 * Waits for the next block and shows it; it stays the next one until feeders_drop. Returns 1, 0
 * behind the last, or -1 if the pipeline failed.
 */
int feeders_next(struct feeders *feeders, struct fed_block **block);

/* Ends and frees the block that was shown. */
void feeders_drop(struct feeders *feeders);

/* Ends the threads and the scans. NULL is accepted. */
void feeders_stop(struct feeders *feeders);

#endif
