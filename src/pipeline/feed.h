/*
 * feed.h -- feeders: threads that read the runs in the store ahead of the dispatcher.
 *
 * There is one for each database, so that several disks are read at the same time, and waiting for
 * a disk does not keep the dispatcher from cutting segments. What they have read waits in queues of
 * bounded size; the dispatcher takes the block that is first of all.
 *
 * Order of calls: start; next and drop, by the dispatcher, until next returns 0; stop at any time.
 * Then they may be started again, to read from another place on.
 */
#ifndef ROCKSORT_PIPELINE_FEED_H
#define ROCKSORT_PIPELINE_FEED_H

#include "pipeline/crew.h"
#include "pipeline/fed_block.h"

struct feeders;

struct feed_settings {
    struct crew *crew;
    struct run_store *store;
    const uint32_t *dropped_runs;       /* that do not count (resume.h) */
    size_t n_dropped;
    size_t queue_bytes;         /* that all queues together may hold */
    const struct sort_rules *rules;
    const uint8_t *from;        /* only blocks whose keys are not below this one; NULL: all */
    size_t from_bytes;
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

/* Ends the threads and the scans; what was read and not taken is lost. NULL is accepted. */
void feeders_stop(struct feeders *feeders);

#endif
