/*
 * merge_inputs.h -- the inputs of --merge: each is a run that is in order already, and its records
 * become open blocks (segment.h) for the dispatcher (merge.h).
 *
 * The dispatcher takes the block with the smallest first key of all inputs. A block whose records
 * are not in order, or that begins before the end of the block before it, is an error that names
 * the two records.
 *
 * Order of calls: start; next and take, by the dispatcher, until next returns 0; stop; destroy with
 * all jobs done.
 */
#ifndef ROCKSORT_PIPELINE_MERGE_INPUTS_H
#define ROCKSORT_PIPELINE_MERGE_INPUTS_H

#include "pipeline/span_queue.h"
#include "pipeline/segment.h"

struct merge_inputs;

/* Opens the inputs and starts to read. `streams` has no make, drop and arg; its totals count the
   records, too. `header` is that of the output. NULL after a message. */
struct merge_inputs *merge_inputs_start(const struct input_streams_settings *streams,
                                        struct segmenter *segmenter,
                                        const struct sort_rules *rules, sam_hdr_t *header);

/* Waits for the next block in the order of first keys. Sets *block to it and *first to the bound of
   its first record, both of which stay until it is taken; further calls return the same block.
   Returns 1, 0 after the last block, or -1 after a message. */
int merge_inputs_next(struct merge_inputs *m, struct open_block **block,
                      struct merge_limit *first);

/* The block that merge_inputs_next returned is the dispatcher's now. */
void merge_inputs_take(struct merge_inputs *m);

/* With the lock held: see input_streams_excess_bytes. */
size_t merge_inputs_excess_bytes(const struct merge_inputs *m);

/* The sum of all records that were read. After merge_inputs_next returned 0. */
struct content_sum merge_inputs_sum(const struct merge_inputs *m);

/* Ends reading. NULL is accepted. */
void merge_inputs_stop(struct merge_inputs *m);

/* NULL is accepted. */
void merge_inputs_destroy(struct merge_inputs *m);

#endif
