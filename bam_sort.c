/*
 * bam_sort.c -- one sort from beginning to end. See pipeline/bam_sort.h.
 *
 * Everything that a sort works with is an object of its own, in a file of its own below
 * src/pipeline. This file makes them, runs the phases in order, and cleans up.
 */
#include "pipeline/bam_sort.h"

#include "bam/bam_record.h"
#include "machine/exception_guard.h"
#include "order/minhash_index.h"
#include "pipeline/early_end.h"
#include "pipeline/load.h"
#include "pipeline/merge.h"
#include "pipeline/progress.h"
#include "pipeline/resume.h"
#include "util/diag.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>

struct sort {
    const struct sort_settings *settings;
    struct sort_report *report;
    struct mem_budget budget;           /* as it is when the sort begins */
    struct sort_rules rules;
    struct rules_maker rules_maker;
    struct crew *crew;
    struct batch_pool *pool;
    struct load_totals *totals;
    struct checkpoint_writer *checkpoint;
    struct temp_store *store;
    struct spiller *spiller;
    struct resume resume;
    struct bam_inputs *inputs;
    sam_hdr_t *header;
    struct verification *verification;  /* NULL: nothing is verified */
    struct output_path output_path, index_path; /* set with the lock held */
    struct sorted_output output;
    struct merge_counts merged;         /* under the lock */
    struct content_sum sum_out;
    bool lost_reader;                   /* standard output was closed by who reads it */
    struct progress *progress;
};

/* ---- preparations ---- */

/* What a sort that only reads needs at the most, and in addition for each thread. */
enum { SUM_BYTES = 32 << 20, SUM_THREAD_BYTES = 16 << 20 };

static void plan_memory(struct sort *sort, size_t total_bytes)
{
    const struct sort_settings *s = sort->settings;
    struct mem_budget *budget = &sort->budget;
    /* Nothing is kept: batches that stay in the cache are better than many. */
    size_t enough = SUM_BYTES + SUM_THREAD_BYTES * (size_t)s->n_threads;
    if (s->sum_only && total_bytes > enough) total_bytes = enough;
    mem_budget_plan(budget, total_bytes, s->n_threads);
    if (!s->test_batch_bytes) return;
    budget->batch_bytes = (size_t)s->test_batch_bytes;
    budget->run_batches = budget->full_batches = budget->first_full_batches = 1;
}

static int create_objects(struct sort *sort)
{
    const struct sort_settings *s = sort->settings;
    sort->crew = crew_create();
    if (!sort->crew) return -1;
    sort->pool = batch_pool_create(sort->crew, &sort->budget);
    sort->totals = load_totals_create(sort->crew, s->input_bytes);
    sort->resume = (struct resume){.checkpoint = s->resumed, .partial = s->partial};
    sort->rules_maker = (struct rules_maker){
        .header_name = s->resumed ? s->resumed->dirs[0].path : s->inputs[0],
        /* Runs of an earlier process have the values of their records. */
        .fasta = resume_reads_input(&sort->resume) ? s->minhash_fasta : NULL,
        .minhash_window = s->minhash_window,
    };
    struct checkpoint_settings checkpoint = {
        .crew = sort->crew, .totals = sort->totals, .inputs = s->inputs, .n_inputs = s->n_inputs,
        .temp_prefixes = s->temp_prefixes, .n_temp_prefixes = s->n_temp_prefixes,
        .output = s->output, .index = s->index_path, .output_path = &sort->output_path,
        .index_path = &sort->index_path, .asked_output = &s->asked_output, .rules = &s->rules,
        .fasta = s->minhash_fasta, .minhash_window = s->minhash_window, .keeps = s->keep_store,
        .no_resume = s->no_resume, .sum_only = s->sum_only, .resumed = s->resumed,
        .partial = s->partial,
    };
    sort->checkpoint = checkpoint_writer_create(&checkpoint);
    struct temp_store_settings store = {
        .crew = sort->crew, .pool = sort->pool, .totals = sort->totals,
        .checkpoint = sort->checkpoint, .compaction = s->compaction, .resumed = s->resumed,
        .reads_input = resume_reads_input(&sort->resume), .no_resume = s->no_resume,
        .durable_after_seconds = s->durable_after_seconds,
    };
    sort->store = temp_store_create(&store);
    struct spill_settings spill = {
        .crew = sort->crew, .pool = sort->pool, .totals = sort->totals,
        .checkpoint = sort->checkpoint, .store = sort->store, .rules = &sort->rules,
        .was_told_size = s->input_bytes > 0, .codec_auto = s->codec_auto, .codec = s->codec,
        .n_threads = s->n_threads,
    };
    sort->spiller = spill_create(&spill);
    sort->output = (struct sorted_output){.settings = {
        .path = &sort->output_path, .index_path = &sort->index_path, .format = s->output_format,
        .level = s->level, .pool = crew_pool(sort->crew),
    }};
    return 0;
}

