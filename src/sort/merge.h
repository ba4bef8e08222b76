/*
 * merge.h -- the merge phase: merges runs in the store and sort buffers in memory into sorted
 * output.
 *
 * The dispatcher, which is the calling thread, takes blocks in the order of their first keys. A
 * worker opens each; those of inputs (--merge) are open already. The first key of the next block is
 * the *frontier*: all records below it are in blocks that were already taken. When enough of these
 * records have gathered, the dispatcher *cuts*: the records between the last cut and the frontier
 * become an output chunk, which a worker merges (output_chunk.h). The writer, a separate thread,
 * writes the output chunks in order.
 */
#ifndef ROCKSORT_SORT_MERGE_H
#define ROCKSORT_SORT_MERGE_H

#include "input/span_queue.h"
#include "sort/sort_context.h"

/* Merges all loaded records or, with --merge, the inputs; `inputs` is otherwise NULL, and has no
   make, drop and arg. A record of an input that is out of order is an error that names two records.
   Opens the output; with --merge appends to the open output. The caller closes it in all cases.
   Sets *sum_out to the sum of the merged records. Returns 0 if the output is complete and has the
   records of the input, else -1 after a message. */
int merge_to_output(struct sort_context *sort, const struct input_streams_settings *inputs,
                    struct content_sum *sum_out);

#endif
