/* scan_runs.c -- see scan_runs.h. */
#include "sort/scan_runs.h"

#include "bam/bam_check.h"
#include "input/record_entries.h"
#include "os/memory.h"
#include "sort/progress.h"
#include "spill/run_reader.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* A block of a run, or records [from, to) of a sort buffer. */
struct scan_job {
    struct thread_pool_slot slot;
    const struct sort_context *sort;
    const struct record_observers *observers;
    struct stored_block *block;
    struct sort_buffer *buffer;
    uint32_t run;               /* of the sort buffer */
    size_t from, to;
};

struct scan {
    struct threads *threads;
    struct scan_job *jobs;
    unsigned n_jobs;
};

static struct scan begin_scan(const struct sort_context *sort,
                              const struct record_observers *observers)
{
    struct scan scan = {.threads = sort->threads, .n_jobs = 2 * sort->settings->n_threads};
    scan.jobs = xcalloc(scan.n_jobs, sizeof *scan.jobs);
    for (unsigned i = 0; i < scan.n_jobs; i++)
        scan.jobs[i] = (struct scan_job){.sort = sort, .observers = observers};
    return scan;
}

static struct scan_job *take_job(const struct scan *scan)
{
    return thread_pool_take_slot(scan->threads, scan->jobs, scan->n_jobs, sizeof *scan->jobs);
}

static int end_scan(struct scan *scan, int r)
{
    if (r < 0) thread_pool_fail(scan->threads);
    r = thread_pool_finish_jobs(scan->threads);
    for (unsigned i = 0; i < scan->n_jobs; i++) stored_block_free(scan->jobs[i].block);
    free(scan->jobs);
    return r;
}

/* ---- runs in the store ---- */

static void release_coder(void *coder)
{
    temp_coder_release(coder);
}

static const struct scratch_kind coder_kind = {sizeof(struct temp_coder), release_coder};

static int scan_block(struct worker *worker, void *item)
{
    struct scan_job *job = item;
    struct stored_block *block = job->block;
    size_t keyed_bytes;
    int r = -1;
    uint8_t *raw =
        stored_block_unpack(block, &job->sort->rules, sam_hdr_nref(job->sort->header),
                            worker_scratch(worker, &coder_kind), &keyed_bytes);
    if (raw) {
        const struct observed_records records = {
            .all = {raw, raw + block->parsed.raw_bytes}, .run = block->run,
            .first_record = block->first_index, .ordinals = block->parsed.ordinals};
        r = record_observers_look(job->observers, &records);
    }
    free(raw);
    stored_block_free(block);
    job->block = NULL;
    return r;
}

/* Scans the next block of a run reader, unless this process wrote it. Returns 1, 0 after the last
   one, or -1. */
static int scan_next(const struct scan *scan, struct run_readers *run_readers, size_t i,
                     uint32_t end_run)
{
    struct stored_block *block;
    int r = run_readers_first(run_readers, i, &block);
    if (r <= 0) return r;
    block = run_readers_take(run_readers, i);
    struct scan_job *job = block->run < end_run ? take_job(scan) : NULL;
    if (!job) {
        r = block->run < end_run ? -1 : 1;
        stored_block_free(block);
        return r;
    }
    job->block = block;
    return thread_pool_submit_slot(scan->threads, &job->slot, scan_block) < 0 ? -1 : 1;
}

static int scan_earlier_runs(const struct sort_context *sort,
                             const struct record_observers *observers)
{
    struct memory_budget budget;
    sort_buffer_pool_budget(sort->pool, &budget);
    struct scan scan = begin_scan(sort, observers);
    struct run_readers *run_readers = run_readers_start(
        sort->threads, temp_store_runs(sort->store), sort->resume.dropped_runs,
        sort->resume.n_dropped, budget.total_bytes / 16);
    size_t n = run_readers ? run_readers_count(run_readers) : 0;
    int r = run_readers ? 0 : -1;
    for (size_t i = 0, n_ended = 0; r >= 0 && n_ended < n; i = (i + 1) % n) {
        r = scan_next(&scan, run_readers, i, sort->first_own_run);
        n_ended = r == 0 ? n_ended + 1 : 0;
    }
    r = end_scan(&scan, r);
    run_readers_stop(run_readers);
    return r;
}

/* ---- sort buffers in memory ---- */

