/*
 * thread_pool.c -- see thread_pool.h.
 *
 * The mutex detects errors (PTHREAD_MUTEX_ERRORCHECK), because a thread that cleans up after an
 * exception may already hold the lock. It also makes thread_pool_assert_locked simple.
 */
#define _GNU_SOURCE             /* PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP */
#include "os/thread_pool.h"

#include "util/diag.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <assert.h>
#include <errno.h>
#include <htslib/thread_pool.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* Kinds of scratch memory in all phases of a sort. */
enum { MOST_SCRATCH = 8 };

struct worker {
    struct worker *next;
    const struct scratch_kind *kinds[MOST_SCRATCH];     /* NULL after the last one */
    void *scratch[MOST_SCRATCH];
};

struct threads {
    /* fixed after thread_pool_start */
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
    struct threads *threads;
    void (*run)(struct worker *, void *);
    void *arg;
};

/* ---- threads with names ---- */

enum { NAME_BYTES = 16 };       /* as many as Linux keeps */

/* A new thread inherits the name of the thread that starts it, so that thread takes the name for a
   moment. This cannot fail; pthread_setname_np would open a file of /proc. Stores its own name. */
static void take_name(const char *name, char own[NAME_BYTES])
{
    (void)prctl(PR_GET_NAME, own);
    (void)prctl(PR_SET_NAME, name);
}

int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
    char own[NAME_BYTES];
    take_name(name, own);
    int error = pthread_create(thread, NULL, run, arg);
    (void)prctl(PR_SET_NAME, own);
    return error;
}

/* ---- the lock ---- */

void thread_pool_lock(struct threads *threads)
{
    (void)pthread_mutex_lock(&threads->lock);
}

void thread_pool_unlock(struct threads *threads)
{
    (void)pthread_mutex_unlock(&threads->lock);
}

bool thread_pool_lock_within(struct threads *threads, unsigned seconds)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    int error = pthread_mutex_timedlock(&threads->lock, &until);
    return error == 0 || error == EDEADLK;
}

#ifdef ROCKSORT_CHECK_LOCKS
void thread_pool_assert_locked(struct threads *threads)
{
    if (pthread_mutex_lock(&threads->lock) == EDEADLK) return;
    diag_error("a function was called without the lock that it needs; please report this");
    abort();
}
#endif

pthread_mutex_t *thread_pool_mutex(struct threads *threads)
{
    return &threads->lock;
}

void thread_pool_announce(struct threads *threads)
{
    thread_pool_assert_locked(threads);
    (void)pthread_cond_broadcast(&threads->changed);
}

void thread_pool_wait(struct threads *threads)
{
    thread_pool_assert_locked(threads);
    (void)pthread_cond_wait(&threads->changed, &threads->lock);
}

void thread_pool_wait_for(struct threads *threads, enum sort_wait what)
{
    double start = monotonic_seconds();
    thread_pool_wait(threads);
    threads->waits[what] += monotonic_seconds() - start;
}

void thread_pool_add_wait(struct threads *threads, enum sort_wait what, double seconds)
{
    thread_pool_lock(threads);
    threads->waits[what] += seconds;
    thread_pool_unlock(threads);
}

void thread_pool_waits(struct threads *threads, double waits[SORT_N_WAITS])
{
    thread_pool_lock(threads);
    memcpy(waits, threads->waits, sizeof threads->waits);
    thread_pool_unlock(threads);
}

/* ---- failure ---- */

void thread_pool_fail_locked(struct threads *threads)
{
    atomic_store(&threads->failed, true);
    thread_pool_announce(threads);
}

void thread_pool_fail(struct threads *threads)
{
    thread_pool_lock(threads);
    thread_pool_fail_locked(threads);
    thread_pool_unlock(threads);
}

bool thread_pool_failed(const struct threads *threads)
{
    return atomic_load_explicit(&threads->failed, memory_order_relaxed);
}

/* ---- jobs ---- */

static struct worker *take_worker(struct threads *threads)
{
    thread_pool_lock(threads);
    struct worker *worker = threads->idle_workers;
    if (worker) threads->idle_workers = worker->next;
    thread_pool_unlock(threads);
    return worker;
}

static void *run_job(void *arg)
{
    struct job *job = arg;
    struct threads *threads = job->threads;
    struct worker *worker = take_worker(threads);
    job->run(worker, job->arg);
    thread_pool_lock(threads);
    worker->next = threads->idle_workers;
    threads->idle_workers = worker;
    threads->n_jobs--;
    thread_pool_announce(threads);
    thread_pool_unlock(threads);
    free(job);
    return NULL;
}

