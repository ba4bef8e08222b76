/*
 * merge_inputs.h -- the inputs of --merge: each is a run that is in order already, and its records
 * become open blocks (segment.h) for the dispatcher (merge.h).
 *
 * A block whose records are not in order, or that begins before the end of the block before it, is
 * an error that names the two records.
 *
 * Order of calls: start; first and take, by the dispatcher, for each input in any turn, until first
 * returns 0; stop; destroy with all jobs done.
 */
#ifndef ROCKSORT_PIPELINE_MERGE_INPUTS_H
#define ROCKSORT_PIPELINE_MERGE_INPUTS_H

#include "pipeline/input_streams.h"
#include "pipeline/segment.h"

struct merge_inputs;

/* Opens the inputs and starts to read. `streams` has no make, drop and arg; its totals count the
   records, too. `header` is that of the output. NULL after a message. */
struct merge_inputs *merge_inputs_start(const struct input_streams_settings *streams,
                                        struct segmenter *segmenter,
                                        const struct sort_rules *rules, sam_hdr_t *header);

/* Waits for the next block of input i, and sets *first to the bound of its first record, which stays
   until the block is taken. Returns 1; 0 after the last block, with a bound above all; or -1 after a
   message. */
int merge_inputs_first(struct merge_inputs *m, size_t i, struct merge_limit *first);

/* Takes this block, which is the dispatcher's then. */
struct open_block *merge_inputs_take(struct merge_inputs *m, size_t i);

/* With the lock held: see input_streams_excess_bytes. */
size_t merge_inputs_excess_bytes(const struct merge_inputs *m);

/* The sum of all records that were read. After the last block of each. */
struct content_sum merge_inputs_sum(const struct merge_inputs *m);

/* Ends reading. NULL is accepted. */
void merge_inputs_stop(struct merge_inputs *m);

/* NULL is accepted. */
void merge_inputs_destroy(struct merge_inputs *m);

#endif
