/*
 * merge.h -- the merge phase: runs in the store and batches in memory to sorted output.
 *
 * The dispatcher, which is the calling thread, takes blocks in the order of their first keys and
 * has each opened by a worker. The first key of the block that comes next is the *frontier*: all
 * records below it are in blocks that were taken. Whenever enough of them have gathered it *cuts*:
 * the records between the last cut and the frontier are a segment, which a worker merges
 * (segment.h). Batches in memory take part through places at which they may be cut. The writer, a
 * thread of its own, writes the segments in order.
 */
#ifndef ROCKSORT_PIPELINE_MERGE_H
#define ROCKSORT_PIPELINE_MERGE_H

#include "pipeline/batch_pool.h"
#include "pipeline/sorted_output.h"

/* What was written so far: for progress. The crew's lock guards it. */
struct merge_counts {
    uint64_t n_records;
    uint64_t raw_bytes;
    uint64_t output_bytes;      /* CRAM: 0 */
};

struct merge_settings {
    struct crew *crew;
    struct batch_pool *pool;    /* what it kept takes part */
    struct run_store *store;    /* NULL: all is in memory */
    const uint32_t *dropped_runs;       /* that do not count (resume.h) */
    size_t n_dropped;
    uint32_t next_run;          /* the batches in memory count as runs from this number on */
    size_t open_bytes;          /* sum over runs of their largest block, uncompressed;
                                   not of blocks of one record */
    const struct sort_rules *rules;
    sam_hdr_t *header;
    struct sorted_output *output;
    const struct content_sum *sum;      /* of the input: the output must have the same */
    const char *resumed_path;   /* where the runs lie, if they are another process's, or NULL */
    struct merge_counts *counts;
};

/* Merges all. Returns 0 if the output is complete and its records are those of the input, else -1
   after a message; the caller closes the output then as now. *sum_out: of the records that were
   merged. */
int merge_to_output(const struct merge_settings *settings, struct content_sum *sum_out);

#endif
