/* run_committer.c -- see run_committer.h. */
#include "spill/run_committer.h"

#include "os/thread_pool.h"
#include "util/diag.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_WAITING = 2 };      /* queued runs, which are dirty pages of the page cache */

struct run_committer {
    /* fixed after init */
    struct threads *threads;
    struct sort_buffer_pool *pool;
    struct run_store *store;
    pthread_t thread;
    bool thread_runs;

    /* under the lock of the thread pool */
    struct written_run waiting[MOST_WAITING];
    size_t n_waiting;
    bool is_ending;             /* a run is being committed */
    bool is_closing;
    bool compacting;            /* memory for compactions was requested */
    struct committer_totals totals;

    /* the thread; after the last run, the thread that calls run_committer_settle */
    bool waited_in_vain;        /* for a compaction */
    bool waited_too_long;       /* for one that was due */
};

/* ---- compaction ---- */

/* Between runs: lets the store compact when memory for that is free. If the limit of open files is
   near, does not wait for the memory. */
static int compact_runs(struct run_committer *committer, uint64_t n_runs_expected)
{
    struct run_store *store = committer->store;
    if (run_store_is_compacting(store)) committer->waited_in_vain = false;
    if (!run_store_wants_compaction(store, n_runs_expected, committer->waited_in_vain)) return 0;
    /* With more runs per open file each run is rewritten more often, so makes runs longer. */
    if (!committer->compacting && run_store_lacks_files(store))
        sort_buffer_pool_lengthen_runs(committer->pool);
    struct memory_budget budget;
    sort_buffer_pool_budget(committer->pool, &budget);
    thread_pool_lock(committer->threads);
    /* After a failure sort buffers may be freed at any time. */
    unsigned n = committer->compacting || thread_pool_failed(committer->threads)
                     ? 0 : memory_budget_compaction_buffers(&budget);
    bool ready = sort_buffer_pool_retire(committer->pool, n);
    committer->compacting = true;
    thread_pool_unlock(committer->threads);
    return ready || run_store_is_crowded(store) ? run_store_compact(store) : 0;
}

/* Waits while a compaction runs or is due. With only_if_crowded: waits until one that is due has
   started, and then only while there are too many files and waiting helps. */
static void wait_for_compaction(struct run_committer *committer, bool only_if_crowded)
{
    /* RocksDB takes the newest files. If another run is committed before compaction starts, as when
       RocksDB's thread gets no CPU on a busy machine, groups of older runs would remain that are
       too small for a compaction. Polls repeatedly, because a compaction may start or end between
       the two questions. If a due compaction never starts, compaction_will_begin is wrong for this
       RocksDB: then later waits are short. */
    enum { LEAST_POLL_US = 1000, MOST_POLL_US = 16000, QUIET_POLLS = 3, LATE_POLLS = 60000 };
    struct run_store *store = committer->store;
    int quiet = 0, late = 0, most_late = committer->waited_too_long ? QUIET_POLLS : LATE_POLLS;
    /* Compactions of small runs take milliseconds, and there may be thousands. */
    unsigned poll_us = LEAST_POLL_US;
    bool in_vain = true;
    while (quiet < QUIET_POLLS && late < most_late && !thread_pool_failed(committer->threads)) {
        bool is_running = run_store_is_compacting(store);
        bool is_due = !is_running && run_store_compaction_is_due(store);
        if (only_if_crowded && !is_due && !run_store_is_crowded(store)) {
            in_vain = false;
            break;
        }
        quiet = is_running || is_due ? 0 : quiet + 1;
        late = is_due ? late + 1 : 0;
        if (is_running) in_vain = false;
        (void)usleep(is_due ? LEAST_POLL_US : poll_us);
        if (poll_us < MOST_POLL_US) poll_us *= 2;
    }
    if (late == LATE_POLLS) committer->waited_too_long = true;
    committer->waited_in_vain = in_vain;
}

/* ---- the thread ---- */

/* With the lock held: takes the oldest run from the queue. */
static struct written_run take_waiting(struct run_committer *committer)
{
    struct written_run run = committer->waiting[0];
    committer->n_waiting--;
    memmove(committer->waiting, committer->waiting + 1,
            committer->n_waiting * sizeof *committer->waiting);
    committer->is_ending = true;
    thread_pool_announce(committer->threads);
    return run;
}

