/*
 * pipeline.c -- the frame of a sort: pool, signals, header, the phases in turn. See pipeline.h.
 *
 * Signals are taken by a thread of their own with sigwait: htslib restarts interrupted reads and
 * writes, so that a flag set by a handler would not be seen while the aligner, or whoever reads our
 * output, pauses. The thread removes the temporary files and lets the process die of the signal.
 */
#include "pipeline_internal.h"

#include "diag.h"
#include "exception_guard.h"
#include "scratch_dir.h"
#include "version.h"

#include <errno.h>
#include <inttypes.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void pipeline_lock(struct pipeline *p)
{
    /* A mutex of the default type that is initialised and not held cannot fail to lock. */
    (void)pthread_mutex_lock(&p->lock);
}

void pipeline_unlock(struct pipeline *p)
{
    (void)pthread_mutex_unlock(&p->lock);
}

void pipeline_wait(struct pipeline *p)
{
    (void)pthread_cond_wait(&p->changed, &p->lock);
}

void pipeline_announce(struct pipeline *p)
{
    (void)pthread_cond_broadcast(&p->changed);
}

void pipeline_fail(struct pipeline *p)
{
    pipeline_lock(p);
    atomic_store(&p->failed, true);
    pipeline_announce(p);
    pipeline_unlock(p);
}

int pipeline_no_memory(struct pipeline *p)
{
    diag_error("out of memory");
    pipeline_fail(p);
    return -1;
}

struct job {
    struct pipeline *pipeline;
    void (*run)(struct pipeline *, struct worker *, void *);
    void *arg;
};

static struct worker *take_worker(struct pipeline *p)
{
    pipeline_lock(p);
    struct worker *worker = p->idle_workers;
    if (worker) p->idle_workers = worker->next;
    pipeline_unlock(p);
    return worker;
}

static void *run_job(void *arg)
{
    struct job *job = arg;
    struct pipeline *p = job->pipeline;
    struct worker *worker = take_worker(p);
    double start = monotonic_seconds();
    job->run(p, worker, job->arg);
    pipeline_lock(p);
    p->job_seconds += monotonic_seconds() - start;
    worker->next = p->idle_workers;
    p->idle_workers = worker;
    p->n_jobs--;
    pipeline_announce(p);
    pipeline_unlock(p);
    free(job);
    return NULL;
}

int pipeline_submit(struct pipeline *p, void (*run)(struct pipeline *, struct worker *, void *),
                    void *arg)
{
    struct job *job = malloc(sizeof *job);
    if (!job) return pipeline_no_memory(p);
    *job = (struct job){p, run, arg};
    pipeline_lock(p);
    p->n_jobs++;
    pipeline_unlock(p);
    /* Never blocks: whoever submits bounds what is in flight. */
    if (hts_tpool_dispatch2(p->pool.pool, p->jobs, run_job, job, -1) < 0) {
        diag_error("cannot hand work to the thread pool: %s", strerror(errno));
        free(job);
        pipeline_lock(p);
        p->n_jobs--;
        pipeline_unlock(p);
        pipeline_fail(p);
        return -1;
    }
    return 0;
}

int worker_reserve_raw(struct worker *worker, size_t n_bytes)
{
    if (n_bytes <= worker->raw_room) return 0;
    size_t room = n_bytes + n_bytes / 4;
    uint8_t *grown = realloc(worker->raw, room);
    if (!grown) return -1;
    worker->raw = grown;
    worker->raw_room = room;
    return 0;
}

int worker_reserve_slices(struct worker *worker, size_t n_slices)
{
    if (n_slices <= worker->n_slices) return 0;
    size_t room = 2 * n_slices;
    struct merge_slice *grown = realloc(worker->slices, room * sizeof *grown);
    if (!grown) return -1;
    worker->slices = grown;
    worker->n_slices = room;
    return 0;
}

