/*
 * thread_pool.h -- runs jobs in worker threads; also holds the lock that all threads of a sort
 * share, and its failure flag.
 *
 * One lock and one condition guard what the stages of a sort share. Jobs last milliseconds, and the
 * lock is held for less than a microsecond, so there is no contention. A function that needs the
 * lock says so and calls thread_pool_assert_locked.
 *
 * The thread that fails prints one message and calls thread_pool_fail. From then on all waits end,
 * and running jobs finish without harm.
 *
 * Order of calls: create; start, after signals were blocked, because workers inherit the mask; the
 * others in any thread; destroy when all other threads and jobs have ended.
 */
#ifndef ROCKSORT_OS_THREAD_POOL_H
#define ROCKSORT_OS_THREAD_POOL_H

#include <htslib/hts.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What threads wait for. The report prints the seconds of each. */
enum sort_wait {
    WAIT_READER_INPUT,        /* the reader reads, or htslib decodes for it */
    WAIT_READER_WORKERS,      /* the reader needs a piece that is being inflated or parsed */
    WAIT_READER_MEMORY,       /* the reader needs a free sort buffer: the aligner stalls */
    WAIT_SPILLER_BUFFERS,     /* the spiller needs more sorted sort buffers */
    WAIT_SPILLER_WORKERS,     /* the spiller needs blocks that are being compressed */
    WAIT_SPILLER_RUNS,        /* the spiller needs the run committer to commit earlier runs */
    WAIT_RUNS_DISK,           /* the run committer waits for the disk */
    WAIT_DISPATCHER_BLOCKS,   /* the dispatcher needs the next block of the store */
    WAIT_DISPATCHER_CHUNKS,   /* the dispatcher needs output chunks to be written */
    WAIT_DISPATCHER_MEMORY,   /* the dispatcher needs memory for blocks */
    WAIT_RUN_READERS_QUEUE,   /* the run readers' queues are full: the disk is not the limit */
    WAIT_WRITER_CHUNKS,       /* the writer needs output chunks to be merged and deflated */
    WAIT_WRITER_OUTPUT,       /* the writer writes (CRAM: and encodes) */
    SORT_N_WAITS
};

/* Scratch memory of the jobs of one kind. Each worker keeps its own, allocated when a job first
   asks for it; it outlives the job, and only one job uses it at a time. */
struct scratch_kind {
    size_t n_bytes;                     /* of a struct, which starts as {0} */
    void (*release)(void *scratch);     /* frees what it points to */
};

struct worker;

/* Returns the worker's memory of a kind. */
void *worker_scratch(struct worker *worker, const struct scratch_kind *kind);

struct threads;

struct threads *thread_pool_create(void);

/* Starts n_threads workers. Returns 0, or -1 after a message. */
int thread_pool_start(struct threads *threads, unsigned n_threads);

/* Accepts NULL. */
void thread_pool_destroy(struct threads *threads);

/* Returns the pool of the workers, which htslib shares. It has no threads before thread_pool_start.
 */
htsThreadPool *thread_pool_hts(struct threads *threads);

/* Starts a thread with a name of at most 15 bytes, so that `top -H` shows which stage works;
   bench/scaling.py knows the names. Returns 0 or an error number (pthread_create). */
int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);

/* ---- the lock ---- */

void thread_pool_lock(struct threads *threads);
void thread_pool_unlock(struct threads *threads);

/* Like thread_pool_lock, but gives up after some seconds. True if this thread then has the lock; it
   may have had it before. */
bool thread_pool_lock_within(struct threads *threads, unsigned seconds);

/* In builds with sanitizers, ends the process unless this thread has the lock. */
#ifdef ROCKSORT_CHECK_LOCKS
void thread_pool_assert_locked(struct threads *threads);
#else
static inline void thread_pool_assert_locked(const struct threads *threads)
{
    (void)threads;
}
#endif

/* Returns the lock for output_path.h, which holds it while it makes a file. */
pthread_mutex_t *thread_pool_mutex(struct threads *threads);

/* With the lock held, wakes all threads that wait for a change. */
void thread_pool_announce(struct threads *threads);

/* With the lock held, wait for the next change. thread_pool_wait_for also adds the time to a wait.
 */
void thread_pool_wait(struct threads *threads);
void thread_pool_wait_for(struct threads *threads, enum sort_wait what);

/* Without the lock, adds seconds to a wait. */
void thread_pool_add_wait(struct threads *threads, enum sort_wait what, double seconds);

/* Copies the seconds of all waits. */
void thread_pool_waits(struct threads *threads, double waits[SORT_N_WAITS]);

/* ---- failure ---- */

/* A thread that has printed why the sort fails calls thread_pool_fail without the lock, or
   thread_pool_fail_locked with it. */
void thread_pool_fail(struct threads *threads);
void thread_pool_fail_locked(struct threads *threads);
bool thread_pool_failed(const struct threads *threads);

/* ---- jobs ---- */

/* Makes a worker run job(worker, arg). Never blocks: the caller limits the number of jobs. A job is
   CPU work and never waits. The pool announces its end. Returns 0, or -1 after a message and
   thread_pool_fail. */
int thread_pool_submit(struct threads *threads, void (*job)(struct worker *worker, void *arg),
                       void *arg);

/* Waits until no job is left. Without the lock. Returns 0, or -1 if the thread pool has failed. */
int thread_pool_finish_jobs(struct threads *threads);

/*
 * For jobs that need much memory: each job has an item, and the number of items limits that of
 * jobs. An item begins with a slot, which starts as {0}. thread_pool_take_slot waits until one of n
 * items of item_bytes is free, and returns it, or NULL if the thread pool has failed.
 * thread_pool_submit_slot makes a worker run work(worker, item), unless the thread pool has failed
 * by then, and returns like thread_pool_submit. `work` returns 0, or -1 after a message. The item
 * is free again when the job has ended. Without the lock.
 */
struct thread_pool_slot {
    struct threads *threads;
    int (*work)(struct worker *worker, void *item);
    unsigned number;            /* thread_pool_for_each: the number of the job */
    bool is_busy;               /* under the lock */
};
void *thread_pool_take_slot(struct threads *threads, void *items, unsigned n, size_t item_bytes);
int thread_pool_submit_slot(struct threads *threads, struct thread_pool_slot *slot,
                            int (*work)(struct worker *worker, void *item));

/* Runs the jobs 0 to n_jobs - 1, each with one of n items, and waits until no job is left. Returns
   0, or -1 if the thread pool has failed. */
int thread_pool_for_each(struct threads *threads, unsigned n_jobs, void *items, unsigned n,
                         size_t item_bytes, int (*work)(struct worker *worker, void *item));

#endif
