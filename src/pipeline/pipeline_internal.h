/*
 * pipeline_internal.h -- what the files of the pipeline share; see bam_sort.h for the whole.
 *
 * bam_sort.c -- the frame: header, rules, the two phases in turn
 * pool.c -- jobs and the workers' state
 * signals.c -- signals and exceptions: what a sort that they end leaves behind
 * batch_pool.c -- the memory of batches
 * load.c -- reader: input to sorted batches, with load_jobs.c
 * spill.c -- spiller: batches to runs in the store
 * run_ender.c -- the store while loading: its thread ends runs and has them compacted
 * resume.c -- the store as something with which another process can go on, by what
 *                      checkpoint_writer.c writes down
 * durable.c -- from when on it survives a power failure
 * leftovers.c -- what earlier sorts of the same have left
 * verify.c -- --verify: workers check parts of the input for their order
 * space.c -- warnings about disks that are too small
 * merge.c -- dispatcher and writer: runs and batches to output, with feed.c and
 *                      segment.c
 * progress.c -- phases, waits, and the thread that shows how far the sort is
 *
 * One lock and one condition guard everything that threads share; jobs last milliseconds, so that
 * neither is contended. Whoever fails prints one message and calls pipeline_fail; all waits end
 * then, and jobs that still run finish without harm.
 */
#ifndef ROCKSORT_PIPELINE_PIPELINE_INTERNAL_H
#define ROCKSORT_PIPELINE_PIPELINE_INTERNAL_H

#include "bam/bgzf_block.h"
#include "input/bam_inputs.h"
#include "output/bam_index.h"
#include "output/bam_writer.h"
#include "pipeline/bam_sort.h"
#include "pipeline/batch.h"
#include "pipeline/mem_budget.h"
#include "store/run_label.h"
#include "util/monotonic.h"

#include <htslib/kstring.h>
#include <pthread.h>
#include <signal.h>

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
    struct batch **batches;
    size_t n, room, n_spilled;
};

struct pipeline {
    /* fixed after init */
    const struct sort_settings *settings;
    struct sort_rules rules;    /* the settings', and what follows from header and files: */
    struct bam_key_template *template_ends;
    struct minhash_index *minhash_index;
    struct bam_index *index;    /* of the output; NULL: none, or htslib makes it */
    struct verification *verification;  /* NULL: no --verify */
    struct mem_budget budget;
    htsThreadPool pool;
    hts_tpool_process *jobs;
    struct bam_inputs *inputs;
    sam_hdr_t *header;
    sam_hdr_t *own_header;      /* of a store that is resumed, or NULL: it is the inputs' */
    const char *header_text;    /* a copy, before the order was put into it; resumed: borrowed */
    int32_t n_refs;
    struct checkpoint_input *input_files;    /* for the store's record; NULL: none is written */
    size_t n_input_files;
    struct input_position start;        /* where reading begins */
    char store_id[CHECKPOINT_ID_BYTES + 1];
    uint32_t *dropped_runs;     /* of a store that is resumed: not part of its chain */
    size_t n_dropped_runs;
    uint8_t *arena;             /* memory of all ordinary batches */
    size_t arena_bytes;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_bool failed;
    atomic_int stop_signal;     /* reading ends because of it, and what came is to be kept */

    /* under the lock */
    struct worker *idle_workers;
    size_t n_jobs;              /* submitted and not done */
    double job_seconds;         /* that workers have spent on jobs */
    struct batch **free_batches;
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
    int *lock_fds;              /* of those that were made here */
    bool is_recorded;           /* the store says what it is */
    bool can_read_again;        /* the inputs, from any record on */
    bool has_all_runs;          /* the store has all records, */
    bool is_loaded;             /* and says so */
    bool input_is_bad;          /* reading it again would fail again */
    bool input_is_cut;          /* after an error or a signal; what came is to be kept */
    unsigned n_durable;         /* runs that another process would find */
    struct output_path output, index_output;    /* their temporary files likewise */

    unsigned n_runs;            /* written, perhaps not ended yet */
    uint32_t next_run, last_run;        /* numbers of runs */
    uint64_t spilled_bytes;     /* ... their raw bytes */
    struct stored_run **ending; /* runs that are to be ended */
    size_t n_ending;
    bool is_ending;             /* one is being ended */
    bool store_closing;
    bool compacting;            /* memory for it was made free */
    double put_seconds;         /* spent in writing runs, and */
    double write_seconds;       /* in ending them, each in its thread */
    double wait_seconds;        /* the spiller waited for that */

    /* spiller; then dispatcher */
    struct run_store *store;
    pthread_t ending_thread;
    bool ending_thread_runs;
    bool waited_in_vain;        /* for a compaction; who ends runs, after that who settles */
    struct codec_facts codec_facts;     /* when the last run was begun: */
    double codec_seconds, codec_put_seconds, codec_write_seconds, codec_wait_seconds;
    double codec_job_seconds;
    size_t open_bytes;          /* sum over runs of their largest block, uncompressed */