static void free_workers(struct pipeline *p)
{
    while (p->idle_workers) {
        struct worker *worker = p->idle_workers;
        p->idle_workers = worker->next;
        merge_space_release(&worker->space);
        bgzf_coder_release(&worker->bgzf);
        temp_coder_release(&worker->temp);
        merge_bound_release(&worker->bound);
        bam_destroy1(worker->record);
        ks_free(&worker->line);
        free(worker->slices);
        free(worker->raw);
        free(worker);
    }
}

static int start_pool(struct pipeline *p)
{
    int n = (int)p->budget.n_threads;
    for (int i = 0; i < n; i++) {
        struct worker *worker = calloc(1, sizeof *worker);
        if (!worker) return pipeline_no_memory(p);
        worker->next = p->idle_workers;
        p->idle_workers = worker;
    }
    p->pool.pool = hts_tpool_init(n);
    /* htslib keeps up to 1,000 parsed records, or a CRAM slice, for each place in its queue. */
    p->pool.qsize = n;
    if (p->pool.pool) p->jobs = hts_tpool_process_init(p->pool.pool, 4 * n + 16, 1);
    if (!p->jobs) {
        diag_error("cannot start %d threads: %s", n, strerror(errno));
        return -1;
    }
    return 0;
}

void free_paths(char **paths)
{
    for (size_t i = 0; paths && paths[i]; i++) free(paths[i]);
    free(paths);
}

/* Removes a temporary directory; then its lock, without which other runs let it be no longer. */
static void remove_scratch(struct pipeline *p, size_t i)
{
    const char *path = p->scratch_paths[i];
    bool removed = scratch_dir_remove(path) == 0;
    if (p->lock_fds && p->lock_fds[i] >= 0) (void)close(p->lock_fds[i]);
    /* With so few open files (ulimit -n 6) that this one was missing. */
    if (!removed && scratch_dir_remove(path) < 0)
        diag_warning("cannot remove the temporary directory '%s': %s", path, strerror(errno));
}

/* Every way out of a run leads here, with all jobs done. */
static void release_pipeline(struct pipeline *p)
{
    release_batches(p);
    store_close(p);
    bam_inputs_close(p->inputs);
    if (p->jobs) hts_tpool_process_destroy(p->jobs);
    if (p->pool.pool) hts_tpool_destroy(p->pool.pool);
    free_workers(p);
    bam_key_template_destroy(p->template_ends);
    minhash_index_destroy(p->minhash_index);
    bam_index_destroy(p->index);
    verify_release(p);
    for (size_t i = 0; i < p->n_scratch_paths; i++)
        if (!p->keeps_store) remove_scratch(p, i);
        else if (p->lock_fds && p->lock_fds[i] >= 0) (void)close(p->lock_fds[i]);
    free(p->lock_fds);
    resume_release(p);
    if (!p->report->store_paths) free_paths(p->scratch_paths);
    output_path_release(&p->output);
    output_path_release(&p->index_output);
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
}

/*
 * The signals that end a run, and SIGUSR2, which ends the thread below. One that is ignored, as
 * SIGHUP under nohup, stays ignored.
 */
static void list_signals(sigset_t *signals)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};
    (void)sigemptyset(signals);
    (void)sigaddset(signals, SIGUSR2);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        struct sigaction action;
        if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            (void)sigaddset(signals, ending[i]);
    }
}

/* Removes what a run that ends at once would leave. With the lock held, for good: nobody makes
   another file or directory meanwhile. */
static void remove_temporaries(struct pipeline *p, bool keep_store)
{
    atomic_store(&p->failed, true);
    diag_silence();             /* the other threads will miss their files: no news */
    diag_end_status();
    if (p->output.temporary) (void)unlink(p->output.temporary);
    if (p->index_output.temporary) (void)unlink(p->index_output.temporary);
    for (size_t i = 0; i < p->n_scratch_paths && !keep_store; i++) remove_scratch(p, i);
}

