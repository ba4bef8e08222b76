/*
 * bam_sort.c -- one sort from beginning to end. See pipeline/bam_sort.h.
 *
 * Each part of a sort is an object with its own file below src/pipeline; sort_parts.h lists them.
 * This file runs the phases in order and decides how the sort ends.
 */
#include "pipeline/bam_sort.h"

#include "machine/exception_guard.h"
#include "pipeline/count_files.h"
#include "pipeline/early_end.h"
#include "pipeline/load.h"
#include "pipeline/merge_sorted.h"
#include "pipeline/prepare.h"
#include "pipeline/scan_runs.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Reads the input into sorted batches. When they fill the memory the spiller writes the oldest of
   them to the store, as runs. */
static int load_phase(struct sort_context *sort)
{
    bool may_spill = !sort->settings->sum_only;
    load_totals_set_loading(sort->totals, true);
    if (may_spill && spill_start(sort->spiller) < 0) return -1;
    int r = load_input(sort, 0);
    if (may_spill) spill_join(sort->spiller);
    if (r == 0 && crew_failed(sort->crew)) r = -1;
    return sort->verification ? verification_finish(sort->verification, r, sort->report) : r;
}

/* Spills batches until the merge has the memory that it needs, and waits until all runs have
   ended. */
static int settle_phase(struct sort_context *sort)
{
    struct load_counts read;
    if (spill_to_fit(sort->spiller) < 0) return -1;
    load_totals_look(sort->totals, &read);
    unsigned n_runs = spill_n_runs(sort->spiller);
    bool all_are_in_runs = batch_pool_n_kept(sort->pool) == 0;
    if (read.input_is_cut)
        checkpoint_writer_save_part(sort->checkpoint, n_runs);
    else if (all_are_in_runs && checkpoint_writer_end_load(sort->checkpoint, n_runs) < 0)
        return -1;
    /* If the input was cut off or a signal came, the sort fails; what was read has been saved. */
    if (read.input_is_cut || load_totals_stop_signal(sort->totals)) return -1;
    spill_check_output(sort->spiller);
    return checkpoint_writer_may_write(sort->checkpoint) ? 0 : -1;
}

/* The observers of records that are in runs. */
static struct record_observers observers_of_runs(const struct sort_context *sort)
{
    struct record_observers observers = sort->observers_in;
    record_observers_add(&observers, duplicates_observer(sort->duplicates));
    return observers;
}

/* Looks again at records that an earlier process has put into the store. */
static int scan_earlier_runs(struct sort_context *sort)
{
    struct mem_budget budget;
    batch_pool_budget(sort->pool, &budget);
    const struct record_observers observers = observers_of_runs(sort);
    const struct scan_stored_settings earlier = {
        .crew = sort->crew, .observers = &observers,
        .store = temp_store_runs(sort->store), .rules = &sort->rules,
        .n_refs = sam_hdr_nref(sort->header),
        .dropped_runs = sort->resume.dropped_runs, .n_dropped = sort->resume.n_dropped,
        .end_run = sort->first_own_run, .n_threads = sort->settings->n_threads,
        .queue_bytes = budget.total_bytes / 16,
    };
    return scan_stored_runs(&earlier);
}

/* Finds all duplicates, the ranges of pieces and the columns. */
static int decide_phase(struct sort_context *sort)
{
    struct spill_totals spilled;
    if (!sort->duplicates && !survey_is_needed(&sort->survey)) return 0;
    progress_enter(sort->progress, SORT_PHASE_MARK);
    if (sort->first_own_run > 0 && scan_earlier_runs(sort) < 0) return -1;
    if (survey_settle(&sort->survey, sort->split, sort->columns) < 0) return -1;
    if (!sort->duplicates) return 0;
    spill_look(sort->spiller, &spilled);
    struct kept_batches kept = {.crew = sort->crew, .n_threads = sort->settings->n_threads,
                                .first_run = spilled.next_run};
    kept.batches = batch_pool_kept(sort->pool, &kept.n);
    /* Nothing is loaded any more, and nothing merged yet. */
    size_t kept_bytes = batch_pool_kept_bytes(sort->pool), all = sort->budget.total_bytes;
    if (scan_kept_batches(&kept, &sort->observers_run) < 0 ||
        duplicates_resolve(sort->duplicates, kept_bytes < all ? all - kept_bytes : 0) < 0)
        return -1;
    return mark_kept_batches(&kept, sort->duplicates);
}