/* Commits a run, or drops it after a failure. */
static void end_run(struct run_committer *committer, const struct written_run *run)
{
    double start = monotonic_seconds();
    if (thread_pool_failed(committer->threads)) {
        run_store_abandon_run(run->stored);
        return;
    }
    int r = run_store_end_run(run->stored);
    double seconds = monotonic_seconds() - start;
    thread_pool_lock(committer->threads);
    committer->totals.end_seconds += seconds;
    if (r == 0) committer->totals.raw_bytes += run->raw_bytes;
    if (r == 0) committer->totals.n_of_codec[run->codec]++;
    thread_pool_unlock(committer->threads);
    if (r == 0 && !thread_pool_failed(committer->threads))
        r = compact_runs(committer, run->n_runs_expected);
    if (r == 0 && committer->compacting) wait_for_compaction(committer, true);
    if (r < 0) thread_pool_fail(committer->threads);
}

static void *end_runs(void *arg)
{
    struct run_committer *committer = arg;
    thread_pool_lock(committer->threads);
    for (;;) {
        while (committer->n_waiting == 0 && !committer->is_closing)
            thread_pool_wait(committer->threads);
        if (committer->n_waiting == 0) break;
        struct written_run run = take_waiting(committer);
        thread_pool_unlock(committer->threads);
        end_run(committer, &run);
        unsigned n_durable = run_store_n_durable(committer->store);
        thread_pool_lock(committer->threads);
        committer->totals.n_durable = n_durable;
        committer->is_ending = false;
        thread_pool_announce(committer->threads);
    }
    thread_pool_unlock(committer->threads);
    return NULL;
}

/* ---- callers ---- */

struct run_committer *run_committer_create(struct threads *threads, struct sort_buffer_pool *pool,
                                           struct run_store *store)
{
    struct run_committer *committer = xcalloc(1, sizeof *committer);
    *committer = (struct run_committer){.threads = threads, .pool = pool, .store = store};
    int error = thread_start(&committer->thread, "run committer", end_runs, committer);
    committer->thread_runs = error == 0;
    if (!error) return committer;
    diag_no_thread(error);
    free(committer);
    return NULL;
}

int run_committer_take(struct run_committer *committer, const struct written_run *run)
{
    double start = monotonic_seconds();
    thread_pool_lock(committer->threads);
    while (committer->n_waiting == MOST_WAITING && !thread_pool_failed(committer->threads))
        thread_pool_wait(committer->threads);
    committer->totals.wait_seconds += monotonic_seconds() - start;
    bool failed = thread_pool_failed(committer->threads);
    if (!failed) committer->waiting[committer->n_waiting++] = *run;
    thread_pool_announce(committer->threads);
    thread_pool_unlock(committer->threads);
    if (failed) run_store_abandon_run(run->stored);
    return failed ? -1 : 0;
}

int run_committer_drain(struct run_committer *committer)
{
    thread_pool_lock(committer->threads);
    while ((committer->n_waiting > 0 || committer->is_ending) &&
           !thread_pool_failed(committer->threads))
        thread_pool_wait(committer->threads);
    thread_pool_unlock(committer->threads);
    return thread_pool_failed(committer->threads) ? -1 : run_store_flush(committer->store);
}

int run_committer_settle(struct run_committer *committer)
{
    if (run_committer_drain(committer) < 0) return -1;
    if (!committer->compacting) return 0;
    wait_for_compaction(committer, false);
    if (run_store_settle(committer->store) < 0) return -1;
    wait_for_compaction(committer, false);
    return thread_pool_failed(committer->threads) ? -1 : 0;
}

void run_committer_close(struct run_committer *committer)
{
    if (!committer || !committer->thread_runs) return;
    thread_pool_lock(committer->threads);
    committer->is_closing = true;
    thread_pool_announce(committer->threads);
    thread_pool_unlock(committer->threads);
    (void)pthread_join(committer->thread, NULL);
    committer->thread_runs = false;
}

void run_committer_destroy(struct run_committer *committer)
{
    run_committer_close(committer);
    free(committer);
}

struct committer_totals *run_committer_totals(struct run_committer *committer)
{
    thread_pool_assert_locked(committer->threads);
    return &committer->totals;
}
