/*
 * spill_policy.h -- when a run is spilled, of how many batches, and what may stay in memory.
 *
 * The spiller (spill.c) asks these functions while it sorts, and the planner (planner.h) asks them
 * about a sort that has not begun.
 *
 * A run is spilled late. As long as there is memory the whole input may still fit, and batches that
 * are in memory when the input ends need not be spilled at all.
 *
 * Pure functions.
 */
#ifndef ROCKSORT_PIPELINE_SPILL_POLICY_H
#define ROCKSORT_PIPELINE_SPILL_POLICY_H

#include "pipeline/mem_budget.h"

/* What the spiller knows when it decides. */
struct spill_state {
    size_t n_waiting;           /* full batches that are in no run */
    bool any_spilled;           /* a run was spilled before */
    uint64_t expected_bytes;    /* of all records, uncompressed; 0: unknown */
    bool reader_is_stuck;       /* the reader waits for a batch, and the budget has none */
};

/* The number of waiting batches that start a run. It is larger before the first run if the input
   may fit into memory. */
size_t spill_policy_threshold(const struct mem_budget *budget, bool any_spilled,
                              uint64_t expected_bytes);

/* How many of the waiting batches the next run takes, the oldest first. */
size_t spill_policy_run_batches(const struct mem_budget *budget, size_t n_waiting);

/* The number of batches that should be spilled now; 0: wait for more. */
size_t spill_policy_due(const struct mem_budget *budget, const struct spill_state *state);

/*
 * The bytes of batches that may stay in memory while the runs are merged. open_bytes is the sum of
 * the largest block of each run; scan_bytes is the memory for reading ahead.
 */
size_t spill_policy_kept_bytes(const struct mem_budget *budget, size_t open_bytes,
                               size_t scan_bytes);

#endif
