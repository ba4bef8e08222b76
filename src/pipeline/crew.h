/*
 * crew.h -- the threads of a sort: its workers, the lock that all threads share, and failure.
 *
 * One lock and one condition guard everything that the stages of a sort share. Jobs last
 * milliseconds, and the lock is held for less than a microsecond, so that nothing contends for
 * either. A function that must be called with the lock held says so and calls crew_assert_locked.
 *
 * Failure is part of the crew. The thread that fails prints one message and calls crew_fail. From
 * then on all waits end, and jobs that still run finish without harm.
 *
 * Order of calls: create; start, after signals were blocked, since workers inherit the mask; the
 * rest in any thread; destroy with all other threads and jobs ended.
 */
#ifndef ROCKSORT_PIPELINE_CREW_H
#define ROCKSORT_PIPELINE_CREW_H

#include <htslib/hts.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A thread waits for one of these. The report has the seconds of each. */
enum sort_wait {
    WAIT_READER_INPUT,          /* the reader reads, or htslib decodes for it */
    WAIT_READER_WORKERS,        /* the reader needs a piece that is being inflated or parsed */
    WAIT_READER_MEMORY,         /* the reader needs a free batch: the aligner stalls */
    WAIT_SPILLER_BATCHES,       /* the spiller has nothing to do: too few batches are sorted */
    WAIT_SPILLER_WORKERS,       /* the spiller needs blocks that are being compressed */
    WAIT_SPILLER_RUNS,          /* the spiller needs the ender to end the runs before */
    WAIT_RUNS_DISK,             /* the ender waits for the disk */
    WAIT_DISPATCHER_BLOCKS,     /* the dispatcher needs the next block of the store */
    WAIT_DISPATCHER_SEGMENTS,   /* the dispatcher needs segments to be written */
    WAIT_DISPATCHER_MEMORY,     /* the dispatcher needs memory for blocks */
    WAIT_FEEDERS_QUEUE,         /* the feeders' queues are full: the disk is faster than the rest */
    WAIT_WRITER_SEGMENTS,       /* the writer needs segments to be merged and deflated */
    WAIT_WRITER_OUTPUT,         /* the writer writes (CRAM: and encodes) */
    SORT_N_WAITS
};

/* Memory that jobs of one kind work with and that outlives them. Each worker makes one for itself
   when a job first asks for it, and a job has that of its worker for itself. */
struct scratch_kind {
    size_t n_bytes;                     /* of a struct, which starts as {0} */
    void (*release)(void *scratch);     /* frees what it points to */
};

struct worker;

/* Returns the worker's memory of a kind. */
void *worker_scratch(struct worker *worker, const struct scratch_kind *kind);

struct crew;

/* Returns NULL after a message. */
struct crew *crew_create(void);

/* Starts n_threads workers. Returns 0, or -1 after a message. */
int crew_start(struct crew *crew, unsigned n_threads);

/* NULL is accepted. */
void crew_destroy(struct crew *crew);

/* Returns the pool of the workers, which htslib shares. It has no threads before crew_start. */
htsThreadPool *crew_pool(struct crew *crew);

/* ---- the lock ---- */

void crew_lock(struct crew *crew);
void crew_unlock(struct crew *crew);

/* Like crew_lock, but gives up after so many seconds. Returns true if this thread has the lock
   then. It may have had the lock before. */
bool crew_lock_within(struct crew *crew, unsigned seconds);

/* In builds with sanitizers, ends the process unless this thread has the lock. */
#ifdef ROCKSORT_CHECK_LOCKS
void crew_assert_locked(struct crew *crew);
#else
static inline void crew_assert_locked(const struct crew *crew)
{
    (void)crew;
}
#endif

/* Returns the lock for output_path.h, which holds it while it makes a file. */
pthread_mutex_t *crew_mutex(struct crew *crew);

/* With the lock held, wakes all threads that wait for a change. */
void crew_announce(struct crew *crew);

/* With the lock held, wait for the next change. crew_wait_for also adds the time to a wait. */
void crew_wait(struct crew *crew);
void crew_wait_for(struct crew *crew, enum sort_wait what);

/* Without the lock, adds seconds that were spent in waiting for something else. */
void crew_add_wait(struct crew *crew, enum sort_wait what, double seconds);

/* Copies the seconds of all waits. */
void crew_waits(struct crew *crew, double waits[SORT_N_WAITS]);

/* ---- failure ---- */

/* A thread that has printed why the sort fails calls crew_fail without the lock, or
   crew_fail_locked with it. */
void crew_fail(struct crew *crew);
void crew_fail_locked(struct crew *crew);
bool crew_failed(const struct crew *crew);

/* ---- jobs ---- */

/* Has a worker run job(worker, arg). Never blocks: the caller bounds what is under way. A job is
   CPU work and never waits. Its end is announced. Returns 0, or -1 after a message and
   crew_fail. */
int crew_submit(struct crew *crew, void (*job)(struct worker *worker, void *arg), void *arg);

/* With the lock held, waits until no job is left. */
void crew_wait_for_jobs(struct crew *crew);

/* Waits until no job is left. Without the lock. Returns 0, or -1 if the crew has failed. */
int crew_finish_jobs(struct crew *crew);

/*
 * For jobs that need much memory of their own: as many run at a time as there are slots. A slot is
 * the first member of the struct that a job works with; it starts as {0}. crew_take_slot waits for
 * one of n structs of item_bytes, one after another, that no job has; NULL if the crew has failed.
 * crew_submit_slot has a worker run work(worker, item), unless the crew has failed by then; `work`
 * returns 0, or -1 after a message. Nobody else may use the item until its job has ended. Returns
 * as crew_submit. Without the lock.
 */
struct crew_slot {
    struct crew *crew;
    int (*work)(struct worker *worker, void *item);
    unsigned number;            /* crew_for_each: the number of the job */
    bool is_busy;               /* under the lock */
};
void *crew_take_slot(struct crew *crew, void *items, unsigned n, size_t item_bytes);
int crew_submit_slot(struct crew *crew, struct crew_slot *slot,
                     int (*work)(struct worker *worker, void *item));

/* Has jobs do the work with the numbers 0 to n_jobs - 1, each with one of n items, and waits until
   no job is left. Returns 0, or -1 if the crew has failed. */
int crew_for_each(struct crew *crew, unsigned n_jobs, void *items, unsigned n, size_t item_bytes,
                  int (*work)(struct worker *worker, void *item));

#endif
