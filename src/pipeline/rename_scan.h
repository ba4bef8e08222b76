/*
 * rename_scan.h -- finds out whether records of inputs have IDs that change in the united header
 * (input/id_renames.h).
 *
 * Programs often have the same ID and another command line in each input, so their IDs change; but
 * hardly any record names its program. To inflate an input and look at its tags takes a tenth of
 * the time of merging it.
 *
 * Threads: one; it starts readers, and jobs look at the records.
 */
#ifndef ROCKSORT_PIPELINE_RENAME_SCAN_H
#define ROCKSORT_PIPELINE_RENAME_SCAN_H

#include "pipeline/input_streams.h"

/* Reads the inputs. `streams` has no make, drop and arg. touched[i] is set for each input number
   whose records must be changed. Returns 0, or -1 after a message and crew_fail. */
int rename_scan(const struct input_streams_settings *streams, bool *touched);

#endif