/* After an exception, or without memory, in whatever thread; it may hold the lock already. */
static void clean_up_after_exception(void *arg)
{
    enum { LOCK_SECONDS = 5 };  /* who has it may be waiting for a lock of ours, in RocksDB */
    struct pipeline *p = arg;
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LOCK_SECONDS;
    (void)pthread_mutex_timedlock(&p->lock, &until);
    bool kept = resume_keeps_store(p, 0);
    remove_temporaries(p, kept);
    resume_tell(p, kept);
}

/* Thread that waits for a signal, cleans up and lets the process die of it. */
static void *wait_for_signal(void *arg)
{
    struct pipeline *p = arg;
    sigset_t signals;
    int signal_number = 0;
    list_signals(&signals);
    for (;;) {
        (void)sigwait(&signals, &signal_number);
        pipeline_lock(p);
        if (signal_number != SIGUSR2) break;
        bool over = p->over;
        pipeline_unlock(p);
        if (over) return NULL;
    }
    bool kept = resume_keeps_store(p, signal_number);
    remove_temporaries(p, kept);
    if (kept || (signal_number != SIGINT && signal_number != SIGQUIT)) resume_tell(p, kept);
    struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigaction(signal_number, &action, NULL);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, signal_number);
    (void)pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    (void)raise(signal_number);
    _exit(128 + signal_number);
}

/* Blocks the signals in this thread, and so in all that it starts. A broken pipe
   is a write error, and so is a file beyond ulimit -f.
   */
static int block_signals(sigset_t *before, struct sigaction *pipe_before)
{
    sigset_t signals;
    list_signals(&signals);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (sigaction(SIGPIPE, &ignore, pipe_before) != 0 ||
        sigaction(SIGXFSZ, &ignore, NULL) != 0)
        return -1;
    return pthread_sigmask(SIG_BLOCK, &signals, before);
}

static int header_error(const struct pipeline *p)
{
    diag_error("cannot change the header of '%s': it is damaged, or memory is short",
               p->settings->resumed ? p->scratch_paths[0] : p->settings->inputs[0]);
    return -1;
}

static int prepare_header(struct pipeline *p)
{
    const struct sort_settings *s = p->settings;
    p->header = bam_inputs_header(p->inputs);
    p->n_refs = sam_hdr_nref(p->header);
    if (s->add_pg && sam_hdr_add_pg(p->header, "samtools", "VN", ROCKSORT_VERSION,
                                    s->command_line ? "CL" : NULL, s->command_line, NULL) < 0)
        return header_error(p);
    return 0;
}

/* What reading alone takes at the most, and in addition for each thread. */
enum { SUM_BYTES = 32 << 20, SUM_THREAD_BYTES = 16 << 20 };

static void plan_memory(struct pipeline *p, size_t total_bytes)
{
    /* Nothing is kept: batches that stay in the cache are better than many. */
    size_t enough = SUM_BYTES + SUM_THREAD_BYTES * (size_t)p->settings->n_threads;
    if (p->settings->sum_only && total_bytes > enough) total_bytes = enough;
    mem_budget_plan(&p->budget, total_bytes, p->settings->n_threads);
    if (!p->settings->test_batch_bytes) return;
    p->budget.batch_bytes = (size_t)p->settings->test_batch_bytes;
    p->budget.run_batches = p->budget.full_batches = p->budget.first_full_batches = 1;
}

