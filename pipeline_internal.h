/*
 * pipeline_internal.h -- what the files of the pipeline share; see pipeline.h for the whole.
 *
 * pipeline.c        the pool, workers' state, signals, the two phases in turn
 * pipeline_load.c   reader: input to sorted batches
 * pipeline_spill.c  spiller: batches to runs in the store
 * pipeline_store.c  the store while loading: its thread ends runs and has them compacted
 * pipeline_space.c  warnings about disks that are too small
 * pipeline_merge.c  dispatcher and writer: runs and batches to output, with pipeline_segment.c
 *
 * One lock and one condition guard everything that threads share; jobs last milliseconds, so that
 * neither is contended. Whoever fails prints one message and calls pipeline_fail; all waits end
 * then, and jobs that still run finish without harm.
 */
#ifndef ROCKSORT_PIPELINE_INTERNAL_H
#define ROCKSORT_PIPELINE_INTERNAL_H

#include "bam_batch.h"
#include "bam_index.h"
#include "bam_inputs.h"
#include "bam_writer.h"
#include "bgzf_block.h"
#include "mem_budget.h"
#include "monotonic.h"
#include "pipeline.h"

#include <htslib/kstring.h>
#include <pthread.h>

/* Working state of one job; handed out to a job and taken back, so there are as many as workers. */
struct worker {
    struct worker *next;
    struct merge_space space;
    struct bgzf_coder bgzf;
    struct temp_coder temp;
    struct merge_slice *slices;
    size_t n_slices;            /* room */
    uint8_t *raw;               /* block or BGZF payload being gathered */
    size_t raw_room;
    struct merge_bound bound;   /* of the last record of a block */
    bam1_t *record;             /* SAM output: a record unpacked, */
    kstring_t line;             /* and its line */
};

/* Batches in input order: [0, n_spilled) are in the store, the rest waits. */
struct batch_list {
    struct bam_batch **batches;
    size_t n, room, n_spilled;
};

struct pipeline {
    /* fixed after init */
    const struct sort_settings *settings;
    struct sort_rules rules;    /* the settings', and what follows from header and files: */
    struct bam_key_template *template_ends;
    struct minhash_index *minhash_index;
    struct bam_index *index;    /* of the output; NULL: none, or htslib makes it */
    struct mem_budget budget;
    htsThreadPool pool;
    hts_tpool_process *jobs;
    struct bam_inputs *inputs;
    sam_hdr_t *header;
    int32_t n_refs;
    uint8_t *arena;             /* memory of all ordinary batches */
    size_t arena_bytes;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_bool failed;

    /* under the lock */
    struct worker *idle_workers;
    size_t n_jobs;              /* submitted and not done */
    struct bam_batch **free_batches;
    size_t n_free_batches;
    size_t n_made_batches;      /* stretches of the arena that are batches, free or not */
    unsigned n_to_retire;       /* batches whose memory is wanted for something else */
    uint64_t expected_bytes;    /* uncompressed input, by what was read so far; 0: unknown */
    size_t large_bytes;         /* batches with memory of their own, for large records */
    bool reader_waits;          /* for a batch */
    struct batch_list sealed;
    bool loading;               /* more batches may be sealed */
    bool over;                  /* for the signal thread: nothing is left to clean up */
    struct content_sum sum_in, sum_out;
    bool any_placed;            /* some record has a reference; not kept for fixed orders */
    char **scratch_paths;       /* of all -T; to be removed on exit and on signals */
    size_t n_scratch_paths;
    struct output_path output, index_output;    /* their temporary files likewise */

    unsigned n_runs;            /* written, perhaps not ended yet */
    uint64_t spilled_bytes;     /* ... their raw bytes */
    struct stored_run **ending; /* runs that are to be ended */
    size_t n_ending;
    bool is_ending;             /* one is being ended */
    bool store_closing;
    bool compacting;            /* memory for it was made free */
    double write_seconds;       /* spent in ending runs */
    double wait_seconds;        /* the spiller waited for that */

