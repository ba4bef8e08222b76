/*
 * crew.c -- see crew.h.
 *
 * The mutex is one that detects errors (PTHREAD_MUTEX_ERRORCHECK). A thread that cleans up after an
 * exception may have the lock already, and asserting that the lock is held needs no bookkeeping.
 */
#include "pipeline/crew.h"

#include "pipeline/thread.h"
#include "util/diag.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <assert.h>
#include <errno.h>
#include <htslib/thread_pool.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Kinds of scratch memory, in all phases of a sort. */
enum { MOST_SCRATCH = 8 };

struct worker {
    struct worker *next;
    const struct scratch_kind *kinds[MOST_SCRATCH];     /* NULL after the last one */
    void *scratch[MOST_SCRATCH];
};

struct crew {
    /* fixed after crew_start */
    htsThreadPool pool;
    hts_tpool_process *jobs;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_bool failed;

    /* under the lock */
    struct worker *idle_workers;
    size_t n_jobs;              /* submitted and not done */
    double waits[SORT_N_WAITS];
};

struct job {
    struct crew *crew;
    void (*run)(struct worker *, void *);
    void *arg;
};

/* ---- the lock ---- */

/* Locking fails only if this thread has the lock already, and unlocking only if it has not. */
static void check(int error, const char *problem)
{
#ifdef ROCKSORT_CHECK_LOCKS
    if (!error) return;
    diag_error("%s; please report this", problem);
    abort();
#else
    (void)error;
    (void)problem;
#endif
}

void crew_lock(struct crew *crew)
{
    check(pthread_mutex_lock(&crew->lock), "a thread takes the lock that it has");
}

void crew_unlock(struct crew *crew)
{
    check(pthread_mutex_unlock(&crew->lock), "a thread gives back a lock that it has not");
}

bool crew_lock_within(struct crew *crew, unsigned seconds)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    int error = pthread_mutex_timedlock(&crew->lock, &until);
    return error == 0 || error == EDEADLK;
}

#ifdef ROCKSORT_CHECK_LOCKS
void crew_assert_locked(struct crew *crew)
{
    if (pthread_mutex_lock(&crew->lock) == EDEADLK) return;
    diag_error("a function was called without the lock that it needs; please report this");
    abort();
}
#endif

pthread_mutex_t *crew_mutex(struct crew *crew)
{
    return &crew->lock;
}

void crew_announce(struct crew *crew)
{
    crew_assert_locked(crew);
    (void)pthread_cond_broadcast(&crew->changed);
}

void crew_wait(struct crew *crew)
{
    crew_assert_locked(crew);
    (void)pthread_cond_wait(&crew->changed, &crew->lock);
}

void crew_wait_for(struct crew *crew, enum sort_wait what)
{
    double start = monotonic_seconds();
    crew_wait(crew);
    crew->waits[what] += monotonic_seconds() - start;
}

void crew_add_wait(struct crew *crew, enum sort_wait what, double seconds)
{
    crew_lock(crew);
    crew->waits[what] += seconds;
    crew_unlock(crew);
}

void crew_waits(struct crew *crew, double waits[SORT_N_WAITS])
{
    crew_lock(crew);
    memcpy(waits, crew->waits, sizeof crew->waits);
    crew_unlock(crew);
}

/* ---- failure ---- */

void crew_fail_locked(struct crew *crew)
{
    atomic_store(&crew->failed, true);
    crew_announce(crew);
}

void crew_fail(struct crew *crew)
{
    crew_lock(crew);
    crew_fail_locked(crew);
    crew_unlock(crew);
}

bool crew_failed(const struct crew *crew)
{
    return atomic_load_explicit(&crew->failed, memory_order_relaxed);
}

/* ---- jobs ---- */

static struct worker *take_worker(struct crew *crew)
{
    crew_lock(crew);
    struct worker *worker = crew->idle_workers;
    if (worker) crew->idle_workers = worker->next;
    crew_unlock(crew);
    return worker;
}

static void *run_job(void *arg)
{
    struct job *job = arg;
    struct crew *crew = job->crew;
    struct worker *worker = take_worker(crew);
    job->run(worker, job->arg);
    crew_lock(crew);
    worker->next = crew->idle_workers;
    crew->idle_workers = worker;
    crew->n_jobs--;
    crew_announce(crew);
    crew_unlock(crew);
    free(job);
    return NULL;
}

int crew_submit(struct crew *crew, void (*run)(struct worker *, void *), void *arg)
{
    struct job *job = xmalloc(sizeof *job);
    *job = (struct job){crew, run, arg};
    crew_lock(crew);
    crew->n_jobs++;
    crew_unlock(crew);
    if (hts_tpool_dispatch2(crew->pool.pool, crew->jobs, run_job, job, -1) == 0) return 0;
    diag_error("cannot hand work to a thread: %s; give less with -m", strerror(errno));
    free(job);
    crew_lock(crew);
    crew->n_jobs--;
    crew_fail_locked(crew);
    crew_unlock(crew);
    return -1;
}

