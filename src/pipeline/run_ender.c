/*
 * run_ender.c -- the store of runs while loading: where it lies, who ends runs, when they are
 * compacted.
 *
 * A run that has been written still has to reach the disk and RocksDB's manifest: half a dozen
 * syncs, 0.1 s on a rotating disk, in which as much as a run of 30 MB is read and sorted. So a
 * thread of its own ends runs, while the spiller writes the next one. It also lets the store
 * compact them.
 */
#include "pipeline/pipeline_internal.h"

#include "store/checkpoint_dir.h"
#include "store/temp_dir.h"
#include "util/diag.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A codec is kept for so long at least: one run tells little, and runs of different codecs have
   different sizes, by which compaction distinguishes them from compacted ones. */
static const double codec_seconds_kept = 1;

enum { MOST_ENDING = 2 };       /* runs that wait to be ended: dirty pages of the page cache */

/* Makes a directory for each -T. */
static int make_scratch_dirs(struct pipeline *p)
{
    const struct sort_settings *s = p->settings;
    p->scratch_paths = calloc(s->n_temp_prefixes + 1, sizeof *p->scratch_paths);
    p->lock_fds = calloc(s->n_temp_prefixes, sizeof *p->lock_fds);
    if (!p->scratch_paths || !p->lock_fds) return pipeline_no_memory(p);
    for (size_t i = 0; i < s->n_temp_prefixes; i++) {
        /* Under the lock: the signal thread must see every directory that exists. */
        pipeline_lock(p);
        const char *output = p->output.final ? s->output : NULL;    /* is there a place beside? */
        char *path = temp_dir_create(s->temp_prefixes[i], output);
        if (path) p->lock_fds[p->n_scratch_paths] = checkpoint_dir_claim(path);
        int error = errno;
        if (path) p->scratch_paths[p->n_scratch_paths++] = path;
        pipeline_unlock(p);
        if (!path) return -1;
        if (p->lock_fds[i] >= 0) continue;
        diag_error("cannot make files in the temporary directory '%s': %s; choose another place "
                   "with -T", path, strerror(error));
        return -1;
    }
    return 0;
}

void store_remove_directory(struct pipeline *p, size_t i)
{
    const char *path = p->scratch_paths[i];
    bool removed = temp_dir_remove(path) == 0;
    if (p->lock_fds && p->lock_fds[i] >= 0) (void)close(p->lock_fds[i]);
    /* With so few open files (ulimit -n 6) that this one was missing. */
    if (!removed && temp_dir_remove(path) < 0)
        diag_left("warning: cannot remove the temporary directory '%s': %s", path,
                  strerror(errno));
}

uint64_t store_expected_bytes(const struct pipeline *p)
{
    return p->settings->input_bytes ? p->settings->input_bytes : p->expected_bytes;
}

/* About; of what they will have, if there are none yet, with this budget. */
static uint64_t expect_runs(struct pipeline *p, const struct mem_budget *budget)
{
    pipeline_lock(p);
    uint64_t n_bytes = store_expected_bytes(p);
    /* A quarter is entries and gaps; and compaction, for which this is asked, will take a quarter
       of the batches. */
    uint64_t run_bytes = budget->batch_bytes * budget->run_batches / 2;
    if (p->n_runs > 0) run_bytes = p->spilled_bytes / p->n_runs + 1;
    pipeline_unlock(p);
    return n_bytes / run_bytes;
}

uint64_t store_expected_runs(struct pipeline *p)
{
    return expect_runs(p, &p->budget);
}

/* ---- the thread that ends runs ---- */

/* Between runs: lets the store compact what it wants to, once there is memory for that; or without
   where the next files could not be opened. */
static int compact_runs(struct pipeline *p)
{
    if (run_store_is_compacting(p->store)) p->waited_in_vain = false;
    if (!run_store_wants_compaction(p->store, store_expected_runs(p), p->waited_in_vain)) return 0;
    pipeline_lock(p);
    /* After a failure batches may be freed at any time. */
    if (!p->compacting && !pipeline_failed(p))
        retire_batches(p, mem_budget_compaction_batches(&p->budget));
    p->compacting = true;
    bool ready = p->n_to_retire == 0;
    pipeline_unlock(p);
    return ready || run_store_is_crowded(p->store) ? run_store_compact(p->store) : 0;
}

/* Waits while a compaction is under way or about to begin; or only while there are too many files
   and it helps. */
