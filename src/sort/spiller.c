/* spiller.c -- see spiller.h. */
#include "sort/spiller.h"

#include "os/thread_pool.h"
#include "sort/planner.h"
#include "spill/memory_budget.h"
#include "spill/run_writer.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>

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

/* Chooses the codec before the first run. Chooses again before each run while it is "none", which
   takes the most space. */
static enum temp_codec choose_codec(struct sort_context *sort, const struct load_counts *counts,
                                    uint64_t spilled, struct run_store *store)
{
    const struct sort_settings *settings = sort->settings;
    if (!settings->codec_auto) return settings->codec;
    if (sort->spiller.codec == TEMP_CODEC_NONE) {
        struct run_store_disks disks;
        run_store_look(store, &disks);
        sort->spiller.codec = codec_choose(&disks, settings->n_threads,
                                      bytes_to_spill(settings, counts, spilled),
                                      &sort->spiller.codec_reason);
    }
    return sort->spiller.codec;
}

/* Chooses codec, files and block size of the run. Passes the estimate of remaining bytes to the
   store. Returns how many runs are expected in all. */
static uint64_t plan_run(struct sort_context *sort, const struct spill_totals *before,
                         struct run_writer_settings *s)
{
    const struct memory_budget *budget = &s->budget;
    struct load_counts counts;
    load_totals_look(sort->totals, &counts);
    uint64_t expected = counts.expected_bytes, done = before->raw_bytes;
    uint64_t run_bytes = s->label.sum.n_bytes;
    s->codec = choose_codec(sort, &counts, done, s->store);
    run_store_expect(s->store, done, expected > done ? expected - done : 0);
    uint64_t n_expected = memory_budget_expect_runs(budget, expected, before->n_runs, done);
    uint64_t n_likely = n_expected > before->n_runs ? n_expected : 2 * (before->n_runs + 1UL);
    s->n_files =
        memory_budget_run_files(budget, run_bytes, n_likely, run_store_most_files(s->store));
    s->block_bytes = memory_budget_block_bytes(budget, before->n_runs * s->n_files,
                                               (unsigned)n_expected * s->n_files);
    /* The estimate includes this run: it is used when the run has ended. */
    return memory_budget_expect_runs(budget, expected, before->n_runs + 1, done + run_bytes);
}

/* Warns if there is too little space; checks only once in a sort. Estimates the need from n sorted
   sort buffers that are in no run. */
static void check_space(struct sort_context *sort, struct run_store *store,
                        struct sort_buffer *const *buffers, size_t n)
{
    struct load_counts counts;
    struct memory_budget budget;
    struct run_store_disks disks;
    struct plan plan;
    load_totals_look(sort->totals, &counts);
    uint64_t expected_bytes = counts.is_loading ? counts.expected_bytes : counts.sum.n_bytes;
    if (sort->spiller.space_is_checked || expected_bytes == 0) return;
    sort->spiller.space_is_checked = true;
    sort_buffer_pool_budget(sort->pool, &budget);
    planner_begin(&plan, sort->settings, &budget);
    plan.expected_bytes = expected_bytes;
    plan.size_is_known = true;
    struct temp_dirs dirs = {.n = 0};
    if (store) dirs = checkpoint_writer_directories(sort->checkpoint);
    planner_look_at_space(&plan, dirs.paths, dirs.n, sort->output_path.final,
                          sort->also_path.final);
    if (store) {
        run_store_look(store, &disks);
        planner_set_disks(&plan, &disks, (unsigned)dirs.n, run_store_n_lanes(store));
    }
    planner_warn(&plan, buffers, n);
}

