/*
 * bam_sort.c -- runs the phases of one sort in order and decides how it ends. See sort/bam_sort.h.
 *
 * Each part of a sort is an object with its own file; sort_context.h lists them.
 */
#include "sort/bam_sort.h"

#include "os/exception_guard.h"
#include "output/count_files.h"
#include "resume/abort_cleanup.h"
#include "sort/load.h"
#include "sort/merge.h"
#include "sort/merge_sorted.h"
#include "sort/prepare.h"
#include "sort/progress.h"
#include "sort/scan_runs.h"
#include "sort/spiller.h"
#include "sort/verify.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Reads the input into sort buffers and sorts these. When they fill the memory, the spiller writes
   the oldest ones to the store as runs. */
static int load_phase(struct sort_context *sort)
{
    bool may_spill = !sort->settings->sum_only;
    load_totals_set_loading(sort->totals, true);
    if (may_spill && spill_start(sort) < 0) return -1;
    int r = load_input(sort, 0);
    if (may_spill) spill_join(sort);
    if (r == 0 && thread_pool_failed(sort->threads)) r = -1;
    return sort->verification ? verification_finish(sort->verification, r, sort->report) : r;
}

/* Spills sort buffers until the merge has enough memory, and waits until all runs are committed. */
static int settle_phase(struct sort_context *sort)
{
    struct load_counts read;
    if (spill_to_fit(sort) < 0) return -1;
    load_totals_look(sort->totals, &read);
    unsigned n_runs = sort->spiller.totals.n_runs;
    bool all_are_in_runs = sort_buffer_pool_n_kept(sort->pool) == 0;
    if (read.input_is_cut)
        checkpoint_writer_save_part(sort->checkpoint, n_runs);
    else if (all_are_in_runs && checkpoint_writer_end_load(sort->checkpoint, n_runs) < 0)
        return -1;
    /* If the input was truncated or a signal came, the sort fails; the records read are saved. */
    if (read.input_is_cut || sort->totals->stop_signal) return -1;
    spill_check_output(sort);
    return checkpoint_writer_may_write(sort->checkpoint) ? 0 : -1;
}

/* Returns the observers of records in runs. */
static struct record_observers observers_of_runs(const struct sort_context *sort)
{
    struct record_observers observers = sort->observers_in;
    record_observers_add(&observers, markdup_observer(sort->duplicates));
    return observers;
}

/* Resolves duplicates, the groups of the output and the columns. */
static int resolve_phase(struct sort_context *sort)
{
    const struct record_observers observers = observers_of_runs(sort);
    if (!sort->duplicates && !input_scan_is_needed(&sort->scan)) return 0;
    progress_enter(sort->progress, SORT_PHASE_MARK);
    if (sort->first_own_run > 0 && scan_earlier_runs(sort, &observers) < 0) return -1;
    if (input_scan_settle(&sort->scan, sort->split, sort->columns) < 0) return -1;
    if (!sort->duplicates) return 0;
    /* The load has ended and the merge has not begun. */
    size_t kept_bytes = sort_buffer_pool_kept_bytes(sort->pool), all = sort->budget.total_bytes;
    return scan_kept_buffers(sort) < 0
               ? -1 : markdup_resolve(sort->duplicates, kept_bytes < all ? all - kept_bytes : 0);
}

/* Merges the runs and sort buffers or, with --merge, the inputs. */
static int merge_all(struct sort_context *sort)
{
    if (!sort->settings->merge) return merge_to_output(sort, NULL, &sort->sum_out);
    const struct record_observers observers = observers_of_runs(sort);
    return merge_sorted(sort, &observers, &sort->sum_out);
}

