/*
 * view_again.h -- shows the records of the runs of an earlier process to observers: what these
 * found was lost with it, but the runs are in the store.
 *
 * Threads: one; it starts feeders, and jobs look at the records.
 */
#ifndef ROCKSORT_PIPELINE_VIEW_AGAIN_H
#define ROCKSORT_PIPELINE_VIEW_AGAIN_H

#include "pipeline/duplicates.h"
#include "pipeline/record_observers.h"
#include "store/run_store.h"

struct view_again_settings {
    struct crew *crew;
    struct duplicates *duplicates;      /* learns how long the runs are; or NULL */
    const struct record_observers *observers;
    struct run_store *store;
    const struct sort_rules *rules;
    int32_t n_refs;
    const uint32_t *dropped_runs;       /* runs to leave out (resume.h) */
    size_t n_dropped;
    uint32_t end_run;           /* only runs before this one */
    unsigned n_threads;
    size_t queue_bytes;         /* for blocks that are read ahead */
};

/* Reads all blocks of these runs. Returns 0, or -1 after a message and crew_fail. */
int view_again(const struct view_again_settings *settings);

#endif
