/*
 * merge_inputs.h -- reads the sorted inputs of --merge as open blocks (output_chunk.h) for the
 * dispatcher (merge.h).
 *
 * A record that is out of order, within or between blocks, is an error that names two records.
 *
 * Order of calls: start; for each input, first and take until first returns 0, by the dispatcher;
 * destroy when the streams are stopped and all jobs done.
 */
#ifndef ROCKSORT_SORT_MERGE_INPUTS_H
#define ROCKSORT_SORT_MERGE_INPUTS_H

#include "input/span_queue.h"
#include "sort/output_chunk.h"

struct merge_inputs {
    struct sort_context *sort;
    struct output_chunker *output_chunker;
    struct input_streams *streams;      /* stopped by the dispatcher */
    size_t n;
    struct merge_input *inputs;
    struct content_sum sum;     /* of all records read; under the lock */
};

/* Opens the inputs and starts to read. make, drop and arg of `streams` are not set. NULL after a
   message. */
struct merge_inputs *merge_inputs_start(struct sort_context *sort,
                                        struct output_chunker *output_chunker,
                                        const struct input_streams_settings *streams);

/* Waits for the next block of input i, and sets *first to the bound of its first record, valid
   until the block is taken. Returns 1; 0 after the last block, with a bound above all records; or
   -1 after a message. */
int merge_inputs_first(struct merge_inputs *m, size_t i, struct merge_limit *first);

/* Returns this block, which the dispatcher then owns. */
struct open_block *merge_inputs_take(struct merge_inputs *m, size_t i);

/* NULL is accepted. */
void merge_inputs_destroy(struct merge_inputs *m);

#endif