/* Merges into the sorted output, and closes it. */
static int merge_phase(struct sort_context *sort)
{
    struct output_result results[MOST_OUTPUTS];
    progress_enter(sort->progress, SORT_PHASE_MERGE);
    int r = merge_all(sort);
    progress_enter(sort->progress, SORT_PHASE_CLOSE);
    r = sorted_output_close(&sort->output, r == 0, results);
    if (r == 0) sort_report_groups(sort);
    if (r == 0) record_observers_finish(&sort->observers_out);
    if (r == 0) r = count_files_write(sort->settings->count_files, false);
    sort->lost_reader = results[0].lost_reader;
    sort->report->output_bytes = results[0].n_bytes;
    sort->report->also_bytes = results[1].n_bytes;
    sort->report->n_buffers_kept = (unsigned)sort_buffer_pool_n_kept(sort->pool);
    return r;
}

static int run_phases(struct sort_context *sort)
{
    const struct sort_settings *s = sort->settings;
    bool reads_input = resume_reads_input(&sort->resume), nothing_to_check;
    if (prepare_outputs(sort) < 0 || thread_pool_start(sort->threads, s->n_threads) < 0 ||
        prepare_inputs(sort) < 0 || prepare_rules(sort, &nothing_to_check) < 0)
        return -1;
    if (nothing_to_check) return 0;
    if (s->merge) return prepare_output_header(sort) < 0 ? -1 : merge_phase(sort);
    if (reads_input &&
        (sort_buffer_pool_open(sort->pool, &sort->rules) < 0 || load_phase(sort) < 0))
        return -1;
    if (s->sum_only) return 0;
    /* The header must not change earlier: workers read it while they parse SAM. */
    if (prepare_output_header(sort) < 0) return -1;
    progress_enter(sort->progress, SORT_PHASE_SETTLE);
    if (settle_phase(sort) < 0 || resolve_phase(sort) < 0) return -1;
#ifdef __GLIBC__
    (void)malloc_trim(0);       /* the merge allocates other sizes */
#endif
    return merge_phase(sort);
}

int sort_run(const struct sort_settings *settings, struct sort_report *report)
{
    struct sort_context sort;
    sort_init(&sort, settings, report);
    struct abort_cleanup abort_cleanup = {
        .threads = sort.threads, .pool = sort.pool, .totals = sort.totals,
        .checkpoint = sort.checkpoint, .store = sort.store, .outputs = &sort.outputs,
        .groups = &sort.groups_dir,
    };
    if (abort_cleanup_watch(&abort_cleanup) < 0) {
        sort_close_store(&sort, false);
        sort_close(&sort, false);
        sort_release(&sort);
        return -1;
    }
    sort.progress = progress_start(&sort);
    int r = run_phases(&sort);
    checkpoint_writer_tell_failed_sync(sort.checkpoint, r);
    progress_enter(sort.progress, SORT_PHASE_CLOSE);
    progress_stop(sort.progress);
    cut_names_warn(&sort.cut_names);
    if (r < 0) checkpoint_writer_try_again(sort.checkpoint, sort.spiller.totals.n_runs);
    abort_cleanup_hold_signals(&abort_cleanup);
    bool stay = r == 0 ? settings->keep_checkpoint
                       : abort_cleanup_after_failure(&abort_cleanup, sort.lost_reader);
    int stop_signal = sort.totals->stop_signal, before = r;
    sort_close_store(&sort, stay);
    progress_enter(sort.progress, SORT_PHASE_CLOSE);    /* its time is reported up to here */
    sort_publish(&sort, &r);
    if (r < before) stay = abort_cleanup_after_failure(&abort_cleanup, false);
    if (r == 0 && stay) report->kept_directories = checkpoint_writer_copy_paths(sort.checkpoint);
    sort_close(&sort, stay);
    exception_guard_end();
    abort_cleanup_tell_complete(&abort_cleanup);
    abort_cleanup_restore_signals(&abort_cleanup);
    if (r == 0) r = count_files_write(settings->count_files, true);
    sort_release(&sort);
    progress_finish(sort.progress);
    /* Everything is cleaned up by now. If the reader of standard output is gone, the process dies
       of SIGPIPE, like other filters; if SIGPIPE is ignored, returns the error. */
    if (sort.lost_reader) (void)raise(SIGPIPE);
    if (stop_signal) (void)raise(stop_signal);
    return r;
}