static const uint8_t *record_at(const struct sort_buffer *buffer, size_t i)
{
    return sort_entry_record(buffer->rules->order, &buffer->entries[i]);
}

static int scan_range(struct worker *worker, void *item)
{
    const struct scan_job *job = item;
    const struct sort_buffer *buffer = job->buffer;
    bool has_ordinals = record_ordinals_are_needed(buffer->rules);
    struct observed_parts parts;
    int r = 0;
    (void)worker;
    observed_parts_begin(&parts, job->observers);
    for (size_t i = job->from; i < job->to && r == 0; i++) {
        uint8_t ordinal[BAM_BLOCK_ORDINAL_BYTES];
        if (i + 8 < job->to) __builtin_prefetch(record_at(buffer, i + 8));
        const uint8_t *rec = record_at(buffer, i);
        struct observed_records one = {.all = {rec, rec + bam_record_bytes(rec)},
                                       .run = job->run, .first_record = i};
        if (has_ordinals) {
            bam_block_put_ordinal(ordinal, record_ordinal(&job->buffer, 1, rec));
            one.ordinals = ordinal;
        }
        r = observed_parts_show(&parts, &one);
    }
    return observed_parts_close(&parts, r);
}

/* Shows observers_run the sort buffers. */
static int scan_kept_buffers(const struct sort_context *sort)
{
    enum { RANGE_RECORDS = 16384 };     /* some milliseconds of work */
    struct scan scan = begin_scan(sort, &sort->observers_run);
    struct sort_buffer *const *buffers;
    size_t n;
    int r = 0;
    buffers = sort_buffer_pool_kept(sort->pool, &n);
    for (size_t i = 0; i < n; i++)
        for (size_t from = 0; r == 0 && from < buffers[i]->n_records; from += RANGE_RECORDS) {
            size_t left = buffers[i]->n_records - from;
            struct scan_job *job = take_job(&scan);
            if (!job) {
                r = -1;
                break;
            }
            job->buffer = buffers[i];
            job->run = sort->spiller.totals.next_run + (uint32_t)i;
            job->from = from;
            job->to = from + (left < RANGE_RECORDS ? left : RANGE_RECORDS);
            r = thread_pool_submit_slot(scan.threads, &job->slot, scan_range);
        }
    return end_scan(&scan, r);
}

/* ---- inputs of --merge ---- */

int plan_inputs(const struct sort_context *sort, const size_t *numbers, size_t n,
                struct input_streams_settings *streams)
{
    enum { OTHER_FILES = 32 };
    size_t limit;
    *streams = (struct input_streams_settings){
        .threads = sort->threads, .inputs = sort->inputs, .numbers = numbers, .n_inputs = n,
        .n_refs = sam_hdr_nref(sort->header), .totals = sort->totals,
    };
    if (!open_files_suffice(n + OTHER_FILES, &limit))
        diag_error("%zu inputs cannot be open at the same time: raise 'ulimit -n' from %zu to %zu, "
                   "or merge some of them first", n, limit, n + OTHER_FILES);
    else if (!memory_budget_share_inputs(&sort->budget, n, &streams->share))
        diag_error("%zu MiB of memory are too little to merge %zu inputs: give %zu MiB or more "
                   "with --max-memory, or merge some of them first",
                   sort->budget.total_bytes >> 20, n, (streams->share.needed_bytes >> 20) + 1);
    else
        return 0;
    return -1;
}

struct input_scan_job {
    const struct sort_context *sort;
    const struct record_observers *observers;
    bool *touched;              /* under the lock */
};

/* Reads inputs to their ends. */
static int scan_streams(struct input_streams_settings *settings)
{
    struct input_streams *streams = input_streams_start(settings);
    struct queued_span *none;
    if (!streams) return -1;
    for (size_t i = 0; i < settings->n_inputs && !thread_pool_failed(settings->threads); i++)
        if (input_streams_next(streams, i, &none) < 0) thread_pool_fail(settings->threads);
    input_streams_stop(streams);
    int r = thread_pool_finish_jobs(settings->threads);
    input_streams_destroy(streams);
    return r;
}