    /* spiller; then dispatcher */
    struct run_store *store;
    pthread_t ending_thread;
    bool ending_thread_runs;
    struct codec_facts codec_facts;     /* when the last run was begun: */
    double codec_seconds, codec_write_seconds, codec_wait_seconds;
    size_t open_bytes;          /* sum over runs of their largest block, uncompressed */

    bool lost_reader;           /* standard output was closed */
    struct sort_report *report;
};

/* pipeline.c */

/* Marks the run as failed and wakes everybody. The caller has printed why. */
void pipeline_fail(struct pipeline *p);
static inline bool pipeline_failed(const struct pipeline *p)
{
    return atomic_load_explicit(&p->failed, memory_order_relaxed);
}
int pipeline_no_memory(struct pipeline *p);     /* message, fail; returns -1 */

/* Runs job(arg) in the pool. Returns 0, or -1 after a message. */
int pipeline_submit(struct pipeline *p, void (*job)(struct pipeline *, struct worker *, void *),
                    void *arg);

/* With the lock held: waits for a change. */
void pipeline_wait(struct pipeline *p);
void pipeline_lock(struct pipeline *p);
void pipeline_unlock(struct pipeline *p);
void pipeline_announce(struct pipeline *p);     /* with the lock held: something changed */

/* Grows an array: returns the new room, or 0 without memory. */
int worker_reserve_raw(struct worker *worker, size_t n_bytes);
int worker_reserve_slices(struct worker *worker, size_t n_slices);

/* pipeline_load.c */
int load_input(struct pipeline *p);

/* With the lock held: true if the budget has room for another batch. */
bool may_take_batch(const struct pipeline *p);

/* With the lock held: a batch that nobody uses any more. */
void free_batch(struct pipeline *p, struct bam_batch *batch);

/* With the lock held: takes n batches and their memory away for good, as soon as they are free. */
void retire_batches(struct pipeline *p, unsigned n);

/* With the lock held: gives the memory of free batches back to the kernel. */
void drop_free_batches(struct pipeline *p);

/* pipeline_store.c */

/* Opens the store if it is not open. */
int store_open(struct pipeline *p);

/* Closes it and ends its thread. */
void store_close(struct pipeline *p);

/* With the lock held: uncompressed size of the whole input; 0: unknown. */
uint64_t store_expected_bytes(const struct pipeline *p);

/* How many runs there will be in all; 0: unknown. */
uint64_t store_expected_runs(struct pipeline *p);

/* The codec for the next run, which is about to begin. */
enum temp_codec store_choose_codec(struct pipeline *p);

/* Lets the run be ended in the background; waits if others are waiting for that. Takes the run. */
int store_end_run(struct pipeline *p, struct stored_run *run);

/* Waits until all runs have ended. */
int store_drain(struct pipeline *p);

/* After the last run: waits until they have ended, and for compactions. */
int store_settle(struct pipeline *p);

/* pipeline_spill.c */

/* Body of the spiller thread: spills runs while loading is on and batches crowd. */
void *spill_while_loading(void *pipeline);

/* After loading: spills the oldest batches until merging has the memory that it needs. */
int spill_to_fit(struct pipeline *p);

/* Bytes of batches that are not spilled. */
size_t batches_kept_bytes(const struct pipeline *p);

/* A place at which sources may be cut; places come in key order. */
struct cut_place {
    const struct merge_source *source;
    size_t index;
    enum sort_order order;
    size_t n_bytes;             /* about so many raw bytes lie between places */
};

/*
 * Lists places in n_sources sorted sources, every sample_bytes of raw_bytes[i]; returns their
 * number and the malloc'ed array, or -1 without memory.
 */
ssize_t find_cut_places(enum sort_order order, const struct merge_source *sources,
                        const size_t *raw_bytes, size_t n_sources, size_t sample_bytes,
                        struct cut_place **places);

/* pipeline_space.c */

/* Warns if temporary data or output of so many bytes of records will not fit their disks. */
void warn_about_space(struct pipeline *p, uint64_t raw_bytes);

/* pipeline_merge.c */

/* Makes the output's index: BAI if its name ends so, else CSI; that of CRAM is htslib's. Returns 0,
   or -1 after a message. */
int prepare_index(struct pipeline *p);

int merge_to_output(struct pipeline *p);

#endif