/* Merges what was loaded; or, with --merge, the inputs. */
static int merge_all(struct sort_context *sort)
{
    struct spill_totals spilled;
    struct load_counts read;
    spill_look(sort->spiller, &spilled);
    load_totals_look(sort->totals, &read);
    const struct merge_settings merge = {
        .crew = sort->crew, .pool = sort->pool, .store = temp_store_runs(sort->store),
        .dropped_runs = sort->resume.dropped_runs, .n_dropped = sort->resume.n_dropped,
        .next_run = spilled.next_run, .open_bytes = spilled.open_bytes, .rules = &sort->rules,
        .header = sort->header, .output = &sort->output, .totals = sort->totals,
        .duplicates = sort->duplicates, .sum = &read.sum,
        .resumed_path = sort->settings->resumed ? sort->settings->resumed->dirs[0].path : NULL,
        .observers = &sort->observers_out, .counts = &sort->merged,
    };
    if (!sort->settings->merge) return merge_to_output(&merge, &sort->sum_out);
    const struct record_observers observers = observers_of_runs(sort);
    const struct merge_sorted_settings sorted = {
        .merge = &merge, .sort = sort->settings, .inputs = sort->inputs,
        .duplicates = sort->duplicates, .observers = &observers, .survey = sort->survey,
        .columns = sort->columns,
        .split = sort->split, .budget = &sort->budget, .progress = sort->progress,
        .report = sort->report,
    };
    return merge_sorted(&sorted, &sort->sum_out);
}

/* Merges into the sorted output, and closes it. */
static int merge_phase(struct sort_context *sort)
{
    struct output_result results[MOST_OUTPUTS];
    progress_enter(sort->progress, SORT_PHASE_MERGE);
    int r = merge_all(sort);
    progress_enter(sort->progress, SORT_PHASE_CLOSE);
    r = sorted_output_close(&sort->output, r == 0, results);
    if (r == 0) sort_report_pieces(sort);
    if (r == 0) record_observers_finish(&sort->observers_out);
    if (r == 0) r = count_files_write(sort->settings->count_files, false);
    sort->lost_reader = results[0].lost_reader;
    sort->report->output_bytes = results[0].n_bytes;
    sort->report->also_bytes = results[1].n_bytes;
    sort->report->n_batches_kept = (unsigned)batch_pool_n_kept(sort->pool);
    return r;
}

static int run_phases(struct sort_context *sort)
{
    const struct sort_settings *s = sort->settings;
    bool reads_input = resume_reads_input(&sort->resume), nothing_to_check;
    if (prepare_outputs(sort) < 0 || crew_start(sort->crew, s->n_threads) < 0 ||
        prepare_inputs(sort) < 0 || prepare_rules(sort, &nothing_to_check) < 0)
        return -1;
    if (nothing_to_check) return 0;
    if (s->merge) return prepare_output_header(sort) < 0 ? -1 : merge_phase(sort);
    if (reads_input && (batch_pool_open(sort->pool, &sort->rules) < 0 || load_phase(sort) < 0))
        return -1;
    if (s->sum_only) return 0;
    /* The header must not change before this: workers read it while they parse SAM. */
    if (prepare_output_header(sort) < 0) return -1;
    progress_enter(sort->progress, SORT_PHASE_SETTLE);
    if (settle_phase(sort) < 0 || decide_phase(sort) < 0) return -1;
#ifdef __GLIBC__
    (void)malloc_trim(0);       /* the merge needs blocks of other sizes */
#endif
    return merge_phase(sort);
}

int sort_run(const struct sort_settings *settings, struct sort_report *report)
{
    struct sort_context sort;
    if (sort_init(&sort, settings, report) < 0) return -1;
    struct early_end early_end = {
        .crew = sort.crew, .pool = sort.pool, .totals = sort.totals,
        .checkpoint = sort.checkpoint, .store = sort.store, .outputs = &sort.outputs,
        .pieces = &sort.pieces_dir,
    };
    if (early_end_watch(&early_end) < 0) {
        sort_close_store(&sort, false);
        sort_close(&sort, false);
        sort_release(&sort);
        return -1;
    }
    sort.progress = sort_start_progress(&sort);
    int r = run_phases(&sort);
    checkpoint_writer_tell_failed_sync(sort.checkpoint, r);
    progress_enter(sort.progress, SORT_PHASE_CLOSE);
    progress_stop(sort.progress);
    cut_names_warn(&sort.cut_names);
    if (r < 0) checkpoint_writer_try_again(sort.checkpoint, spill_n_runs(sort.spiller));
    signals_hold(&early_end.signals);
    bool stay = r == 0 ? settings->keep_checkpoint
                       : early_end_after_failure(&early_end, sort.lost_reader);
    int stop_signal = load_totals_stop_signal(sort.totals), before = r;
    sort_close_store(&sort, stay);
    progress_enter(sort.progress, SORT_PHASE_CLOSE);    /* the reports know its time until here */
    sort_publish(&sort, &r);
    if (r < before) stay = early_end_after_failure(&early_end, false);
    if (r == 0 && stay) report->kept_directories = checkpoint_writer_copy_paths(sort.checkpoint);
    sort_close(&sort, stay);
    exception_guard_end();
    early_end_tell_complete(&early_end);
    signals_restore(&early_end.signals);
    if (r == 0) r = count_files_write(settings->count_files, true);
    sort_release(&sort);
    progress_finish(sort.progress);
    /* If the reader of standard output has gone, the process dies of SIGPIPE, as other filters do;
       everything is cleaned up by now. If SIGPIPE is ignored, the error is returned. */
    if (sort.lost_reader) (void)raise(SIGPIPE);
    if (stop_signal) (void)raise(stop_signal);
    return r;
}