    /* under the lock; for progress only */
    enum sort_phase phase;
    double phase_seconds;       /* when it began, by the monotonic clock */
    uint64_t input_bytes;       /* of all inputs as they are stored; 0: unknown */
    uint64_t input_bytes_read;  /* of them; 0: unknown */
    uint64_t input_bytes_before, raw_bytes_before;      /* that an earlier process has read */
    uint64_t output_bytes;      /* written; 0: CRAM */
    uint64_t records_written, raw_bytes_written;

    /* sort_run's thread only */
    struct process_usage phase_began;
    struct progress *progress;  /* NULL: nobody wants to know */

    char **real_scratch_paths;  /* whose syncs may be left out */
    pthread_cond_t sort_is_over;        /* by the monotonic clock */
    pthread_t sync_thread;
    bool sync_thread_runs;
    const char *sync_failed;    /* under the lock: the directory, or NULL; and why */
    int sync_errno;
    atomic_bool stop_syncing;

    bool lost_reader;           /* standard output was closed */
    bool overwrites_input;      /* the output is an input and is written as it stands */
    bool keeps_store;           /* it stays behind */
    struct sort_report *report;
};

/* bam_sort.c */

void free_paths(char **paths);

/* Marks the run as failed and wakes everybody. The caller has printed why. */
void pipeline_fail(struct pipeline *p);
static inline bool pipeline_failed(const struct pipeline *p)
{
    return atomic_load_explicit(&p->failed, memory_order_relaxed);
}
int pipeline_no_memory(struct pipeline *p);     /* message, fail; returns -1 */

/* With the lock held: waits for a change. */
void pipeline_wait(struct pipeline *p);
void pipeline_lock(struct pipeline *p);
void pipeline_unlock(struct pipeline *p);
void pipeline_announce(struct pipeline *p);     /* with the lock held: something changed */

/* Gives the rules what they need from header and files; they are part of the pipeline
   or used until its end. Returns 0, or -1 after a message. */
int complete_rules(struct pipeline *p, struct sort_rules *rules);

/* pool.c */

/* Makes the pool and its workers. Returns 0, or -1 after a message. */
int start_pool(struct pipeline *p);

/* With all jobs done. */
void free_workers(struct pipeline *p);

/* Runs job(arg) in the pool. Returns 0, or -1 after a message. */
int pipeline_submit(struct pipeline *p, void (*job)(struct pipeline *, struct worker *, void *),
                    void *arg);

/* Make room in a worker's arrays. Return 0, or -1 without memory. */
int worker_reserve_raw(struct worker *worker, size_t n_bytes);
int worker_reserve_slices(struct worker *worker, size_t n_slices);

/* signals.c */

struct signal_watch {
    sigset_t before;
    struct sigaction pipe_before;
    pthread_t thread;
};

/* Has the signals that end a run cleaned up after. Returns 0 or an errno. */
int signals_watch(struct pipeline *p, struct signal_watch *watch);

/* With p->over set: from here on signals wait. */
void signals_hold(struct signal_watch *watch);

/* They take their former course, those that have waited, too. */
void signals_restore(const struct signal_watch *watch);

/* After an exception, or without memory, in whatever thread; it may hold the lock already. */
void clean_up_after_exception(void *pipeline);

/* batch_pool.c */

/* Before loading: makes the arena, which is only address space so far. */
int prepare_batches(struct pipeline *p);

/* With all threads and jobs done. */
void release_batches(struct pipeline *p);

/* Waits for a batch to fill; NULL if the pipeline has failed. */
struct batch *take_batch(struct pipeline *p);

/* With the lock held: true if the budget has room for another batch. */
bool may_take_batch(const struct pipeline *p);

/* With the lock held: a batch that nobody uses any more. */
void free_batch(struct pipeline *p, struct batch *batch);

/* With the lock held: takes n batches and their memory away for good, as soon as they are free. */
void retire_batches(struct pipeline *p, unsigned n);

/* With the lock held: gives the memory of free batches back to the kernel. */
void drop_free_batches(struct pipeline *p);

/* load.c */

int load_input(struct pipeline *p);

/* run_ender.c */

/* Opens the store if it is not open. */
int store_open(struct pipeline *p);

/* Closes it and ends its thread. */
void store_close(struct pipeline *p);

/* Removes a temporary directory; then its lock, without which other runs let it be no longer. */
void store_remove_directory(struct pipeline *p, size_t i);

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

/* resume.c */

/* True if the name is one of an input that is a regular file. */
bool resume_is_an_input(const struct pipeline *p, const char *file);

/* When the outputs are chosen: looks whether one of them would destroy an input. */
void resume_look_at_output(struct pipeline *p);

/* True if all batches must be in runs before the merge. */
bool resume_needs_all_runs(const struct pipeline *p);

/* After loading and spilling: the record says so, if everything is in the store. */
int resume_end_load(struct pipeline *p);

/* Before the merge: true if the output may be written. False after a message. */
bool resume_may_write(const struct pipeline *p);