static int choose_outputs(struct sort *sort)
{
    const struct sort_settings *s = sort->settings;
    struct output_path output = {0}, index = {0};
    if (s->output && output_path_choose(&output, s->output) < 0) return -1;
    if (s->index_path && output_path_choose(&index, s->index_path) < 0) {
        output_path_release(&output);
        return -1;
    }
    output.lock = index.lock = crew_mutex(sort->crew);
    output.durable = index.durable = s->durable;
    crew_lock(sort->crew);
    sort->output_path = output;
    sort->index_path = index;
    crew_unlock(sort->crew);
    checkpoint_writer_look_at_output(sort->checkpoint);
    const char *problem = NULL;
    if (output_path_same(&output, &index))
        problem = "the output and its index: give another name to one of them";
    else if (s->index_path && checkpoint_writer_is_input(sort->checkpoint, index.name))
        problem = "an input and the index of the output: give another name to the index";
    if (problem) diag_error("'%s' cannot be both %s", s->index_path, problem);
    return problem ? -1 : 0;
}

/* Takes over what another process left. */
static int open_checkpoint(struct sort *sort)
{
    struct load_counts counts;
    struct spill_totals spilled;
    if (resume_open(&sort->resume, sort->checkpoint, sort->store, sort->totals,
                    sort->spiller) < 0)
        return -1;
    sort->header = sort->resume.header;
    load_totals_look(sort->totals, &counts);
    spill_look(sort->spiller, &spilled);
    if (resume_check_part(&sort->resume, sort->checkpoint, &sort->output_path,
                          counts.sum.n_records) < 0)
        return -1;
    return checkpoint_writer_adopted(sort->checkpoint,
                                     run_store_n_lanes(temp_store_runs(sort->store)),
                                     spilled.n_runs);
}

static int open_inputs(struct sort *sort)
{
    const struct sort_settings *s = sort->settings;
    sort->inputs = bam_inputs_open(s->inputs, s->n_inputs, &s->input_format,
                                   crew_pool(sort->crew));
    if (!sort->inputs) return -1;
    if (s->resumed) return resume_open_inputs(&sort->resume, sort->inputs, sort->totals);
    sort->header = bam_inputs_header(sort->inputs);
    if (s->add_pg && rules_add_program(&sort->rules_maker, sort->header, s->command_line) < 0)
        return -1;
    return checkpoint_writer_remember_inputs(sort->checkpoint, sort->inputs, sort->header);
}

/* An index of references takes memory of the budget. */
static void plan_around_minhash_index(struct sort *sort)
{
    size_t total = sort->settings->memory_bytes;
    if (!sort->rules_maker.minhash_index) return;
    size_t n_bytes = minhash_index_bytes(sort->rules_maker.minhash_index);
    if (n_bytes > total / 2) {
        diag_warning("the index of '%s' takes %zu MiB of memory, more than half of what may be "
                     "used: give more with -m, or a larger -w", sort->settings->minhash_fasta,
                     n_bytes >> 20);
        n_bytes = total / 2;    /* a sort in less than half of the memory would help nobody */
    }
    plan_memory(sort, total - n_bytes);
    batch_pool_set_budget(sort->pool, &sort->budget);
}

