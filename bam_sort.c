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
#include "sort/sorted_output.h"
#include "sort/spiller.h"
#include "sort/verify.h"
#include "util/diag.h"

#include <inttypes.h>

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
    progress_enter(sort->progress, SORT_PHASE_SETTLE);
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

/* Checks that the output has the records of the input. */
static int check_content(const struct sort_context *sort)
{
    struct load_counts read;
    const struct content_sum *in = &read.sum, *out = &sort->sum_out;
    const struct checkpoint *resumed = sort->settings->resumed;
    load_totals_look(sort->totals, &read);
    if (content_sum_equal(in, out)) return 0;
    if (resumed)
        diag_error_of(DIAG_DAMAGE, "the temporary data in '%s' are damaged: they have %" PRIu64
                      " of %" PRIu64 " records, or other records; sort the input again",
                      resumed->dirs[0].path, out->n_records, in->n_records);
    else
        diag_error("the output differs from the input: %" PRIu64 " records in, %" PRIu64
                   " out, checksums %016" PRIx64 " and %016" PRIx64 "; please report this",
                   in->n_records, out->n_records, in->hash, out->hash);
    return -1;
}

/* Merges the runs and sort buffers or, with --merge, the inputs into the sorted output, and closes
   it. */
static int merge_phase(struct sort_context *sort)
{
    progress_enter(sort->progress, SORT_PHASE_MERGE);
    int r = sort->settings->merge ? merge_sorted(sort) : merge_to_output(sort, NULL, 0);
    if (r == 0) r = check_content(sort);
    progress_enter(sort->progress, SORT_PHASE_CLOSE);
    r = sorted_output_close(sort, r == 0);
    if (r == 0) sort->report->groups = sort->groups;
    if (r == 0) r = count_files_write(sort->settings->counts, false);
    sort->report->output_bytes = sort->output.files[0].n_bytes;
    sort->report->also_bytes = sort->output.files[1].n_bytes;
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
    if (reads_input && !s->merge &&
        (sort_buffer_pool_open(sort->pool, &sort->rules, false) < 0 || load_phase(sort) < 0))
        return -1;
    if (s->sum_only) return 0;
    /* The header must not change earlier: workers read it while they parse SAM. */
    if (prepare_output_header(sort) < 0) return -1;
    if ((!s->merge && settle_phase(sort) < 0) || resolve_before_merge(sort) < 0) return -1;
#ifdef __GLIBC__
    (void)malloc_trim(0);       /* the merge needs blocks of other sizes */
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
    bool lost_reader = sort.output.files[0].lost_reader;
    checkpoint_writer_tell_failed_sync(sort.checkpoint, r);
    progress_enter(sort.progress, SORT_PHASE_CLOSE);
    progress_stop(sort.progress);
    cut_names_warn(&sort.cut_names);
    if (r < 0) checkpoint_writer_try_again(sort.checkpoint, sort.spiller.totals.n_runs);
    abort_cleanup_hold_signals(&abort_cleanup);
    bool stay = r == 0 ? settings->keep_checkpoint
                       : abort_cleanup_after_failure(&abort_cleanup, lost_reader);
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
    if (r == 0) r = count_files_write(settings->counts, true);
    sort_release(&sort);
    progress_finish(sort.progress);
    /* Everything is cleaned up by now. If the reader of standard output is gone, the process dies
       of SIGPIPE, like other filters; if SIGPIPE is ignored, returns the error. */
    if (lost_reader) (void)raise(SIGPIPE);
    if (stop_signal) (void)raise(stop_signal);
    return r;
}