/* After a failure: if it could not say so, mostly for lack of space, it may now. */
void resume_try_record_again(struct pipeline *p);

/* True if what came is to be kept when the input ends with an error. */
bool resume_saves_part(const struct pipeline *p);

/* After such an end: puts all into the store. Returns -1, since the sort has failed. */
int resume_save_part(struct pipeline *p);

/* With the lock held, or all threads done: true if the store is to stay after a failure, or after a
   signal (0: none). */
bool resume_keeps_store(const struct pipeline *p, int signal_number);

/* ... and tells the user what becomes of it. */
void resume_tell(const struct pipeline *p, bool kept);

/* Takes over the store that is resumed: its directories, header, runs. */
int resume_store(struct pipeline *p);

/* True if there is input to be read: always, but for a resumed store that has all. */
bool resume_reads_input(const struct pipeline *p);

/* Has reading go on where the store's runs end. */
int resume_inputs(struct pipeline *p);

/* True for a block of a run that does not count. */
static inline bool resume_drops_block(const struct pipeline *p, const uint8_t *key,
                                      size_t key_bytes)
{
    uint32_t run;
    uint64_t index;
    if (p->n_dropped_runs == 0 || key_bytes <= MERGE_BOUND_TAIL_BYTES) return false;
    merge_bound_position(key, key_bytes, &run, &index);
    for (size_t i = 0; i < p->n_dropped_runs; i++)
        if (p->dropped_runs[i] == run) return true;
    return false;
}

void resume_release(struct pipeline *p);

/* checkpoint_writer.c */

/* Before loading: remembers what the record will say of the inputs and their header. */
int resume_remember_inputs(struct pipeline *p);

/* When the store was made: writes its record. Failing to is no error: there is a warning. */
int resume_begin_store(struct pipeline *p);

/* Writes the record into all directories. Returns 0 if one of them has it, else -1; there is a
   warning unless all have. */
int resume_write_record(struct pipeline *p, enum checkpoint_state state);

/* The same; *written, which other threads look at, tells whether that worked. */
void resume_note_record(struct pipeline *p, enum checkpoint_state state, bool *written);

/* What is remembered of a file besides its path: its size and time of change. */
void resume_describe(const struct stat *st, struct checkpoint_input *input);

/* The same; false if there is no such regular file. */
bool resume_describe_file(const char *path, struct checkpoint_input *input);

/* The output's name, with its index's, for whoever works in another directory, to be freed; NULL
   without memory. Not for standard output. */
char *resume_output_name(const struct pipeline *p);

/* The directories' names for whoever works in another one; for free_paths. NULL without memory. */
char **resume_absolute_paths(const struct pipeline *p);

/* leftovers.c */

/* When the store was made: tells of those that earlier sorts to the same output, or of the same
   inputs, have left beside it. */
void tell_leftovers(const struct pipeline *p);

/* durable.c */

/* When the store was made: lets its data be durable from some time on. Returns 0, or -1 after a
   message. */
int durable_begin(struct pipeline *p);

/* When all phases have ended: if that failed, it is the error of a sort that failed with it; one
   that had all it needed before has its result. */
void durable_tell(struct pipeline *p, int result);

/* When the store is closed: makes it durable if it stays. */
void durable_end(struct pipeline *p);

/* spill.c */

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

/* verify.c: does nothing without --verify */

/* When the header is there: what is to be checked. Returns 0, also if the header claims no order:
   then there is a message, and nothing need be read; or -1 after a message. */
int verify_prepare(struct pipeline *p, bool *nothing_to_check);

/* In a worker: checks a part that is indexed. Fails the pipeline when all is known. */
void verify_part(struct pipeline *p, const struct batch_part *part);

/* After the load, whose result is passed: puts what was found into the report. Returns 0 if that
   is known, else -1. */
int verify_finish(struct pipeline *p, int loaded);
void verify_release(struct pipeline *p);

/* space.c */

/* Warns if temporary data or output of so many bytes of records will not fit their disks. */
void warn_about_space(struct pipeline *p, uint64_t raw_bytes);

/* merge.c */

/* Makes the output's index: BAI if its name ends so, else CSI; that of CRAM is htslib's. Returns 0,
   or -1 after a message. */
int prepare_index(struct pipeline *p);

int merge_to_output(struct pipeline *p);

/* progress.c */

/* By the thread of sort_run, in this order: the sort begins; it goes on to a phase, which may be
   the one it is in; nothing is shown any more; all is done, also what the pipeline held. */
void progress_start(struct pipeline *p);
void progress_enter(struct pipeline *p, enum sort_phase phase);
void progress_stop(struct pipeline *p);
void progress_finish(struct pipeline *p);

/* With the lock held: waits for a change, and adds how long that took to the report. */
void pipeline_wait_for(struct pipeline *p, enum sort_wait what);

/* Without it: adds seconds that were spent in waiting for something else. */
void pipeline_add_wait(struct pipeline *p, enum sort_wait what, double seconds);

#endif
