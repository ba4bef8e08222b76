/* temp_store.c -- see temp_store.h. */
#include "spill/temp_store.h"

#include "util/xalloc.h"

#include <stdlib.h>

struct temp_store {
    struct temp_store_settings settings;
    struct run_store *runs;
    struct temp_dirs dirs;      /* of the open store */
    struct run_committer *committer;    /* set under the lock of the thread pool */
};

struct temp_store *temp_store_create(const struct temp_store_settings *settings)
{
    struct temp_store *ts = xcalloc(1, sizeof *ts);
    ts->settings = *settings;
    return ts;
}

/* Returns the resources that the databases may plan with, under this budget. */
static struct run_store_means plan_means(uint64_t expected_bytes,
                                         const struct memory_budget *budget)
{
    return (struct run_store_means){
        .n_runs_expected = memory_budget_expect_runs(budget, expected_bytes, 0, 0),
        .scan_bytes = memory_budget_scan_bytes(budget),
        .compaction_bytes = memory_budget_compaction_bytes(budget),
    };
}

static int open_databases(struct temp_store *ts)
{
    const struct temp_store_settings *s = &ts->settings;
    struct memory_budget budget, long_runs;
    sort_buffer_pool_budget(s->pool, &budget);
    long_runs = budget;
    memory_budget_lengthen_runs(&long_runs);
    struct load_counts counts;
    load_totals_look(s->totals, &counts);
    const struct run_store_settings settings = {
        .dirs = ts->dirs.paths,
        .n_dirs = ts->dirs.n,
        .n_closed_dirs = ts->dirs.n_closed,
        .n_lanes = s->n_lanes,
        .existing = s->n_lanes > 0,
        .read_only = !s->reads_input,
        .compaction = s->compaction,
        .long_keys = s->long_keys,
        .input_bytes = counts.expected_bytes,
        .means = plan_means(counts.expected_bytes, &budget),
        .slow_means = plan_means(counts.expected_bytes, &long_runs),
    };
    ts->runs = run_store_create(&settings);
    if (!ts->runs) return -1;
    struct run_store_disks disks;
    run_store_look(ts->runs, &disks);
    /* Each read of a run in the merge is a seek: fewer, longer runs need fewer seeks. */
    if (disks.slow_to_seek) sort_buffer_pool_lengthen_runs(s->pool);
    return 0;
}

static int start_committer(struct temp_store *ts)
{
    struct threads *threads = ts->settings.threads;
    struct run_committer *committer = run_committer_create(threads, ts->settings.pool, ts->runs);
    thread_pool_lock(threads);
    ts->committer = committer;
    thread_pool_unlock(threads);
    return committer ? 0 : -1;
}

int temp_store_open(struct temp_store *ts)
{
    const struct temp_store_hooks *hooks = &ts->settings.hooks;
    if (ts->runs) return 0;
    if (hooks->make_directories(hooks->arg, &ts->dirs) < 0 || open_databases(ts) < 0 ||
        start_committer(ts) < 0)
        return -1;
    return hooks->is_open(hooks->arg, run_store_n_lanes(ts->runs));
}

const struct temp_dirs *temp_store_dirs(const struct temp_store *ts)
{
    return &ts->dirs;
}

bool temp_store_needs_all_runs(const struct temp_store *ts)
{
    return ts->settings.hooks.needs_all_runs(ts->settings.hooks.arg);
}

struct run_store *temp_store_runs(const struct temp_store *ts)
{
    return ts->runs;
}

struct run_committer *temp_store_committer(const struct temp_store *ts)
{
    return ts->committer;
}

unsigned temp_store_n_durable(const struct temp_store *ts)
{
    thread_pool_assert_locked(ts->settings.threads);
    return ts->committer ? run_committer_totals(ts->committer)->n_durable : 0;
}

void temp_store_set_before(struct temp_store *ts, unsigned n_runs, uint64_t raw_bytes)
{
    thread_pool_lock(ts->settings.threads);
    run_committer_totals(ts->committer)->n_durable = n_runs;
    run_committer_totals(ts->committer)->raw_bytes = raw_bytes;
    thread_pool_unlock(ts->settings.threads);
}

void temp_store_close(struct temp_store *ts, bool directories_stay,
                      struct run_store_stats *stats)
{
    run_committer_close(ts->committer);
    if (ts->runs) run_store_stats(ts->runs, stats);
    /* Runs that have ended may not be admitted yet. */
    if (ts->runs && directories_stay) (void)run_store_flush(ts->runs);
    run_store_destroy(ts->runs);
    ts->runs = NULL;
}

void temp_store_destroy(struct temp_store *ts)
{
    if (!ts) return;
    run_committer_destroy(ts->committer);
    free(ts);
}
