/* temp_store.c -- see temp_store.h. */
#include "resume/temp_store.h"

#include "util/diag.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RUNS = 3 };         /* in the queue, which are dirty pages of the page cache */

struct temp_store {
    struct temp_store_settings settings;
    struct run_store *runs;     /* NULL: not open */
    pthread_t thread;           /* the run committer */
    bool thread_runs;

    /* under the lock of the thread pool */
    struct written_run queue[MOST_RUNS];        /* the first one is being committed */
    size_t n_queued;
    bool is_closing;
    bool compacting;            /* memory for compactions was requested */
    struct committer_totals totals;

    /* the run committer; after the last run, the thread that calls temp_store_settle */
    bool waited_too_long;       /* for a compaction that was due */
};

struct temp_store *temp_store_create(const struct temp_store_settings *settings)
{
    struct temp_store *ts = xcalloc(1, sizeof *ts);
    ts->settings = *settings;
    return ts;
}

/* ---- compaction ---- */

/* Between runs: lets the store compact when memory for that is free. If the limit of open files is
   near, does not wait for the memory. */
static int compact_runs(struct temp_store *ts, uint64_t n_runs_expected)
{
    struct threads *threads = ts->settings.threads;
    struct sort_buffer_pool *pool = ts->settings.pool;
    if (!run_store_wants_compaction(ts->runs, n_runs_expected)) return 0;
    unsigned state = run_store_compactions(ts->runs);
    /* With more runs per open file each run is rewritten more often, so makes runs longer. */
    if (!ts->compacting && (state & COMPACTION_LACKS_FILES)) sort_buffer_pool_lengthen_runs(pool);
    struct memory_budget budget;
    sort_buffer_pool_budget(pool, &budget);
    thread_pool_lock(threads);
    /* After a failure sort buffers may be freed at any time. */
    unsigned n = ts->compacting || thread_pool_failed(threads)
                     ? 0 : memory_budget_compaction_buffers(&budget);
    bool ready = sort_buffer_pool_retire(pool, n);
    ts->compacting = true;
    thread_pool_unlock(threads);
    return ready || (state & COMPACTION_IS_CROWDED) ? run_store_compact(ts->runs) : 0;
}

/* Waits while a compaction runs or is due. With only_if_crowded: waits until one that is due has
   started, and then only while there are too many files and waiting helps. */
static void wait_for_compaction(struct temp_store *ts, bool only_if_crowded)
{
    /* RocksDB takes the newest files. If another run is committed before compaction starts, as when
       RocksDB's thread gets no CPU on a busy machine, groups of older runs would remain that are
       too small for a compaction. Polls repeatedly, because a compaction may start or end between
       the two questions. If a due compaction never starts, run_db_compaction_is_due is wrong for
       this RocksDB: then later waits are short. */
    enum { LEAST_POLL_US = 1000, MOST_POLL_US = 16000, QUIET_POLLS = 3, LATE_POLLS = 60000 };
    int quiet = 0, late = 0, most_late = ts->waited_too_long ? QUIET_POLLS : LATE_POLLS;
    /* Compactions of small runs take milliseconds, and there may be thousands. */
    unsigned poll_us = LEAST_POLL_US;
    while (quiet < QUIET_POLLS && late < most_late && !thread_pool_failed(ts->settings.threads)) {
        unsigned state = run_store_compactions(ts->runs);
        bool is_running = state & COMPACTION_IS_RUNNING;
        bool is_due = !is_running && (state & COMPACTION_IS_DUE);
        if (only_if_crowded && !is_due && !(state & COMPACTION_IS_CROWDED)) break;
        quiet = is_running || is_due ? 0 : quiet + 1;
        late = is_due ? late + 1 : 0;
        (void)usleep(is_due ? LEAST_POLL_US : poll_us);
        if (poll_us < MOST_POLL_US) poll_us *= 2;
    }
    if (late == LATE_POLLS) ts->waited_too_long = true;
}

/* ---- the run committer ---- */

/* Commits a run, or drops it after a failure. */
static void commit_run(struct temp_store *ts, const struct written_run *run)
{
    struct threads *threads = ts->settings.threads;
    double start = monotonic_seconds();
    if (thread_pool_failed(threads)) {
        run_store_abandon_run(run->stored);
        return;
    }
    int r = run_store_end_run(run->stored);
    double seconds = monotonic_seconds() - start;
    thread_pool_lock(threads);
    ts->totals.end_seconds += seconds;
    if (r == 0) ts->totals.raw_bytes += run->raw_bytes;
    if (r == 0) ts->totals.n_of_codec[run->codec]++;
    thread_pool_unlock(threads);
    if (r == 0 && !thread_pool_failed(threads)) r = compact_runs(ts, run->n_runs_expected);
    if (r == 0 && ts->compacting) wait_for_compaction(ts, true);
    if (r < 0) thread_pool_fail(threads);
}