/* Sets *nothing_to_check if the header claims no order that could be verified. */
static int prepare_rules(struct sort *sort, bool *nothing_to_check)
{
    const struct sort_settings *s = sort->settings;
    *nothing_to_check = false;
    if (s->sum_only) {          /* no order is the cheapest */
        sort->rules.long_positions = bam_header_long_reference(sort->header) >= 0;
    } else {
        sort->rules = s->rules;
        if (rules_check_format(sort->header, s->output_format.format) < 0 ||
            rules_complete(&sort->rules_maker, sort->header, &sort->rules) < 0)
            return -1;
    }
    if (s->verify) {
        struct verify_settings verify = {s->inputs[0], s->verify_claim, &s->rules};
        if (verification_create(sort->crew, &verify, &sort->rules_maker, sort->header,
                                &sort->verification) < 0)
            return -1;
        *nothing_to_check = !sort->verification;
    }
    plan_around_minhash_index(sort);
    return sorted_output_create_index(&sort->output, sort->header);
}

/* ---- the phases ---- */

static int load_phase(struct sort *sort)
{
    const struct sort_settings *s = sort->settings;
    bool may_spill = !s->sum_only;
    struct load_settings load = {
        .crew = sort->crew, .pool = sort->pool, .totals = sort->totals, .inputs = sort->inputs,
        .n_inputs = s->n_inputs, .n_refs = sam_hdr_nref(sort->header),
        .start = sort->resume.start, .budget = &sort->budget, .rules = &sort->rules,
        .verification = sort->verification, .sum_only = s->sum_only,
        .saves_part = checkpoint_writer_saves_part(sort->checkpoint),
        .asked_bytes = s->input_bytes,
        .space = {.nothing_is_written = s->sum_only, .output_format = &s->output_format,
                  .level = s->level, .output = sort->output_path.final,
                  .codec_auto = s->codec_auto, .codec = s->codec,
                  .memory_bytes = sort->budget.total_bytes, .temp_prefixes = s->temp_prefixes,
                  .n_temp_prefixes = s->n_temp_prefixes},
    };
    load_totals_set_loading(sort->totals, true);
    if (may_spill && spill_start(sort->spiller) < 0) return -1;
    int r = load_input(&load);
    if (may_spill) spill_join(sort->spiller);
    if (r == 0 && crew_failed(sort->crew)) r = -1;
    if (sort->verification) r = verification_finish(sort->verification, r, sort->report);
    return r;
}

/* After an input that ended early: puts all that came into the store. The sort has failed. */
static int save_part(struct sort *sort, bool is_cut)
{
    struct spill_totals spilled;
    if (spill_to_fit(sort->spiller) < 0) return -1;
    spill_look(sort->spiller, &spilled);
    if (is_cut)
        checkpoint_writer_save_part(sort->checkpoint, spilled.n_runs);
    else
        (void)checkpoint_writer_end_load(sort->checkpoint, spilled.n_runs);
    return -1;
}

/* Spills what the merge has no memory for, and waits for the store. */
static int settle_phase(struct sort *sort)
{
    struct spill_totals spilled;
    if (spill_to_fit(sort->spiller) < 0) return -1;
    spill_look(sort->spiller, &spilled);
    bool all_are_in_runs = batch_pool_n_kept(sort->pool) == 0;
    if (all_are_in_runs && checkpoint_writer_end_load(sort->checkpoint, spilled.n_runs) < 0)
        return -1;
    return checkpoint_writer_may_write(sort->checkpoint) ? 0 : -1;
}

static int merge_phase(struct sort *sort)
{
    struct run_store *store = temp_store_runs(sort->store);
    struct load_counts counts;
    struct spill_totals spilled;
    struct output_result result;
    size_t n_kept;
    load_totals_look(sort->totals, &counts);
    spill_look(sort->spiller, &spilled);
    struct merge_settings merge = {
        .crew = sort->crew, .pool = sort->pool, .store = store,
        .dropped_runs = sort->resume.dropped_runs, .n_dropped = sort->resume.n_dropped,
        .next_run = spilled.next_run, .open_bytes = spilled.open_bytes, .rules = &sort->rules,
        .header = sort->header, .output = &sort->output, .sum = &counts.sum,
        .resumed_path = sort->settings->resumed ? sort->settings->resumed->dirs[0].path : NULL,
        .counts = &sort->merged,
    };
    int r = merge_to_output(&merge, &sort->sum_out);
    progress_enter(sort->progress, SORT_PHASE_CLOSE);
    r = sorted_output_close(&sort->output, r == 0, &result);
    sort->lost_reader = result.lost_reader;
    sort->report->output_bytes = result.n_bytes;
    (void)batch_pool_kept(sort->pool, &n_kept);
    sort->report->n_batches_kept = (unsigned)n_kept;
    if (store) run_store_stats(store, &sort->report->store);
    return r;
}

