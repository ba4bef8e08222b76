/*
 * merge_inputs.h -- the inputs of --merge: each is a run that is in order already, and its records
 * become open blocks (output_chunk.h) for the dispatcher (merge.h).
 *
 * A block whose records are not in order, or that begins before the end of the block before it, is
 * an error that names the two records.
 *
 * Order of calls: start; first and take, by the dispatcher, for each input in any turn, until first
 * returns 0; destroy with the streams stopped and all jobs done.
 */
#ifndef ROCKSORT_SORT_MERGE_INPUTS_H
#define ROCKSORT_SORT_MERGE_INPUTS_H

#include "input/span_queue.h"
#include "sort/output_chunk.h"

struct merge_inputs {
    struct sort_context *sort;
    struct output_chunker *output_chunker;
    struct input_streams *streams;      /* the dispatcher stops them */
    size_t n;
    struct merge_input *inputs;
    struct content_sum sum;     /* of all records that were read; under the lock */
};

/* Opens the inputs and starts to read. `streams` has no make, drop and arg. NULL after a
   message. */
struct merge_inputs *merge_inputs_start(struct sort_context *sort,
                                        struct output_chunker *output_chunker,
                                        const struct input_streams_settings *streams);

/* Waits for the next block of input i, and sets *first to the bound of its first record, which
   stays until the block is taken. Returns 1; 0 after the last block, with a bound above all; or -1
   after a message. */
int merge_inputs_first(struct merge_inputs *m, size_t i, struct merge_limit *first);

/* Takes this block, which is the dispatcher's then. */
struct open_block *merge_inputs_take(struct merge_inputs *m, size_t i);

/* NULL is accepted. */
void merge_inputs_destroy(struct merge_inputs *m);

#endif