static void wait_for_compaction(struct pipeline *p, bool only_if_crowded)
{
    /* One that is due begins at once, if RocksDB's thread gets a CPU, which may take a while on a
       busy machine; or never, if there is no row of files for it: then the next wait is short. */
    enum { POLL_MICROSECONDS = 20000, IDLE_POLLS = 25, IN_VAIN_POLLS = 5 };
    int most_idle = only_if_crowded && p->waited_in_vain ? IN_VAIN_POLLS : IDLE_POLLS, idle = 0;
    bool in_vain = true;
    while (idle < most_idle && !pipeline_failed(p)) {
        if (only_if_crowded && !run_store_is_crowded(p->store)) {
            in_vain = false;
            break;
        }
        idle = run_store_is_compacting(p->store) ? 0 : idle + 1;
        if (idle == 0) in_vain = false;
        if (idle > 2 && !run_store_compaction_is_due(p->store)) break;
        (void)usleep(POLL_MICROSECONDS);
    }
    p->waited_in_vain = in_vain;
}

/* With the lock held: takes the oldest run that is to be ended. */
static struct stored_run *take_ending_run(struct pipeline *p)
{
    struct stored_run *run = p->ending[0];
    p->n_ending--;
    memmove(p->ending, p->ending + 1, p->n_ending * sizeof *p->ending);
    p->is_ending = true;
    pipeline_announce(p);
    return run;
}

static void *end_runs(void *arg)
{
    struct pipeline *p = arg;
    pipeline_lock(p);
    for (;;) {
        while (p->n_ending == 0 && !p->store_closing) pipeline_wait(p);
        if (p->n_ending == 0) break;
        struct stored_run *run = take_ending_run(p);
        pipeline_unlock(p);
        int r = 0;
        double start = monotonic_seconds();
        if (pipeline_failed(p))
            run_store_abandon_run(run);
        else
            r = run_store_end_run(run);
        double seconds = monotonic_seconds() - start;
        if (r == 0 && !pipeline_failed(p)) r = compact_runs(p);
        if (r == 0 && p->compacting) wait_for_compaction(p, true);
        if (r < 0) pipeline_fail(p);
        unsigned n_durable = run_store_n_durable(p->store);
        pipeline_lock(p);
        p->n_durable = n_durable;
        p->write_seconds += seconds;
        p->is_ending = false;
        pipeline_announce(p);
    }
    pipeline_unlock(p);
    return NULL;
}

static void plan_means(struct pipeline *p, const struct mem_budget *budget,
                       struct run_store_means *means)
{
    means->n_runs_expected = expect_runs(p, budget);
    means->scan_bytes = mem_budget_scan_bytes(budget);
    means->compaction_bytes = mem_budget_compaction_bytes(budget);
}

/* Seeks grow with the number of runs. */
static void lengthen_runs(struct pipeline *p)
{
    struct run_store_disks disks;
    run_store_look(p->store, &disks);
    if (!disks.slow_to_seek) return;
    pipeline_lock(p);
    mem_budget_lengthen_runs(&p->budget);
    pipeline_unlock(p);
}

int store_open(struct pipeline *p)
{
    if (p->store) return 0;
    const struct checkpoint *resumed = p->settings->resumed;
    if (!resumed && make_scratch_dirs(p) < 0) return -1;
    pipeline_lock(p);
    uint64_t n_bytes = store_expected_bytes(p);
    pipeline_unlock(p);
    struct run_store_settings settings = {
        .dirs = (const char *const *)p->scratch_paths,
        .n_dirs = p->n_scratch_paths,
        .n_lanes = resumed ? resumed->record.n_lanes : 0,
        .existing = resumed != NULL,
        .read_only = !resume_reads_input(p),
        .compaction = p->settings->compaction,
        .input_bytes = n_bytes,
    };
    struct mem_budget long_runs = p->budget;
    mem_budget_lengthen_runs(&long_runs);
    plan_means(p, &p->budget, &settings.means);
    plan_means(p, &long_runs, &settings.slow_means);
    p->ending = calloc(MOST_ENDING, sizeof *p->ending);
    if (!p->ending) return pipeline_no_memory(p);
    p->store = run_store_create(&settings);
    if (!p->store) return -1;
    lengthen_runs(p);
    int error = pthread_create(&p->ending_thread, NULL, end_runs, p);
    if (error) diag_no_thread(error);
    p->ending_thread_runs = error == 0;
    if (error) return -1;
    if (durable_begin(p) < 0) return -1;
    if (!resumed) tell_leftovers(p);
    return resumed ? 0 : resume_begin_store(p);
}