/* Writes n sorted sort buffers as one run, and hands it to the run committer. */
static int spill_run(struct sort_context *sort, struct sort_buffer *const *buffers, size_t n)
{
    struct spill_totals totals = sort->spiller.totals;
    if (temp_store_open(sort->store) < 0) return -1;
    struct run_writer_settings settings = {
        .threads = sort->threads,
        .rules = &sort->rules,
        .store = temp_store_runs(sort->store),
        .observers = &sort->observers_run,
        .label = make_label(&totals, buffers, n),
        .record_growth = markdup_growth(sort->markdup),
    };
    sort_buffer_pool_budget(sort->pool, &settings.budget);
    uint64_t n_runs_expected = plan_run(sort, &totals, &settings);
    if (totals.n_runs == 0) check_space(sort, settings.store, buffers, n);
    struct written_run written = {.raw_bytes = settings.label.sum.n_bytes,
                                  .codec = settings.codec, .n_runs_expected = n_runs_expected};
    size_t open_bytes;
    int r = run_writer_write(&settings, buffers, n, &written.stored, &open_bytes);
    if (r == 0) r = temp_store_take(sort->store, &written);
    if (r == 0) {
        totals.n_runs++;
        totals.last_run = totals.next_run++;
        totals.raw_bytes += written.raw_bytes;
        totals.open_bytes += open_bytes;
        thread_pool_lock(sort->threads);
        sort->spiller.totals = totals;
        thread_pool_unlock(sort->threads);
    }
    return r < 0 ? -1 : 0;
}

/* Spills the n oldest sort buffers, and frees them for the reader. */
static int spill_oldest(struct sort_context *sort, size_t n)
{
    struct sort_buffer **oldest = xcalloc(n, sizeof *oldest);
    int r = sort_buffer_pool_oldest(sort->pool, n, oldest);
    if (r == 0) r = spill_run(sort, oldest, n);
    if (r == 0)
        sort_buffer_pool_spilled(sort->pool, n);
    else
        thread_pool_fail(sort->threads); /* the reader may be waiting for these sort buffers */
    free(oldest);
    return r;
}

/* ---- the spiller ---- */

static void *spill_while_loading(void *arg)
{
    struct sort_context *sort = arg;
    const struct load_counts *counts;
    for (;;) {
        size_t n;
        thread_pool_lock(sort->threads);
        counts = load_totals_locked(sort->totals);
        while ((n = sort_buffer_pool_n_due(sort->pool, counts->expected_bytes)) == 0 &&
               counts->is_loading && !thread_pool_failed(sort->threads))
            thread_pool_wait_for(sort->threads, WAIT_SPILLER_BUFFERS);
        bool go_on = counts->is_loading && !thread_pool_failed(sort->threads);
        thread_pool_unlock(sort->threads);
        if (!go_on || spill_oldest(sort, n) < 0) return NULL;
    }
}

int spill_start(struct sort_context *sort)
{
    int error = thread_start(&sort->spiller.thread, "spiller", spill_while_loading, sort);
    if (error) diag_no_thread(error);
    return error ? -1 : 0;
}

void spill_join(const struct sort_context *sort)
{
    (void)pthread_join(sort->spiller.thread, NULL);
}

/* True if the merge has enough memory. */
static bool merge_fits(const struct sort_context *sort, const struct memory_budget *budget)
{
    struct run_store *store = temp_store_runs(sort->store);
    size_t scan_bytes = store ? run_store_scan_bytes(store) : 0;
    return sort_buffer_pool_kept_bytes(sort->pool) <=
           spill_policy_kept_bytes(budget, sort->spiller.totals.open_bytes, scan_bytes);
}

int spill_to_fit(struct sort_context *sort)
{
    for (;;) {
        struct memory_budget budget;
        if (temp_store_drain(sort->store) < 0) return -1;
        if (thread_pool_failed(sort->threads)) return -1;
        sort_buffer_pool_budget(sort->pool, &budget);
        size_t left = sort_buffer_pool_n_kept(sort->pool);
        bool fits = merge_fits(sort, &budget);
        if (left == 0 || (fits && !checkpoint_writer_needs_all_runs(sort->checkpoint) &&
                          !markdup_need_runs(sort->markdup)))
            return temp_store_settle(sort->store);
        if (spill_oldest(sort, spill_policy_run_buffers(&budget, left)) < 0) return -1;
    }
}

void spill_check_output(struct sort_context *sort)
{
    size_t n;
    struct sort_buffer *const *kept = sort_buffer_pool_kept(sort->pool, &n);
    check_space(sort, NULL, kept, n);
}
