/*
 * spiller.h -- the spiller: writes sort buffers as runs into the store.
 *
 * A run is made of some consecutive sorted sort buffers. It is cut into spill chunks, at places
 * where all of the sort buffers can be cut. For each spill chunk a worker merges one slice of each
 * sort buffer, cuts the result into blocks and compresses them. Spill chunks are put into the store
 * in order.
 *
 * memory_budget.h says when a run is spilled, and of how many sort buffers.
 *
 * Order of calls: start, when the load totals are set to loading; join, when they are set to not
 * loading; to_fit. Threads: one.
 */
#ifndef ROCKSORT_SORT_SPILLER_H
#define ROCKSORT_SORT_SPILLER_H

#include "sort/sort_context.h"

/* Starts a thread that spills a run whenever enough sort buffers wait. Returns 0, or -1 after a
   message. spill_join waits until that thread has ended. */
int spill_start(struct sort_context *sort);
void spill_join(const struct sort_context *sort);

/* After loading: spills the oldest sort buffers until the merge has enough memory, or all of them
   if the checkpoint or --markdup needs that. Returns 0, or -1 if the thread pool has failed. */
int spill_to_fit(struct sort_context *sort);

/* After spill_to_fit: warns if there is too little space for the output, unless that was checked
   before the first run. */
void spill_check_output(struct sort_context *sort);

#endif
