/* spiller.c -- see spiller.h. */
#include "sort/spiller.h"

#include "os/thread_pool.h"
#include "sort/planner.h"
#include "spill/memory_budget.h"
#include "spill/run_writer.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>

struct spiller {
    struct spill_settings settings;
    enum temp_codec codec;      /* of the last run, and the reason if the sort chooses it */
    enum codec_reason codec_reason;
    pthread_t thread;
    bool space_is_checked;
    struct spill_totals totals; /* under the lock of the thread pool */
};

/* Makes the label of the next run from its sort buffers. */
static struct run_label make_label(const struct spill_totals *before,
                                   struct sort_buffer *const *buffers, size_t n)
{
    struct run_label label = {.run = before->next_run, .before = before->last_run,
                              .end = buffers[n - 1]->end};
    for (size_t i = 0; i < n; i++) {
        content_sum_join(&label.sum, &buffers[i]->sum);
        label.any_placed |= buffers[i]->any_placed;
    }
    return label;
}

/* Estimates the uncompressed bytes still to be spilled. If the size of the input is unknown, or -s
   was too small, assumes ten times the bytes read so far. */
static uint64_t bytes_to_spill(const struct sort_settings *settings,
                               const struct load_counts *counts, uint64_t spilled)
{
    uint64_t expected = counts->expected_bytes;
    bool was_told = settings->input_bytes > 0;
    if (expected == 0 || (was_told && expected <= spilled)) expected = 10 * counts->sum.n_bytes;
    return expected > spilled ? expected - spilled : 0;
}

/* Chooses the codec before the first run; if that is none, checks before each run whether there is
   still enough space for it. */
static enum temp_codec choose_codec(struct spiller *spiller, const struct load_counts *counts,
                                    uint64_t spilled, struct run_store *store)
{
    const struct sort_settings *sort = spiller->settings.sort;
    if (!sort->codec_auto) return sort->codec;
    if (spiller->codec == TEMP_CODEC_NONE) {
        struct run_store_disks disks;
        run_store_look(store, &disks);
        spiller->codec = codec_choose(&disks, sort->n_threads,
                                      bytes_to_spill(sort, counts, spilled),
                                      &spiller->codec_reason);
    }
    return spiller->codec;
}

/* A run to be written, and how many runs are expected in all. */
struct planned_run {
    struct run_writer_settings settings;
    uint64_t n_runs_expected;
};

/* Chooses codec, files and block size of the run. Passes the estimate of remaining bytes to the
   store. */
static void plan_run(struct spiller *spiller, const struct spill_totals *before,
                     struct planned_run *run)
{
    struct run_writer_settings *s = &run->settings;
    const struct memory_budget *budget = &s->budget;
    struct load_counts counts;
    load_totals_look(spiller->settings.totals, &counts);
    uint64_t expected = counts.expected_bytes, done = before->raw_bytes;
    uint64_t run_bytes = s->label.sum.n_bytes;
    s->codec = choose_codec(spiller, &counts, done, s->store);
    run_store_expect(s->store, done, expected > done ? expected - done : 0);
    uint64_t n_expected = memory_budget_expect_runs(budget, expected, before->n_runs, done);
    uint64_t n_likely = n_expected > before->n_runs ? n_expected : 2 * (before->n_runs + 1UL);
    s->n_files =
        memory_budget_run_files(budget, run_bytes, n_likely, run_store_most_files(s->store));
    s->block_bytes = memory_budget_block_bytes(budget, before->n_runs * s->n_files,
                                               (unsigned)n_expected * s->n_files);
    /* The estimate includes this run: it is used when the run has ended. */
    run->n_runs_expected =
        memory_budget_expect_runs(budget, expected, before->n_runs + 1, done + run_bytes);
}

/* Warns if there is too little space; checks only once in a sort. Estimates the need from n sorted
   sort buffers that are in no run. */
static void check_space(struct spiller *spiller, struct run_store *store,
                        struct sort_buffer *const *buffers, size_t n)
{
    const struct spill_settings *s = &spiller->settings;
    struct load_counts counts;
    struct memory_budget budget;
    struct run_store_disks disks;
    struct plan plan;
    load_totals_look(s->totals, &counts);
    uint64_t expected_bytes = counts.is_loading ? counts.expected_bytes : counts.sum.n_bytes;
    if (spiller->space_is_checked || expected_bytes == 0) return;
    spiller->space_is_checked = true;
    sort_buffer_pool_budget(s->pool, &budget);
    planner_begin(&plan, s->sort, &budget);
    plan.expected_bytes = expected_bytes;
    plan.size_is_known = true;
    struct temp_dirs dirs = {.n = 0};
    if (store) dirs = checkpoint_writer_directories(s->checkpoint);
    planner_look_at_space(&plan, dirs.paths, dirs.n, s->output->final, s->also->final);
    if (store) {
        run_store_look(store, &disks);
        planner_set_disks(&plan, &disks, (unsigned)dirs.n, run_store_n_lanes(store));
    }
    planner_warn(&plan, buffers, n);
}

