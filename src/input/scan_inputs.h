/*
 * scan_inputs.h -- reads the inputs of --merge once before they are merged, if a feature needs all
 * records first (--markdup; changed IDs).
 *
 * Threads: one calls and starts readers; jobs scan the records.
 */
#ifndef ROCKSORT_INPUT_SCAN_INPUTS_H
#define ROCKSORT_INPUT_SCAN_INPUTS_H

#include "bam_sort_key.h"
#include "input/span_queue.h"
#include "spill/record_observers.h"

/*
 * Checks all records, and shows them to observers; an input counts as a run. `streams` has no make,
 * drop and arg. Returns 0, or -1 after a message and thread_pool_fail.
 *
 * touched not NULL: instead finds out whether records have IDs that change in the united header
 * (id_renames.h), and sets touched[i] for each input number that has such a record. In most inputs
 * the ID of a program changes, because the same ID has another command line in each input, but
 * hardly any record has a PG tag. A scan takes a tenth of the time of a merge.
 */
int scan_inputs(const struct input_streams_settings *streams,
                const struct record_observers *observers, const struct sort_rules *rules,
                bool *touched);

#endif