/* How much is to come, and for how much there is space. */
static void look_at_space(struct pipeline *p, const struct run_store_disks *disks)
{
    struct codec_facts *facts = &p->codec_facts;
    pipeline_lock(p);
    uint64_t expected = store_expected_bytes(p), came = p->sum_in.n_bytes;
    uint64_t raw_bytes = p->spilled_bytes;
    pipeline_unlock(p);
    /* Of an unknown input, or one that is larger than was said, a multiple of what came; estimates
       are a little low near the end. */
    bool was_said = p->settings->input_bytes > 0;
    if (expected == 0 || (was_said && expected <= raw_bytes)) expected = 10 * came;
    facts->free_bytes = (double)disks->free_bytes;
    facts->raw_bytes_left = expected > raw_bytes ? (double)(expected - raw_bytes) : 0;
}

/* Chooses anew, by what was seen since the last time. */
static enum temp_codec choose_codec(struct pipeline *p, const struct run_store_disks *disks,
                                    double now)
{
    const struct sort_settings *s = p->settings;
    struct codec_facts *facts = &p->codec_facts;
    pipeline_lock(p);
    uint64_t raw_bytes = p->spilled_bytes;
    facts->seconds = p->codec_seconds > 0 ? now - p->codec_seconds : 0;
    double put_seconds = p->put_seconds - p->codec_put_seconds;
    facts->write_seconds = p->write_seconds - p->codec_write_seconds;
    /* Two threads: what takes one of them all its time is the limit. */
    if (facts->write_seconds < put_seconds) facts->write_seconds = put_seconds;
    facts->wait_seconds = p->wait_seconds - p->codec_wait_seconds;
    facts->worker_seconds = p->job_seconds - p->codec_job_seconds;
    p->codec_put_seconds = p->put_seconds;
    p->codec_write_seconds = p->write_seconds;
    p->codec_wait_seconds = p->wait_seconds;
    p->codec_job_seconds = p->job_seconds;
    pipeline_unlock(p);
    p->codec_seconds = now;
    facts->in_memory = disks->in_memory;
    facts->slow_to_seek = disks->slow_to_seek;
    facts->bytes_per_second = disks->bytes_per_second;
    facts->n_threads = s->n_threads;
    if (raw_bytes > 0) facts->stored_ratio = (double)disks->run_bytes / (double)raw_bytes;
    enum temp_codec codec = codec_choose(facts, &p->report->codec_reason);
    if (facts->codec == TEMP_CODEC_NONE && codec != TEMP_CODEC_NONE && facts->seconds > 0)
        facts->left_none = true;
    facts->codec = codec;
    return facts->codec;
}

enum temp_codec store_choose_codec(struct pipeline *p)
{
    double now = monotonic_seconds();
    enum temp_codec codec = p->codec_facts.codec;
    if (!p->settings->codec_auto) {
        codec = p->settings->codec;
    } else {
        struct run_store_disks disks;
        run_store_look(p->store, &disks);
        look_at_space(p, &disks);
        /* A second is long where memory is written. */
        bool too_large = codec == TEMP_CODEC_NONE && !codec_has_space(&p->codec_facts);
        if (too_large || p->codec_seconds <= 0 || now - p->codec_seconds > codec_seconds_kept)
            codec = choose_codec(p, &disks, now);
    }
    p->report->runs_of_codec[codec]++;
    return codec;
}

int store_end_run(struct pipeline *p, struct stored_run *run)
{
    double start = monotonic_seconds();
    pipeline_lock(p);
    while (p->n_ending == MOST_ENDING && !pipeline_failed(p)) pipeline_wait(p);
    p->wait_seconds += monotonic_seconds() - start;
    p->put_seconds += run_store_put_seconds(run);
    bool failed = pipeline_failed(p);
    if (!failed) p->ending[p->n_ending++] = run;
    pipeline_announce(p);
    pipeline_unlock(p);
    if (failed) run_store_abandon_run(run);
    return failed ? -1 : 0;
}

int store_drain(struct pipeline *p)
{
    pipeline_lock(p);
    while ((p->n_ending > 0 || p->is_ending) && !pipeline_failed(p)) pipeline_wait(p);
    pipeline_unlock(p);
    if (pipeline_failed(p)) return -1;
    return p->store ? run_store_flush(p->store) : 0;
}

int store_settle(struct pipeline *p)
{
    if (store_drain(p) < 0) return -1;
    if (!p->compacting) return 0;
    wait_for_compaction(p, false);
    if (run_store_settle(p->store) < 0) return -1;
    wait_for_compaction(p, false);
    return pipeline_failed(p) ? -1 : 0;
}

void store_close(struct pipeline *p)
{
    if (p->ending_thread_runs) {
        pipeline_lock(p);
        p->store_closing = true;
        pipeline_announce(p);
        pipeline_unlock(p);
        (void)pthread_join(p->ending_thread, NULL);
    }
    /* What has ended may wait for others to be admitted with. */
    if (p->store && p->keeps_store) (void)run_store_flush(p->store);
    free(p->ending);
    run_store_destroy(p->store);
    p->store = NULL;
}
