/*
 * load_jobs.h -- what workers do while the input is loaded.
 *
 * One job inflates or parses a piece of input. If templates are fixed, one more job tells its
 * records of their mates. Then the records are indexed in parts, one job for each part. When the
 * reader has closed a batch and all its parts are indexed, one more job sorts the batch. After a
 * failure jobs do no work.
 *
 * Only the reader (load.c) submits these jobs.
 */
#ifndef ROCKSORT_PIPELINE_LOAD_JOBS_H
#define ROCKSORT_PIPELINE_LOAD_JOBS_H

#include "bam/guessed_walk.h"
#include "input/bam_inputs.h"
#include "pipeline/batch_pool.h"
#include "pipeline/load_large.h"
#include "pipeline/load_totals.h"
#include "pipeline/verify.h"
#include "pipeline/survey.h"

/* Fixed during the load. A batch's `owner` points to it. */
struct load_settings {
    struct crew *crew;
    struct batch_pool *pool;
    struct load_totals *totals;
    struct bam_inputs *inputs;
    size_t n_inputs;
    int32_t n_refs;
    struct input_position start;        /* where reading begins */
    const struct mem_budget *budget;
    const struct sort_rules *rules;
    struct verification *verification;  /* NULL: nothing is verified */
    bool sum_only;              /* only the checksum is wanted */
    const struct fixmate_rules *fixmate;        /* NULL: records stay as they are */
    const char *temp_prefix, *output;   /* where templates go that do not fit in memory: see
                                           temp_dir.h */
    struct survey survey;       /* gets all records */
    bool saves_part;            /* what came of an input that ends with an error is to be kept */
    uint64_t most_bytes;        /* so much of the inputs is read, and what follows is left; 0: all */
};

/* What turns a piece into records of whole templates that know their mates. */
struct template_work {
    struct record_bytes raw;    /* BAM is inflated here */
    struct template_stretch stretch;
    bool is_cut;                /* by the reader: the stretch is known */
    bool size_is_impossible;    /* of the record after the stretch */
    uint64_t first_record;      /* of the stretch: its number in the input, from 0 */
    uint64_t end_offset;        /* of the stretch, unless it ends in the piece */
    struct load_large *large;   /* a template that comes before the stretch, or NULL */
    struct fixed_part part;     /* instead of a stretch, if part.template is not NULL */
    struct fixed_records fixed;
};

struct load_piece {
    const struct load_settings *load;
    struct bam_piece input;
    struct bam_reader *reader;
    struct batch *batch;        /* not for SAM, nor if templates are fixed */
    size_t raw_at;              /* where its bytes begin in the batch */
    struct template_work templates;     /* only if templates are fixed */
    struct guessed_walk guess;  /* of records that are neither text nor in templates to be fixed */
    bool done;                  /* under the lock: the raw bytes, or the fixed records, are there */
    unsigned n_users;           /* if records are copied, under the lock: the reader, and jobs that
                                   copy */
};

/* Each of these submits a job. They return 0, or -1 after a message. */
int load_jobs_inflate(struct load_piece *piece);
int load_jobs_parse(struct load_piece *piece);
int load_jobs_fix(struct load_piece *piece);
int load_jobs_index(struct batch_part *part);

/* Called when one job of the batch is done, and when the reader adds no more parts to it. The last
   of these calls submits the job that sorts the batch. */
void load_jobs_step_done(struct batch *batch);

/* With the lock held: removes one user of the records of a piece. */
void load_jobs_drop_records(struct load_piece *piece);

/* Frees the buffers of a piece. */
void load_jobs_release(struct load_piece *piece);

/* Where the raw records of a piece are, once they are there. */
uint8_t *load_jobs_raw(const struct load_piece *piece);

#endif