static void *commit_runs(void *arg)
{
    struct temp_store *ts = arg;
    struct threads *threads = ts->settings.threads;
    thread_pool_lock(threads);
    for (;;) {
        while (ts->n_queued == 0 && !ts->is_closing) thread_pool_wait(threads);
        if (ts->n_queued == 0) break;
        struct written_run run = ts->queue[0];
        thread_pool_unlock(threads);
        commit_run(ts, &run);
        unsigned n_durable = run_store_n_durable(ts->runs);
        thread_pool_lock(threads);
        ts->totals.n_durable = n_durable;
        ts->n_queued--;
        memmove(ts->queue, ts->queue + 1, ts->n_queued * sizeof *ts->queue);
        thread_pool_announce(threads);
    }
    thread_pool_unlock(threads);
    return NULL;
}

int temp_store_take(struct temp_store *ts, const struct written_run *run)
{
    struct threads *threads = ts->settings.threads;
    double start = monotonic_seconds();
    thread_pool_lock(threads);
    while (ts->n_queued == MOST_RUNS && !thread_pool_failed(threads)) thread_pool_wait(threads);
    ts->totals.wait_seconds += monotonic_seconds() - start;
    bool failed = thread_pool_failed(threads);
    if (!failed) ts->queue[ts->n_queued++] = *run;
    thread_pool_announce(threads);
    thread_pool_unlock(threads);
    if (failed) run_store_abandon_run(run->stored);
    return failed ? -1 : 0;
}

int temp_store_drain(struct temp_store *ts)
{
    struct threads *threads = ts->settings.threads;
    thread_pool_lock(threads);
    while (ts->n_queued > 0 && !thread_pool_failed(threads)) thread_pool_wait(threads);
    thread_pool_unlock(threads);
    if (thread_pool_failed(threads)) return -1;
    return ts->runs ? run_store_flush(ts->runs) : 0;
}

int temp_store_settle(struct temp_store *ts)
{
    if (temp_store_drain(ts) < 0) return -1;
    if (!ts->compacting) return 0;
    wait_for_compaction(ts, false);
    if (run_store_settle(ts->runs) < 0) return -1;
    wait_for_compaction(ts, false);
    return thread_pool_failed(ts->settings.threads) ? -1 : 0;
}

struct committer_totals *temp_store_totals(struct temp_store *ts)
{
    thread_pool_assert_locked(ts->settings.threads);
    return &ts->totals;
}

/* ---- opening and closing ---- */

static int open_databases(struct temp_store *ts, const struct temp_dirs *dirs)
{
    const struct temp_store_settings *s = &ts->settings;
    struct memory_budget budget;
    struct load_counts counts;
    sort_buffer_pool_budget(s->pool, &budget);
    load_totals_look(s->totals, &counts);
    const struct run_store_settings settings = {
        .dirs = dirs->paths,
        .n_dirs = dirs->n,
        .n_closed_dirs = dirs->n_closed,
        .n_lanes = s->sort->resumed ? s->sort->resumed->file.n_lanes : 0,
        .existing = s->sort->resumed != NULL,
        .read_only = !s->reads_input,
        .compaction = s->sort->compaction,
        .long_keys = sort_order_has_long_keys(s->sort->rules.order),
        .input_bytes = counts.expected_bytes,
        .budget = &budget,
    };
    ts->runs = run_store_create(&settings);
    if (!ts->runs) return -1;
    struct run_store_disks disks;
    run_store_look(ts->runs, &disks);
    /* Each read of a run in the merge is a seek: fewer, longer runs need fewer seeks. */
    if (disks.slow_to_seek) sort_buffer_pool_lengthen_runs(s->pool);
    return 0;
}

int temp_store_open(struct temp_store *ts)
{
    struct checkpoint_writer *checkpoint = ts->settings.checkpoint;
    struct temp_dirs dirs;
    if (ts->runs) return 0;
    if (checkpoint_writer_make_directories(checkpoint, &dirs) < 0 || open_databases(ts, &dirs) < 0)
        return -1;
    int error = thread_start(&ts->thread, "run committer", commit_runs, ts);
    ts->thread_runs = error == 0;
    if (error) diag_no_thread(error);
    return error ? -1 : checkpoint_writer_begin(checkpoint, run_store_n_lanes(ts->runs));
}

struct run_store *temp_store_runs(const struct temp_store *ts)
{
    return ts->runs;
}

void temp_store_close(struct temp_store *ts, bool directories_stay,
                      struct run_store_stats *stats)
{
    if (ts->thread_runs) {
        thread_pool_lock(ts->settings.threads);
        ts->is_closing = true;
        thread_pool_announce(ts->settings.threads);
        thread_pool_unlock(ts->settings.threads);
        (void)pthread_join(ts->thread, NULL);
    }
    if (ts->runs) run_store_stats(ts->runs, stats);
    /* Runs that have ended may not be admitted yet. */
    if (ts->runs && directories_stay) (void)run_store_flush(ts->runs);
    run_store_destroy(ts->runs);
    ts->runs = NULL;
    ts->thread_runs = false;
}

void temp_store_destroy(struct temp_store *ts)
{
    free(ts);
}