static int run_phases(struct sort *sort)
{
    const struct sort_settings *s = sort->settings;
    bool reads_input = resume_reads_input(&sort->resume), nothing_to_check;
    struct load_counts counts;
    if (choose_outputs(sort) < 0 || crew_start(sort->crew, s->n_threads) < 0) return -1;
    if (s->resumed && open_checkpoint(sort) < 0) return -1;
    if (reads_input && open_inputs(sort) < 0) return -1;
    if (prepare_rules(sort, &nothing_to_check) < 0) return -1;
    if (nothing_to_check) return 0;
    if (reads_input && batch_pool_open(sort->pool, &sort->rules) < 0) return -1;
    sort->report->budget = sort->budget;
    if (reads_input && load_phase(sort) < 0) return -1;
    if (s->sum_only) return 0;
    load_totals_look(sort->totals, &counts);
    if (counts.input_is_cut || load_totals_stop_signal(sort->totals))
        return save_part(sort, counts.input_is_cut);
    /* Only now: workers that parse SAM look into the header, too. */
    if (sort_rules_update_header(&sort->rules, counts.any_placed, sort->header) < 0)
        return rules_header_error(sort->rules_maker.header_name);
    progress_enter(sort->progress, SORT_PHASE_SETTLE);
    if (settle_phase(sort) < 0) return -1;
#ifdef __GLIBC__
    (void)malloc_trim(0);       /* merging allocates anew, in other sizes */
#endif
    progress_enter(sort->progress, SORT_PHASE_MERGE);
    return merge_phase(sort);
}

/* ---- the end ---- */

/* Called by the thread that shows progress. */
static void look(void *arg, struct progress_counts *counts)
{
    struct sort *sort = arg;
    crew_lock(sort->crew);
    const struct load_counts *read = load_totals_locked(sort->totals);
    const struct spill_totals *spilled = spill_locked(sort->spiller);
    *counts = (struct progress_counts){
        .records_in = read->sum.n_records, .raw_bytes_in = read->sum.n_bytes,
        .raw_bytes_before = read->raw_bytes_before, .file_bytes = read->file_bytes,
        .file_bytes_read = read->file_bytes_read, .file_bytes_before = read->file_bytes_before,
        .n_runs = spilled->n_runs, .spilled_bytes = spilled->raw_bytes,
        .records_out = sort->merged.n_records, .raw_bytes_out = sort->merged.raw_bytes,
        .output_bytes = sort->merged.output_bytes,
    };
    crew_unlock(sort->crew);
}

/* What was counted, with no thread left that counts. */
static void fill_report(struct sort *sort)
{
    struct sort_report *report = sort->report;
    struct load_counts counts;
    struct spill_totals spilled;
    const struct codec_chooser *codecs = spill_codecs(sort->spiller);
    load_totals_look(sort->totals, &counts);
    spill_look(sort->spiller, &spilled);
    crew_waits(sort->crew, report->waits);
    report->n_records = counts.sum.n_records;
    report->raw_bytes = counts.sum.n_bytes;
    report->checksum = counts.sum.hash;
    report->input_bytes = counts.file_bytes_read;
    report->n_records_out = sort->sum_out.n_records;
    report->spilled_bytes = spilled.raw_bytes;
    report->codec_reason = codecs->reason;
    for (size_t i = 0; i < TEMP_CODEC_COUNT; i++)
        report->runs_of_codec[i] = codecs->runs_of_codec[i];
    crew_lock(sort->crew);
    struct run_ender *ender = temp_store_ender(sort->store);
    if (ender) {
        report->waits[WAIT_SPILLER_RUNS] = run_ender_seconds(ender).wait;
        report->waits[WAIT_RUNS_DISK] = run_ender_seconds(ender).end;
    }
    crew_unlock(sort->crew);
}

