/*
 * view_again.h -- makes the views (duplicates.h) of the runs of an earlier process, and surveys their
 * records (survey.h): both were lost with it, but the runs are in the store.
 *
 * Threads: one; it starts feeders, and jobs make the views.
 */
#ifndef ROCKSORT_PIPELINE_VIEW_AGAIN_H
#define ROCKSORT_PIPELINE_VIEW_AGAIN_H

#include "pipeline/duplicates.h"
#include "pipeline/survey.h"
#include "store/run_store.h"

struct view_again_settings {
    struct crew *crew;
    struct duplicates *duplicates;      /* NULL: no views are made */
    struct survey survey;       /* gets all records */
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