static int show_span(void *arg, struct worker *worker, struct queued_span *span, const char *input)
{
    const struct input_scan_job *job = arg;
    const struct record_span *records = &span->records;
    struct record_problem problem;
    struct sort_rules rules = job->sort->rules;
    (void)worker;
    rules.cut_names = NULL;     /* the merge counts them */
    const uint8_t *end = record_entries_check(&rules, sam_hdr_nref(job->sort->header),
                                              records->from, records->to, records->first_record,
                                              &problem);
    const struct observed_records observed = {.all = {records->from, end}, .run = span->input,
                                              .first_record = records->first_record};
    if (end) return record_observers_look(job->observers, &observed);
    record_problem_print(&problem, input);
    return -1;
}

/* Shows observers all inputs. */
static int scan_all_inputs(const struct sort_context *sort,
                           const struct record_observers *observers)
{
    struct input_scan_job job = {.sort = sort, .observers = observers};
    struct input_streams_settings streams;
    size_t n = sort->settings->n_inputs, *numbers = xcalloc(n, sizeof *numbers);
    for (size_t i = 0; i < n; i++) numbers[i] = i;
    int r = plan_inputs(sort, numbers, n, &streams);
    streams.make = show_span;
    streams.arg = &job;
    if (r == 0) r = scan_streams(&streams);
    free(numbers);
    return r;
}

/* Looks for IDs that change. */
static int look_at_ids(void *arg, struct worker *worker, struct queued_span *span,
                       const char *input)
{
    const struct input_scan_job *job = arg;
    struct bam_records records = {span->records.from, span->records.to};
    const struct id_renames *renames = bam_inputs_renames(job->sort->inputs, span->input);
    struct record_problem problem = {.record = span->records.first_record, .is_damaged = true};
    bool touched = false;
    (void)worker;
    for (const uint8_t *rec; (rec = bam_records_next(&records));) {
        problem.text = bam_record_check(rec, sam_hdr_nref(job->sort->header));
        if (problem.text) {
            record_problem_print(&problem, input);
            return -1;
        }
        problem.record++;
        touched = touched || id_renames_touch(renames, rec);
    }
    if (!touched) return 0;
    thread_pool_lock(job->sort->threads);
    job->touched[span->input] = true;
    thread_pool_unlock(job->sort->threads);
    return 0;
}

int scan_inputs_ids(const struct sort_context *sort, const size_t *numbers, size_t n,
                    bool *touched)
{
    enum { AT_A_TIME = 16 };
    struct input_scan_job job = {.sort = sort, .touched = touched};
    struct input_streams_settings streams;
    for (size_t from = 0, n_now; from < n; from += n_now) {
        n_now = n - from < AT_A_TIME ? n - from : AT_A_TIME;
        if (plan_inputs(sort, numbers + from, n_now, &streams) < 0) return -1;
        streams.keeps_ids = true;
        streams.make = look_at_ids;
        streams.arg = &job;
        if (scan_streams(&streams) < 0) return -1;
    }
    return 0;
}

/* ---- all of them ---- */

/* Shows observers the records that they have not seen. */
static int scan_unseen(struct sort_context *sort)
{
    struct record_observers observers = sort->observers_in;
    record_observers_add(&observers, markdup_observer(sort->markdup));
    if (sort->settings->merge) return scan_all_inputs(sort, &observers);
    return sort->first_own_run > 0 ? scan_earlier_runs(sort, &observers) : 0;
}

int resolve_before_merge(struct sort_context *sort)
{
    const struct input_scan *scan = &sort->scan;
    if (!sort->markdup && !scan->ranges && !scan->tags) return 0;
    progress_enter(sort->progress, SORT_PHASE_MARK);
    if (scan_unseen(sort) < 0) return -1;
    if (scan->ranges) split_plan_set_ranges(sort->split, scan->ranges);
    for (int i = 0; scan->tags && i < MOST_OUTPUTS; i++) {
        struct column_output *columns = &sort->columns[i];
        if (!columns->request || columns->schema) continue;
        columns->schema = column_schema_create(columns->request->list, scan->tags);
        if (!columns->schema) return -1;
    }
    if (!sort->markdup) return 0;
    /* The load has ended and the merge has not begun. */
    size_t kept_bytes = sort_buffer_pool_kept_bytes(sort->pool), all = sort->budget.total_bytes;
    return scan_kept_buffers(sort) < 0
               ? -1 : markdup_resolve(sort->markdup, kept_bytes < all ? all - kept_bytes : 0);
}
