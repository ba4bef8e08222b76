/*
 * load_jobs.h -- what workers do while the input is loaded.
 *
 * A piece of input is inflated or parsed. Then its records are indexed in parts, a job each. When
 * the reader has closed a batch and all parts of it are indexed, the batch is sorted. After a
 * failure jobs do nothing but say that they are done.
 *
 * Only the reader (load.c) submits these jobs.
 */
#ifndef ROCKSORT_PIPELINE_LOAD_JOBS_H
#define ROCKSORT_PIPELINE_LOAD_JOBS_H

#include "input/bam_inputs.h"
#include "pipeline/batch_pool.h"
#include "pipeline/load_totals.h"
#include "pipeline/verify.h"

/* What the jobs of one load work with; fixed while it lasts. A batch's `owner` points to it. */
struct load_jobs {
    struct crew *crew;
    struct batch_pool *pool;
    struct load_totals *totals;
    struct verification *verification;  /* NULL: nothing is verified */
    int32_t n_refs;
    size_t text_bytes;          /* usual size of a chunk of SAM */
    bool sum_only;              /* batches are not wanted once they are in the sum */
};

struct load_piece {
    const struct load_jobs *jobs;
    struct bam_piece input;
    struct bam_reader *reader;
    struct batch *batch;        /* not for SAM */
    size_t raw_at;              /* place in the batch */
    bool done;                  /* under the lock: the raw bytes are there */
    unsigned n_users;           /* under the lock, SAM: the walk, and jobs that copy records */
};

/* Each of these has a job done. They return 0, or -1 after a message. */
int load_jobs_inflate(struct load_piece *piece);
int load_jobs_parse(struct load_piece *piece);
int load_jobs_index(struct batch_part *part);

/* One job of the batch is done, or the reader will add no more parts. The last of these calls has
   the batch sorted. */
void load_jobs_step_done(struct batch *batch);

/* With the lock held: one of the users of a piece of SAM needs its records no longer. */
void load_jobs_drop_lines(struct load_piece *piece);

#endif
