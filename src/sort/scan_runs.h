/*
 * scan_runs.h -- shows all records to observers before the merge: of runs that an earlier process
 * wrote, because the results of its observers are lost, of sort buffers in memory, and of the
 * inputs of --merge. Each of these is a run for the merge.
 *
 * Threads: one calls, between load and merge; jobs read the records. All functions return 0, or -1
 * after a message and thread_pool_fail.
 */
#ifndef ROCKSORT_SORT_SCAN_RUNS_H
#define ROCKSORT_SORT_SCAN_RUNS_H

#include "input/span_queue.h"
#include "sort/sort_context.h"

/* If records must be seen before the first is written: shows them to observers_in, and resolves
   duplicates, the groups of the output and the columns. */
int resolve_before_merge(struct sort_context *sort);

/* Makes settings to read n inputs of --merge at the same time; checks and divides the memory.
   `numbers` must outlive the streams. */
int plan_inputs(const struct sort_context *sort, const size_t *numbers, size_t n,
                struct input_streams_settings *streams);

/*
 * Finds out whether records of n inputs have IDs that change in the united header
 * (input/id_renames.h): sets touched[i] for each input number that has such a record.
 *
 * In most inputs the ID of a program changes, because the same ID has another command line in each
 * input, but hardly any record has a PG tag. A scan takes a tenth of the time of a merge.
 */
int scan_inputs_ids(const struct sort_context *sort, const size_t *numbers, size_t n,
                    bool *touched);

#endif
