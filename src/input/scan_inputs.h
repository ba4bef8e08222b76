/*
 * scan_inputs.h -- reads the inputs of --merge before they are merged, if something must be known
 * of all records first.
 *
 * Threads: one; it starts readers, and jobs look at the records. `streams` has no make, drop and
 * arg. Returns 0, or -1 after a message and thread_pool_fail.
 */
#ifndef ROCKSORT_INPUT_SCAN_INPUTS_H
#define ROCKSORT_INPUT_SCAN_INPUTS_H

#include "bam_sort_key.h"
#include "input/span_queue.h"
#include "spill/record_observers.h"

/* Shows all records to observers. An input is a run. */
int scan_inputs_ends(const struct input_streams_settings *streams,
                     const struct record_observers *observers, const struct sort_rules *rules);

/*
 * Finds out whether records have IDs that change in the united header (input/id_renames.h): sets
 * touched[i] for each input number that has such a record.
 *
 * Programs often have the same ID and another command line in each input, so their IDs change; but
 * hardly any record names its program. To inflate an input and look at its tags takes a tenth of
 * the time of merging it.
 */
int scan_inputs_ids(const struct input_streams_settings *streams, bool *touched);

#endif