int complete_rules(struct pipeline *p, struct sort_rules *rules)
{
    const struct sort_settings *s = p->settings;
    if (bam_header_long_reference(p->header) >= 0) {
        rules->long_positions = true;
        if (rules->order == SORT_COORDINATE) rules->order = SORT_COORDINATE_LONG;
    }
    if (rules->order == SORT_TEMPLATE) {
        /* htslib takes a header apart when it is first asked for a line. */
        if (sam_hdr_count_lines(p->header, "RG") < 0) return header_error(p);
        p->template_ends = bam_key_template_create(p->header);
        if (!p->template_ends) return pipeline_no_memory(p);
        rules->template_ends = p->template_ends;
    }
    struct minhash_settings *m = &rules->minhash;
    /* Runs on disk have the values; only of new records they are still to be found. */
    if (rules->order == SORT_MINHASH && s->minhash_fasta && resume_reads_input(p)) {
        p->minhash_index = minhash_index_load(s->minhash_fasta, m->k, s->minhash_window,
                                              m->squeeze);
        if (!p->minhash_index) return -1;
        m->index = p->minhash_index;
        /* It counts, but a sort in less than half of the memory would help nobody. */
        size_t index_bytes = minhash_index_bytes(m->index), total = s->memory_bytes;
        if (index_bytes > total / 2) {
            diag_warning("the index of '%s' takes %zu MiB of memory, which is more than half of "
                         "what may be used", s->minhash_fasta, index_bytes >> 20);
            index_bytes = total / 2;
        }
        plan_memory(p, total - index_bytes);
    }
    return 0;
}

/* Makes the rules of the order: the settings', and what they need from header and files. */
static int prepare_rules(struct pipeline *p)
{
    const struct sort_settings *s = p->settings;
    int32_t long_ref = bam_header_long_reference(p->header);
    if (s->sum_only) {          /* no order is the cheapest */
        p->rules.long_positions = long_ref >= 0;
        return 0;
    }
    p->rules = s->rules;
    if (long_ref >= 0 && s->output_format.format != sam) {
        diag_error("reference '%s' has %" PRId64 " bases, more than %s can hold: write SAM "
                   "with -O sam", sam_hdr_tid2name(p->header, long_ref),
                   (int64_t)sam_hdr_tid2len(p->header, long_ref),
                   s->output_format.format == cram ? "CRAM" : "BAM");
        return -1;
    }
    return complete_rules(p, &p->rules);
}

static int load_phase(struct pipeline *p)
{
    pthread_t spiller;
    bool may_spill = !p->settings->sum_only;
    p->loading = true;
    int error = may_spill ? pthread_create(&spiller, NULL, spill_while_loading, p) : 0;
    if (error) {
        diag_error("cannot start a thread: %s", strerror(error));
        return -1;
    }
    if (load_input(p) < 0) pipeline_fail(p);
    pipeline_lock(p);
    p->loading = false;
    pipeline_announce(p);
    /* A job that works on a batch must be done before anybody frees the batch. */
    while (p->n_jobs > 0) pipeline_wait(p);
    pipeline_unlock(p);
    if (may_spill) (void)pthread_join(spiller, NULL);
    return pipeline_failed(p) ? -1 : 0;
}

static int choose_outputs(struct pipeline *p)
{
    const struct sort_settings *s = p->settings;
    struct output_path output = {0}, index = {0};
    if (s->output && output_path_choose(&output, s->output) < 0) return -1;
    if (s->index_path && output_path_choose(&index, s->index_path) < 0) {
        output_path_release(&output);
        return -1;
    }
    output.lock = index.lock = &p->lock;
    output.durable = index.durable = s->durable;
    pipeline_lock(p);           /* the signal thread looks at them */
    p->output = output;
    p->index_output = index;
    pipeline_unlock(p);
    if (!output_path_same(&output, &index)) return 0;
    diag_error("'%s' cannot be the name of both the output and its index", s->index_path);
    return -1;
}

static int open_inputs(struct pipeline *p)
{
    const struct sort_settings *s = p->settings;
    p->inputs = bam_inputs_open(s->inputs, s->n_inputs, &s->input_format, &p->pool);
    if (!p->inputs) return -1;
    if (s->resumed) return resume_inputs(p);
    return prepare_header(p) < 0 ? -1 : resume_remember_inputs(p);
}

