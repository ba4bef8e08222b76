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

#include "input/bam_inputs.h"
#include "pipeline/load_totals.h"
#include "pipeline/segment.h"

struct merge_inputs;

struct merge_inputs_settings {
    struct crew *crew;
    struct segmenter *segmenter;
    struct load_totals *totals; /* counts what is read */
    struct bam_inputs *inputs;  /* open, and not read yet */
    const size_t *numbers;      /* of those that are merged, in ascending order */
    size_t n_inputs;            /* how many these are */
    const struct sort_rules *rules;
    sam_hdr_t *header;          /* of the output */
    size_t piece_bytes;         /* of a piece of input, uncompressed */
    size_t ahead_bytes;         /* for what is read ahead of one input; a piece at least */
    size_t all_bytes;           /* see input_streams.h */
};

/* Opens the inputs and starts to read. NULL after a message. */
struct merge_inputs *merge_inputs_start(const struct merge_inputs_settings *settings);

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
