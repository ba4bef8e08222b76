/*
 * scan_inputs.h -- reads the inputs of --merge once before they are merged, if a feature needs all
 * records first (--markdup; changed IDs).
 *
 * Threads: one calls and starts readers; jobs scan the records. `streams` has no make, drop and
 * arg. Both return 0, or -1 after a message and thread_pool_fail.
 */
#ifndef ROCKSORT_INPUT_SCAN_INPUTS_H
#define ROCKSORT_INPUT_SCAN_INPUTS_H

#include "bam_sort_key.h"
#include "input/span_queue.h"
#include "spill/record_observers.h"

/* Shows all records to observers; an input counts as a run. */
int scan_inputs_ends(const struct input_streams_settings *streams,
                     const struct record_observers *observers, const struct sort_rules *rules);

/*
 * Finds out whether records have IDs that change in the united header (input/id_renames.h): sets
 * touched[i] for each input number that has such a record.
 *
 * In most inputs the ID of a program changes, because the same ID has another command line in each
 * input, but hardly any record has a PG tag. A scan takes a tenth of the time of a merge.
 */
int scan_inputs_ids(const struct input_streams_settings *streams, bool *touched);

#endif
