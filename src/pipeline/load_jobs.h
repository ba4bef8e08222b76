/*
 * load_jobs.h -- what workers do while the input is loaded.
 *
 * One job inflates or parses a piece of input. Then its records are indexed in parts, one job for
 * each part. When the reader has closed a batch and all its parts are indexed, one more job sorts
 * the batch. After a failure jobs do no work.
 *
 * Only the reader (load.c) submits these jobs.
 */
#ifndef ROCKSORT_PIPELINE_LOAD_JOBS_H
#define ROCKSORT_PIPELINE_LOAD_JOBS_H

#include "input/bam_inputs.h"
#include "pipeline/batch_pool.h"
#include "pipeline/load_totals.h"
#include "pipeline/verify.h"

/* What the jobs of one load work with; fixed during the load. A batch's `owner` points to it. */
struct load_jobs {
    struct crew *crew;
    struct batch_pool *pool;
    struct load_totals *totals;
    struct verification *verification;  /* NULL: nothing is verified */
    int32_t n_refs;
    size_t text_bytes;          /* usual size of a chunk of SAM */
    bool sum_only;              /* checksum only: a batch is freed once it is in the sum */
};

struct load_piece {
    const struct load_jobs *jobs;
    struct bam_piece input;
    struct bam_reader *reader;
    struct batch *batch;        /* not for SAM */
    size_t raw_at;              /* where its bytes begin in the batch */
    bool done;                  /* under the lock: the raw bytes are there */
    unsigned n_users;           /* SAM, under the lock: the reader, and jobs that copy records */
};

/* Each of these submits a job. They return 0, or -1 after a message. */
int load_jobs_inflate(struct load_piece *piece);
int load_jobs_parse(struct load_piece *piece);
int load_jobs_index(struct batch_part *part);

/* Called when one job of the batch is done, and when the reader adds no more parts to it. The last
   of these calls submits the job that sorts the batch. */
void load_jobs_step_done(struct batch *batch);

/* With the lock held: removes one user of the records of a piece of SAM. */
void load_jobs_drop_lines(struct load_piece *piece);

#endif