static int run_phases(struct pipeline *p)
{
    struct sort_report *report = p->report;
    const struct sort_settings *s = p->settings;
    if (choose_outputs(p) < 0 || start_pool(p) < 0) return -1;
    if (s->resumed && resume_store(p) < 0) return -1;
    bool reads_input = resume_reads_input(p), nothing_to_check;
    if (reads_input && open_inputs(p) < 0) return -1;
    if (prepare_rules(p) < 0 || prepare_index(p) < 0) return -1;
    if (reads_input && prepare_batches(p) < 0) return -1;
    report->budget = p->budget;
    if (verify_prepare(p, &nothing_to_check) < 0) return -1;
    if (nothing_to_check) return 0;
    if (reads_input && verify_finish(p, load_phase(p)) < 0) return -1;
    if (s->sum_only) return 0;
    if (p->input_is_cut) return resume_save_part(p);
    /* Only now, since workers that parse SAM look into the header, too. */
    if (sort_rules_update_header(&p->rules, p->any_placed, p->header) < 0) return header_error(p);
    progress_enter(p, SORT_PHASE_SETTLE);
    if (spill_to_fit(p) < 0 || resume_end_load(p) < 0) return -1;
#ifdef __GLIBC__
    (void)malloc_trim(0);       /* merging allocates anew, in other sizes */
#endif
    progress_enter(p, SORT_PHASE_MERGE);
    int r = merge_to_output(p);
    report->n_batches_kept = (unsigned)(p->sealed.n - p->sealed.n_spilled);
    if (p->store) run_store_stats(p->store, &report->store);
    return r;
}

/* What was counted, with no thread left that counts. */
static void fill_report(const struct pipeline *p)
{
    struct sort_report *report = p->report;
    report->n_records = p->sum_in.n_records;
    report->raw_bytes = p->sum_in.n_bytes;
    report->checksum = p->sum_in.hash;
    report->n_records_out = p->sum_out.n_records;
    report->spilled_bytes = p->spilled_bytes;
    report->input_bytes = p->input_bytes_read;
    report->waits[WAIT_SPILLER_RUNS] = p->wait_seconds;
    report->waits[WAIT_RUNS_DISK] = p->write_seconds;
}

int sort_run(const struct sort_settings *settings, struct sort_report *report)
{
    struct pipeline p = {.settings = settings, .report = report, .last_run = RUN_LABEL_NONE};
    *report = (struct sort_report){.begun = time(NULL)};
    plan_memory(&p, settings->memory_bytes);
    sigset_t signals_before;
    struct sigaction pipe_before;
    pthread_t signal_thread;
    pthread_mutexattr_t checked;        /* the guard asks whether the thread has the lock itself */
    int error = pthread_mutexattr_init(&checked);
    if (!error) error = pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    if (!error) error = pthread_mutex_init(&p.lock, &checked);
    if (!error) error = pthread_cond_init(&p.changed, NULL);
    if (!error) error = block_signals(&signals_before, &pipe_before);
    if (!error) error = pthread_create(&signal_thread, NULL, wait_for_signal, &p);
    if (error) {
        diag_error("cannot start a thread: %s", strerror(error));
        return -1;
    }
    exception_guard_begin(clean_up_after_exception, &p);
    progress_start(&p);
    int r = run_phases(&p);
    progress_enter(&p, SORT_PHASE_CLOSE);
    progress_stop(&p);
    if (r == 0 && settings->keep_store) report->store_paths = p.scratch_paths;
    pipeline_lock(&p);
    p.over = true;
    p.keeps_store = r == 0 ? settings->keep_store : resume_keeps_store(&p, 0);
    pipeline_unlock(&p);
    (void)pthread_kill(signal_thread, SIGUSR2);
    (void)pthread_join(signal_thread, NULL);
    /* A signal from here on waits until everything is gone, then takes its default course. */
    if (r < 0) resume_tell(&p, p.keeps_store);
    release_pipeline(&p);
    fill_report(&p);
    progress_finish(&p);
    exception_guard_end();
    (void)pthread_sigmask(SIG_SETMASK, &signals_before, NULL);
    (void)sigaction(SIGPIPE, &pipe_before, NULL);
    /* Where the reader of standard output has gone, die as every filter does, now that all is
       clean; whoever ignores the signal gets the error. */
    if (p.lost_reader) (void)raise(SIGPIPE);
    return r;
}
