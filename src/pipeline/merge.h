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

/* What was written so far, for the progress display. The crew's lock guards it. */
struct merge_counts {
    uint64_t n_records;
    uint64_t raw_bytes;
    uint64_t output_bytes;      /* CRAM: 0 */
};

struct merge_settings {
    struct crew *crew;
    struct batch_pool *pool;    /* the batches that it kept are merged, too */
    struct run_store *store;    /* NULL: all records are in memory */
    const uint32_t *dropped_runs;       /* runs to leave out (resume.h) */
    size_t n_dropped;
    uint32_t next_run;          /* the batches in memory count as runs from this number on */
    size_t open_bytes;          /* sum over runs of their largest block, uncompressed;
                                   blocks of one record are not counted */
    const struct sort_rules *rules;
    sam_hdr_t *header;
    struct sorted_output *output;
    const struct input_streams_settings *streams;       /* with --merge: the inputs are the runs;
                                                           NULL: those in the store are */
    struct load_totals *totals; /* with --merge: counts what is read */
    const struct duplicates *duplicates;        /* decided; NULL: none are marked */
    const struct content_sum *sum;      /* of the input: the output must have the same. With
                                           --merge it is not known before */
    const char *resumed_path;   /* where the runs are if another process wrote them, or NULL */
    const struct record_observers *observers;   /* of the output's records */
    struct merge_counts *counts;
};

/* Merges everything. Returns 0 if the output is complete and its records are those of the input,
   else -1 after a message. Opens the output, but not with --merge: then it is open, and gets more
   records. The caller closes the output in all cases. *sum_out is set to the sum of the records
   that were merged. */
int merge_to_output(const struct merge_settings *settings, struct content_sum *sum_out);

#endif