/* Writes n sorted sort buffers as one run, and hands it to the run committer. */
static int spill_run(struct spiller *spiller, struct sort_buffer *const *buffers, size_t n)
{
    const struct spill_settings *s = &spiller->settings;
    struct spill_totals totals;
    if (temp_store_open(s->store) < 0) return -1;
    spill_look(spiller, &totals);
    struct planned_run planned = {.settings = {
        .threads = s->threads,
        .rules = s->rules,
        .store = temp_store_runs(s->store),
        .observers = s->observers,
        .label = make_label(&totals, buffers, n),
        .record_growth = s->record_growth,
    }};
    sort_buffer_pool_budget(s->pool, &planned.settings.budget);
    plan_run(spiller, &totals, &planned);
    if (totals.n_runs == 0) check_space(spiller, planned.settings.store, buffers, n);
    struct written_run written = {.raw_bytes = planned.settings.label.sum.n_bytes,
                                  .codec = planned.settings.codec,
                                  .n_runs_expected = planned.n_runs_expected};
    size_t open_bytes;
    int r = run_writer_write(&planned.settings, buffers, n, &written.stored, &open_bytes);
    if (r == 0) r = temp_store_take(s->store, &written);
    if (r == 0) {
        totals.n_runs++;
        totals.last_run = totals.next_run++;
        totals.raw_bytes += written.raw_bytes;
        totals.open_bytes += open_bytes;
        thread_pool_lock(s->threads);
        spiller->totals = totals;
        thread_pool_unlock(s->threads);
    }
    return r < 0 ? -1 : 0;
}

/* Spills the n oldest sort buffers, and frees them for the reader. */
static int spill_oldest(struct spiller *spiller, size_t n)
{
    const struct spill_settings *s = &spiller->settings;
    struct sort_buffer **oldest = xcalloc(n, sizeof *oldest);
    int r = sort_buffer_pool_oldest(s->pool, n, oldest);
    if (r == 0) r = spill_run(spiller, oldest, n);
    if (r == 0)
        sort_buffer_pool_spilled(s->pool, n);
    else
        thread_pool_fail(s->threads); /* the reader may be waiting for these sort buffers */
    free(oldest);
    return r;
}

/* ---- the spiller ---- */

struct spiller *spill_create(const struct spill_settings *settings)
{
    struct spiller *spiller = xcalloc(1, sizeof *spiller);
    spiller->settings = *settings;
    spiller->totals.last_run = RUN_LABEL_NONE;
    return spiller;
}

void spill_destroy(struct spiller *spiller)
{
    free(spiller);
}

void spill_go_on(struct spiller *spiller, const struct spill_totals *totals)
{
    thread_pool_lock(spiller->settings.threads); /* the progress thread reads the totals */
    spiller->totals = *totals;
    thread_pool_unlock(spiller->settings.threads);
}

static void *spill_while_loading(void *arg)
{
    struct spiller *spiller = arg;
    const struct spill_settings *s = &spiller->settings;
    const struct load_counts *counts;
    for (;;) {
        size_t n;
        thread_pool_lock(s->threads);
        counts = load_totals_locked(s->totals);
        while ((n = sort_buffer_pool_n_due(s->pool, counts->expected_bytes)) == 0 &&
               counts->is_loading && !thread_pool_failed(s->threads))
            thread_pool_wait_for(s->threads, WAIT_SPILLER_BUFFERS);
        bool go_on = counts->is_loading && !thread_pool_failed(s->threads);
        thread_pool_unlock(s->threads);
        if (!go_on || spill_oldest(spiller, n) < 0) return NULL;
    }
}

int spill_start(struct spiller *spiller)
{
    int error = thread_start(&spiller->thread, "spiller", spill_while_loading, spiller);
    if (error) diag_no_thread(error);
    return error ? -1 : 0;
}

void spill_join(struct spiller *spiller)
{
    (void)pthread_join(spiller->thread, NULL);
}

/* True if the merge has enough memory. */
static bool merge_fits(const struct spiller *spiller, const struct memory_budget *budget)
{
    const struct spill_settings *s = &spiller->settings;
    struct run_store *store = temp_store_runs(s->store);
    size_t scan_bytes = store ? run_store_scan_bytes(store) : 0;
    return sort_buffer_pool_kept_bytes(s->pool) <=
           spill_policy_kept_bytes(budget, spiller->totals.open_bytes, scan_bytes);
}

int spill_to_fit(struct spiller *spiller)
{
    const struct spill_settings *s = &spiller->settings;
    for (;;) {
        struct memory_budget budget;
        if (temp_store_drain(s->store) < 0) return -1;
        sort_buffer_pool_budget(s->pool, &budget);
        size_t left = sort_buffer_pool_n_kept(s->pool);
        bool fits = merge_fits(spiller, &budget);
        bool needs_all = s->needs_all_runs || checkpoint_writer_needs_all_runs(s->checkpoint);
        if (left == 0 || (fits && !needs_all)) return temp_store_settle(s->store);
        if (spill_oldest(spiller, spill_policy_run_buffers(&budget, left)) < 0) return -1;
    }
}

void spill_check_output(struct spiller *spiller)
{
    size_t n;
    struct sort_buffer *const *kept = sort_buffer_pool_kept(spiller->settings.pool, &n);
    check_space(spiller, NULL, kept, n);
}

void spill_look(struct spiller *spiller, struct spill_totals *totals)
{
    thread_pool_lock(spiller->settings.threads);
    *totals = spiller->totals;
    thread_pool_unlock(spiller->settings.threads);
}

const struct spill_totals *spill_locked(const struct spiller *spiller)
{
    thread_pool_assert_locked(spiller->settings.threads);
    return &spiller->totals;
}

unsigned spill_n_runs(struct spiller *spiller)
{
    struct spill_totals totals;
    spill_look(spiller, &totals);
    return totals.n_runs;
}

enum codec_reason spill_codec_reason(const struct spiller *spiller)
{
    return spiller->codec_reason;
}
