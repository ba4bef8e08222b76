/*
 * merge.h -- the merge phase: merges runs in the store and batches in memory into sorted output.
 *
 * The dispatcher, which is the calling thread, takes blocks in the order of their first keys and
 * has each opened by a worker. The first key of the next block is the *frontier*: all records below
 * it are in blocks that were already taken. When enough of these records have gathered, the
 * dispatcher *cuts*: the records between the last cut and the frontier become a segment, which a
 * worker merges (segment.h). Batches in memory have places at which they may be cut; the dispatcher
 * takes these places in key order, too. The writer, a separate thread, writes the segments in
 * order.
 *
 * With --merge the blocks come from the inputs themselves (merge_inputs.h), and are open when the
 * dispatcher takes them.
 */
#ifndef ROCKSORT_PIPELINE_MERGE_H
#define ROCKSORT_PIPELINE_MERGE_H

#include "pipeline/batch_pool.h"
#include "pipeline/merge_inputs.h"
#include "pipeline/sorted_output.h"

/* Merges everything. Returns 0 if the output is complete and its records are those of the input,
   else -1 after a message. Opens the output, but not with --merge: then it is open, and gets more
   records. The caller closes the output in all cases. *sum_out is set to the sum of the records
   that were merged. */
int merge_to_output(const struct merge_settings *settings, struct content_sum *sum_out);

#endif
