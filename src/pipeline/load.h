/*
 * load.h -- what the reader and the workers of the load phase share.
 *
 * load.c       the reader: fetches pieces of input, finds their records, fills batches
 * load_jobs.c  jobs: inflate or parse a piece, check and index records, sort a batch
 *
 * A piece is inflated or parsed; then the records in it are indexed in parts, a job each; when the
 * reader has closed a batch and all its parts are indexed, the batch is sorted. After a failure
 * jobs do nothing but say that they are done.
 */
#ifndef ROCKSORT_PIPELINE_LOAD_H
#define ROCKSORT_PIPELINE_LOAD_H

#include "pipeline/pipeline_internal.h"

struct load_piece {
    struct bam_piece input;
    struct bam_reader *reader;
    struct batch *batch;    /* not for SAM */
    size_t raw_at;              /* place in the batch */
    bool done;                  /* under the lock: the raw bytes are there */
    unsigned n_users;           /* under the lock, SAM: the walk, and jobs that copy records */
};

/* Jobs of a piece: for BAM, and for SAM. They set done. */
void inflate_job(struct pipeline *p, struct worker *worker, void *piece);
void parse_job(struct pipeline *p, struct worker *worker, void *piece);

/* Job of a batch_part: checks and indexes its records, or copies them there from lines. */
void index_job(struct pipeline *p, struct worker *worker, void *part);

/* One of a batch's jobs is done, or the reader will add no more; after the last the batch is
   sorted. */
void batch_step_done(struct pipeline *p, struct batch *batch);

/* After an error that is the input's: reading it again would end in the same way. */
void note_bad_input(struct pipeline *p);

/* With the lock held: one of the users of a piece of SAM needs its records no longer. */
void drop_lines(const struct pipeline *p, struct load_piece *piece);

#endif
