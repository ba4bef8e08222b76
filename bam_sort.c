/* bam_sort.c -- the frame of a sort: header, rules, the phases in turn. See bam_sort.h. */
#include "pipeline/pipeline_internal.h"

#include "bam/header_text.h"
#include "machine/exception_guard.h"
#include "util/diag.h"
#include "util/version.h"

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
    diag_no_memory();
    pipeline_fail(p);
    return -1;
}

void free_paths(char **paths)
{
    for (size_t i = 0; paths && paths[i]; i++) free(paths[i]);
    free(paths);
}

/* Every way out of a run leads here, with all jobs done. */
static void release_pipeline(struct pipeline *p)
{
    release_batches(p);
    store_close(p);
    durable_end(p);
    bam_inputs_close(p->inputs);
    if (p->jobs) hts_tpool_process_destroy(p->jobs);
    if (p->pool.pool) hts_tpool_destroy(p->pool.pool);
    free_workers(p);
    bam_key_template_destroy(p->template_ends);
    minhash_index_destroy(p->minhash_index);
    bam_index_destroy(p->index);
    verify_release(p);
    for (size_t i = 0; i < p->n_scratch_paths; i++)
        if (!p->keeps_store) store_remove_directory(p, i);
        else if (p->lock_fds && p->lock_fds[i] >= 0) (void)close(p->lock_fds[i]);
    free(p->lock_fds);
    resume_release(p);
    if (!p->report->store_paths) free_paths(p->scratch_paths);
    output_path_release(&p->output);
    output_path_release(&p->index_output);
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
}

static int header_error(const struct pipeline *p)
{
    diag_error("cannot change the header of '%s': it is damaged, or memory is short",
               p->settings->resumed ? p->scratch_paths[0] : p->settings->inputs[0]);
    return -1;
}

/* Adds our @PG line behind each chain of programs. Where PPs lead in circles only htslib 1.16 looks
   for the end of a chain in front of its array; then ours follows none, as with newer ones. */
static int add_program(struct pipeline *p)
{
    const char *text = header_whole_text(p->header), *line = p->settings->command_line;
    const char *cl = line ? "CL" : NULL, *name = "samtools", *version = ROCKSORT_VERSION;
    int have_end = text ? header_programs_have_end(text) : 1;
    if (have_end < 0) return -1;
    const char *id = have_end ? NULL : sam_hdr_pg_id(p->header, name);
    if (!have_end && !id) return header_error(p);
    int r = have_end ? sam_hdr_add_pg(p->header, name, "VN", version, cl, line, NULL)
                     : sam_hdr_add_line(p->header, "PG", "ID", id, "PN", name, "VN", version, cl,
                                        line, NULL);
    return r < 0 ? header_error(p) : 0;
}

static int prepare_header(struct pipeline *p)
{
    p->header = bam_inputs_header(p->inputs);
    p->n_refs = sam_hdr_nref(p->header);
    return p->settings->add_pg ? add_program(p) : 0;
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
            diag_warning("the index of '%s' takes %zu MiB of memory, more than half of what may be "
                         "used: give more with -m, or a larger -w", s->minhash_fasta,
                         index_bytes >> 20);
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
    pipeline_lock(p);           /* the signal thread looks at it */
    p->loading = true;
    pipeline_unlock(p);
    int error = may_spill ? pthread_create(&spiller, NULL, spill_while_loading, p) : 0;
    if (error) {
        diag_no_thread(error);
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
    const char *problem = NULL;
    if (output_path_same(&output, &index))
        problem = "the output and its index: give another name to one of them";
    else if (s->index_path && resume_is_an_input(p, index.name))
        problem = "an input and the index of the output: give another name to the index";
    if (problem) diag_error("'%s' cannot be both %s", s->index_path, problem);
    return problem ? -1 : 0;
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
    resume_look_at_output(p);
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
    if (p->input_is_cut || atomic_load(&p->stop_signal)) return resume_save_part(p);
    /* Only now, since workers that parse SAM look into the header, too. */
    if (sort_rules_update_header(&p->rules, p->any_placed, p->header) < 0) return header_error(p);
    progress_enter(p, SORT_PHASE_SETTLE);
    if (spill_to_fit(p) < 0 || resume_end_load(p) < 0 || !resume_may_write(p)) return -1;
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
    struct signal_watch signals;
    pthread_mutexattr_t checked;        /* the guard asks whether the thread has the lock itself */
    int error = pthread_mutexattr_init(&checked);
    if (!error) error = pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    if (!error) error = pthread_mutex_init(&p.lock, &checked);
    if (!error) error = pthread_cond_init(&p.changed, NULL);
    if (!error) error = signals_watch(&p, &signals);
    if (error) {
        diag_no_thread(error);
        return -1;
    }
    exception_guard_begin(clean_up_after_exception, &p);
    progress_start(&p);
    int r = run_phases(&p);
    durable_tell(&p, r);
    progress_enter(&p, SORT_PHASE_CLOSE);
    progress_stop(&p);
    if (r < 0) resume_try_record_again(&p);
    if (r == 0 && settings->keep_store) report->store_paths = p.scratch_paths;
    pipeline_lock(&p);
    p.over = true;
    p.keeps_store = r == 0 ? settings->keep_store : resume_keeps_store(&p, 0);
    pipeline_unlock(&p);
    signals_hold(&signals);
    /* A signal from here on waits until everything is gone, then takes its default course. */
    pipeline_lock(&p);          /* the thread that ends runs counts on until it is released */
    if (r < 0) resume_tell(&p, p.keeps_store);
    pipeline_unlock(&p);
    release_pipeline(&p);
    fill_report(&p);
    progress_finish(&p);
    exception_guard_end();
    signals_restore(&signals);
    /* Where the reader of standard output has gone, die as every filter does, now that all is
       clean; whoever ignores the signal gets the error. */
    if (p.lost_reader) (void)raise(SIGPIPE);
    if (p.stop_signal) (void)raise(p.stop_signal);
    return r;
}
