/* scan_runs.c -- see scan_runs.h. */
#include "sort/scan_runs.h"

#include "spill/run_reader.h"
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

int scan_earlier_runs(const struct sort_context *sort, const struct record_observers *observers)
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

int scan_kept_buffers(const struct sort_context *sort)
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
