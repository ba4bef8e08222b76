/*
 * scan_runs.h -- shows records to observers again: of runs that an earlier process wrote, because
 * the results of its observers are lost, and of sort buffers in memory, each of which the merge
 * treats as a run.
 *
 * Threads: one calls, between load and merge; jobs read the records. All functions return 0, or -1
 * after a message and thread_pool_fail.
 */
#ifndef ROCKSORT_SORT_SCAN_RUNS_H
#define ROCKSORT_SORT_SCAN_RUNS_H

#include "sort/sort_context.h"

int scan_earlier_runs(const struct sort_context *sort, const struct record_observers *observers);

/* Shows observers_run the sort buffers. */
int scan_kept_buffers(const struct sort_context *sort);

#endif