/* After a failure: the record of the checkpoint may be written now, if it could not be before. */
static void try_record_again(struct sort *sort)
{
    struct spill_totals spilled;
    spill_look(sort->spiller, &spilled);
    checkpoint_writer_try_again(sort->checkpoint, spilled.n_runs);
}

/* Decides what becomes of the temporary directories, and says so. Returns whether they stay. */
static bool end_directories(struct sort *sort, int result)
{
    struct checkpoint_writer *checkpoint = sort->checkpoint;
    bool stay = sort->settings->keep_store;
    crew_lock(sort->crew);      /* the ender of runs counts on until it is closed */
    unsigned n_durable = temp_store_n_durable(sort->store);
    if (result < 0) {
        stay = checkpoint_writer_keeps(checkpoint, 0, n_durable);
        checkpoint_writer_tell(checkpoint, stay, n_durable);
    }
    crew_unlock(sort->crew);
    return stay;
}

/* All ways out of a sort lead here, with all jobs done. */
static void release(struct sort *sort, bool directories_stay)
{
    batch_pool_destroy(sort->pool);
    temp_store_close(sort->store, directories_stay);
    fill_report(sort);
    bam_inputs_close(sort->inputs);
    if (!directories_stay) checkpoint_writer_remove_directories(sort->checkpoint);
    spill_destroy(sort->spiller);
    temp_store_destroy(sort->store);
    verification_destroy(sort->verification);
    bam_index_destroy(sort->output.index);
    rules_release(&sort->rules_maker);
    checkpoint_writer_destroy(sort->checkpoint);
    resume_release(&sort->resume);
    load_totals_destroy(sort->totals);
    crew_destroy(sort->crew);
    output_path_release(&sort->output_path);
    output_path_release(&sort->index_path);
}

static struct progress_settings progress_settings(struct sort *sort)
{
    const struct sort_settings *s = sort->settings;
    return (struct progress_settings){
        .prints = s->progress, .print_seconds = s->progress_seconds, .samples = s->sample,
        .uses_stdout = !s->output && !s->sum_only, .writes_index = s->index_path != NULL,
        .look = look, .arg = sort, .report = sort->report,
    };
}

int sort_run(const struct sort_settings *settings, struct sort_report *report)
{
    struct sort sort = {.settings = settings, .report = report};
    *report = (struct sort_report){.begun = time(NULL)};
    plan_memory(&sort, settings->memory_bytes);
    if (create_objects(&sort) < 0) return -1;
    struct early_end early_end = {sort.crew, sort.pool, sort.totals, sort.checkpoint, sort.store,
                                  &sort.output_path, &sort.index_path};
    struct signal_watch signals = {.on_signal = early_end_on_signal, .arg = &early_end};
    int error = signals_watch(&signals);
    if (error) {
        diag_no_thread(error);
        release(&sort, false);
        return -1;
    }
    exception_guard_begin(early_end_after_exception, &early_end);
    const struct progress_settings progress = progress_settings(&sort);
    sort.progress = progress_start(&progress);
    int r = run_phases(&sort);
    temp_store_tell(sort.store, r);
    progress_enter(sort.progress, SORT_PHASE_CLOSE);
    progress_stop(sort.progress);
    if (r < 0) try_record_again(&sort);
    /* A signal from here on waits until everything is gone, then takes its default course. */
    signals_hold(&signals);
    bool stay = end_directories(&sort, r);
    int stop_signal = load_totals_stop_signal(sort.totals);
    if (r == 0 && stay) report->store_paths = checkpoint_writer_take_paths(sort.checkpoint);
    release(&sort, stay);
    progress_finish(sort.progress);
    exception_guard_end();
    signals_restore(&signals);
    /* Where the reader of standard output has gone, die as every filter does, now that all is
       clean. If the signal is ignored the user gets the error. */
    if (sort.lost_reader) (void)raise(SIGPIPE);
    if (stop_signal) (void)raise(stop_signal);
    return r;
}
