/*
 * feed.h -- feeders: threads that read the runs in the store ahead of the dispatcher.
 *
 * There is one for each database, so that several disks are read at the same time, and waiting for
 * a disk does not keep the dispatcher from cutting segments. What they have read waits in queues of
 * bounded size; the dispatcher takes the block that is first of all.
 *
 * Order of calls: start once; next and drop, by the dispatcher, until next returns 0; stop, after a
 * failure with crew_fail before.
 */
#ifndef ROCKSORT_PIPELINE_FEED_H
#define ROCKSORT_PIPELINE_FEED_H

#include "pipeline/crew.h"
#include "store/run_store.h"

struct fed_block {
    struct fed_block *next;
    const char *dir;            /* where it comes from, for messages */
    uint8_t *value;             /* malloc'ed; the dispatcher takes it and sets this to NULL */
    size_t value_bytes;
    size_t key_bytes;
    uint8_t key[];
};

struct feeders;

struct feed_settings {
    struct crew *crew;
    struct run_store *store;
    const uint32_t *dropped_runs;       /* that do not count (resume.h) */
    size_t n_dropped;
    size_t queue_bytes;         /* that all queues together may hold */
};

/* Starts scans and threads. NULL after a message. */
struct feeders *feeders_start(const struct feed_settings *settings);

/*
 * Waits for the next block and shows it; it stays the next one until feeders_drop. Returns 1, 0
 * after the last, or -1 if the crew has failed.
 */
int feeders_next(struct feeders *feeders, struct fed_block **block);

/* Ends and frees the block that was shown. */
void feeders_drop(struct feeders *feeders);

/* Ends the threads and the scans. NULL is accepted. */
void feeders_stop(struct feeders *feeders);

#endif
