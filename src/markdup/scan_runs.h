/*
 * scan_runs.h -- shows records to observers again: of runs that an earlier process wrote, because
 * the results of its observers are lost, and of sort buffers in memory, each of which the merge
 * treats as a run.
 *
 * Threads: one calls; jobs read the records. All functions return 0, or -1 after a message and
 * thread_pool_fail.
 */
#ifndef ROCKSORT_MARKDUP_SCAN_RUNS_H
#define ROCKSORT_MARKDUP_SCAN_RUNS_H

#include "markdup/markdup.h"
#include "spill/record_observers.h"
#include "spill/run_store.h"
#include "spill/sort_buffer.h"

struct scan_stored_settings {
    struct threads *threads;
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

int scan_stored_runs(const struct scan_stored_settings *settings);

struct kept_buffers {
    struct threads *threads;
    unsigned n_threads;
    struct sort_buffer *const *buffers; /* sorted */
    size_t n;
    uint32_t first_run;         /* number of the first one */
};

int scan_kept_buffers(const struct kept_buffers *kept, const struct record_observers *observers);

/* Sets the flags of the duplicates in the sort buffers. No other thread may read the records. */
int mark_kept_buffers(const struct kept_buffers *kept, const struct markdup *duplicates);

#endif