void crew_wait_for_jobs(struct crew *crew)
{
    while (crew->n_jobs > 0) crew_wait(crew);
}

int crew_finish_jobs(struct crew *crew)
{
    crew_lock(crew);
    crew_wait_for_jobs(crew);
    crew_unlock(crew);
    return crew_failed(crew) ? -1 : 0;
}

static struct crew_slot *idle_slot(void *items, unsigned n, size_t item_bytes)
{
    for (unsigned i = 0; i < n; i++) {
        struct crew_slot *slot = (struct crew_slot *)((char *)items + i * item_bytes);
        if (!slot->is_busy) return slot;
    }
    return NULL;
}

void *crew_take_slot(struct crew *crew, void *items, unsigned n, size_t item_bytes)
{
    struct crew_slot *slot = NULL;
    crew_lock(crew);
    while (!crew_failed(crew) && !(slot = idle_slot(items, n, item_bytes))) crew_wait(crew);
    if (slot) slot->is_busy = true;
    crew_unlock(crew);
    return slot;
}

static void run_slot(struct worker *worker, void *arg)
{
    struct crew_slot *slot = arg;
    struct crew *crew = slot->crew;
    if (!crew_failed(crew) && slot->work(worker, slot) < 0) crew_fail(crew);
    crew_lock(crew);
    slot->is_busy = false;      /* the crew announces the end of each job */
    crew_unlock(crew);
}

int crew_submit_slot(struct crew *crew, struct crew_slot *slot,
                     int (*work)(struct worker *, void *))
{
    slot->crew = crew;
    slot->work = work;
    return crew_submit(crew, run_slot, slot);
}

int crew_for_each(struct crew *crew, unsigned n_jobs, void *items, unsigned n, size_t item_bytes,
                  int (*work)(struct worker *, void *))
{
    for (unsigned number = 0; number < n_jobs; number++) {
        struct crew_slot *slot = crew_take_slot(crew, items, n, item_bytes);
        if (!slot) break;
        slot->number = number;
        if (crew_submit_slot(crew, slot, work) < 0) break;
    }
    return crew_finish_jobs(crew);
}

void *worker_scratch(struct worker *worker, const struct scratch_kind *kind)
{
    int i = 0;
    while (worker->kinds[i] && worker->kinds[i] != kind) i++;
    assert(i < MOST_SCRATCH);
    if (!worker->kinds[i]) {
        worker->scratch[i] = xcalloc(1, kind->n_bytes);
        worker->kinds[i] = kind;
    }
    return worker->scratch[i];
}

/* ---- from beginning to end ---- */

static int init_lock(struct crew *crew)
{
    pthread_mutexattr_t checked;
    int error = pthread_mutexattr_init(&checked);
    if (error) return error;
    error = pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    if (!error) error = pthread_mutex_init(&crew->lock, &checked);
    (void)pthread_mutexattr_destroy(&checked);
    if (error) return error;
    error = pthread_cond_init(&crew->changed, NULL);
    if (error) (void)pthread_mutex_destroy(&crew->lock);
    return error;
}

struct crew *crew_create(void)
{
    struct crew *crew = xcalloc(1, sizeof *crew);
    int error = init_lock(crew);
    if (!error) return crew;
    diag_no_thread(error);
    free(crew);
    return NULL;
}

int crew_start(struct crew *crew, unsigned n_threads)
{
    int n = (int)n_threads;
    for (int i = 0; i < n; i++) {
        struct worker *worker = xcalloc(1, sizeof *worker);
        worker->next = crew->idle_workers;
        crew->idle_workers = worker;
    }
    struct thread_name own;
    thread_lend_name(&own, "worker");
    crew->pool.pool = hts_tpool_init(n);
    thread_restore_name(&own);
    /* htslib keeps up to 1,000 parsed records, or a CRAM slice, for each place in its queue. */
    crew->pool.qsize = n;
    if (crew->pool.pool) crew->jobs = hts_tpool_process_init(crew->pool.pool, 4 * n + 16, 1);
    if (crew->jobs) return 0;
    diag_error("cannot start %d threads: %s; give fewer with -@, or raise the limit "
               "(ulimit -u, -v)", n, strerror(errno));
    return -1;
}

htsThreadPool *crew_pool(struct crew *crew)
{
    return &crew->pool;
}

static void free_worker(struct worker *worker)
{
    for (int i = 0; i < MOST_SCRATCH && worker->kinds[i]; i++) {
        worker->kinds[i]->release(worker->scratch[i]);
        free(worker->scratch[i]);
    }
    free(worker);
}

void crew_destroy(struct crew *crew)
{
    if (!crew) return;
    if (crew->jobs) hts_tpool_process_destroy(crew->jobs);
    if (crew->pool.pool) hts_tpool_destroy(crew->pool.pool);
    while (crew->idle_workers) {
        struct worker *worker = crew->idle_workers;
        crew->idle_workers = worker->next;
        free_worker(worker);
    }
    (void)pthread_cond_destroy(&crew->changed);
    (void)pthread_mutex_destroy(&crew->lock);
    free(crew);
}