int thread_pool_submit(struct threads *threads, void (*run)(struct worker *, void *), void *arg)
{
    struct job *job = xmalloc(sizeof *job);
    *job = (struct job){threads, run, arg};
    thread_pool_lock(threads);
    threads->n_jobs++;
    thread_pool_unlock(threads);
    if (hts_tpool_dispatch2(threads->pool.pool, threads->jobs, run_job, job, -1) == 0) return 0;
    diag_error("cannot hand work to a thread: %s; give less with -m", strerror(errno));
    free(job);
    thread_pool_lock(threads);
    threads->n_jobs--;
    thread_pool_fail_locked(threads);
    thread_pool_unlock(threads);
    return -1;
}

int thread_pool_finish_jobs(struct threads *threads)
{
    thread_pool_lock(threads);
    while (threads->n_jobs > 0) thread_pool_wait(threads);
    thread_pool_unlock(threads);
    return thread_pool_failed(threads) ? -1 : 0;
}

static struct thread_pool_slot *idle_slot(void *items, unsigned n, size_t item_bytes)
{
    for (unsigned i = 0; i < n; i++) {
        struct thread_pool_slot *slot = (struct thread_pool_slot *)((char *)items + i * item_bytes);
        if (!slot->is_busy) return slot;
    }
    return NULL;
}

void *thread_pool_take_slot(struct threads *threads, void *items, unsigned n, size_t item_bytes)
{
    struct thread_pool_slot *slot = NULL;
    thread_pool_lock(threads);
    while (!thread_pool_failed(threads) && !(slot = idle_slot(items, n, item_bytes)))
        thread_pool_wait(threads);
    if (slot) slot->is_busy = true;
    thread_pool_unlock(threads);
    return slot;
}

static void run_slot(struct worker *worker, void *arg)
{
    struct thread_pool_slot *slot = arg;
    struct threads *threads = slot->threads;
    if (!thread_pool_failed(threads) && slot->work(worker, slot) < 0) thread_pool_fail(threads);
    thread_pool_lock(threads);
    slot->is_busy = false;      /* the thread pool announces the end of each job */
    thread_pool_unlock(threads);
}

int thread_pool_submit_slot(struct threads *threads, struct thread_pool_slot *slot,
                            int (*work)(struct worker *, void *))
{
    slot->threads = threads;
    slot->work = work;
    return thread_pool_submit(threads, run_slot, slot);
}

int thread_pool_for_each(struct threads *threads, unsigned n_jobs, void *items, unsigned n,
                         size_t item_bytes, int (*work)(struct worker *, void *))
{
    for (unsigned number = 0; number < n_jobs; number++) {
        struct thread_pool_slot *slot = thread_pool_take_slot(threads, items, n, item_bytes);
        if (!slot) break;
        slot->number = number;
        if (thread_pool_submit_slot(threads, slot, work) < 0) break;
    }
    return thread_pool_finish_jobs(threads);
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

/* ---- create and destroy ---- */

struct threads *thread_pool_create(void)
{
    struct threads *threads = xcalloc(1, sizeof *threads);
    threads->lock = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    threads->changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    return threads;
}

int thread_pool_start(struct threads *threads, unsigned n_threads)
{
    int n = (int)n_threads;
    for (int i = 0; i < n; i++) {
        struct worker *worker = xcalloc(1, sizeof *worker);
        worker->next = threads->idle_workers;
        threads->idle_workers = worker;
    }
    char own[NAME_BYTES];
    take_name("worker", own);
    threads->pool.pool = hts_tpool_init(n);
    (void)prctl(PR_SET_NAME, own);
    /* htslib keeps up to 1,000 parsed records, or a CRAM slice, for each place in its queue. */
    threads->pool.qsize = n;
    if (threads->pool.pool)
        threads->jobs = hts_tpool_process_init(threads->pool.pool, 4 * n + 16, 1);
    if (threads->jobs) return 0;
    diag_error("cannot start %d threads: %s; give fewer with -@, or raise the limit "
               "(ulimit -u, -v)", n, strerror(errno));
    return -1;
}

htsThreadPool *thread_pool_hts(struct threads *threads)
{
    return &threads->pool;
}

static void free_worker(struct worker *worker)
{
    for (int i = 0; i < MOST_SCRATCH && worker->kinds[i]; i++) {
        worker->kinds[i]->release(worker->scratch[i]);
        free(worker->scratch[i]);
    }
    free(worker);
}

void thread_pool_destroy(struct threads *threads)
{
    if (!threads) return;
    if (threads->jobs) hts_tpool_process_destroy(threads->jobs);
    if (threads->pool.pool) hts_tpool_destroy(threads->pool.pool);
    while (threads->idle_workers) {
        struct worker *worker = threads->idle_workers;
        threads->idle_workers = worker->next;
        free_worker(worker);
    }
    (void)pthread_cond_destroy(&threads->changed);
    (void)pthread_mutex_destroy(&threads->lock);
    free(threads);
}
