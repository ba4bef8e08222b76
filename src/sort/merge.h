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

/* Merges all loaded records or, with --merge, the n_inputs inputs with these numbers, in ascending
   order; `inputs` is otherwise NULL. A record of an input that is out of order is an error that
   names two records.
   Opens the output; with --merge appends to the open output. The caller closes it in all cases.
   Returns 0, or -1 after a message. */
int merge_to_output(struct sort_context *sort, const size_t *inputs, size_t n_inputs);

#endif
