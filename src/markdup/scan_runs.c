/* scan_runs.c -- see scan_runs.h. */
#include "markdup/scan_runs.h"

#include "spill/bam_block.h"
#include "spill/run_reader.h"
#include "spill/sort_buffer.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* ---- runs in the store ---- */

/* A block to be scanned. */
struct scanned_block {
    struct thread_pool_slot slot;
    const struct scan_stored_settings *settings;
    const char *dir;            /* its directory, for messages */
    uint8_t *value;             /* its stored bytes */
    size_t value_bytes;
    uint32_t run;
    uint64_t first_index;
};

struct scanned_blocks {
    struct scanned_block *all;
    unsigned n;
};

static void release_coder(void *coder)
{
    temp_coder_release(coder);
}

static const struct scratch_kind coder_kind = {sizeof(struct temp_coder), release_coder};

/* Verifies and decompresses the block, and shows its records to the observers. Returns 0, or -1
   after a message. */
static int scan_block(struct worker *worker, struct scanned_block *block)
{
    const struct scan_stored_settings *s = block->settings;
    struct bam_block stored;
    if (bam_block_parse(block->value, block->value_bytes, &stored) < 0 ||
        !bam_block_verify(block->value, block->value_bytes))
        return stored_block_report_run(block->dir, block->run);
    uint8_t *raw = xmalloc(stored.raw_bytes);
    bool is_sound = temp_codec_decompress(worker_scratch(worker, &coder_kind), stored.codec,
                                          stored.payload, stored.payload_bytes, raw,
                                          stored.raw_bytes) == 0 &&
                    bam_block_measure(s->rules, &stored, raw, s->n_refs) >= 0 &&
                    (stored.ordinals || !record_ordinals_are_needed(s->rules));
    const struct observed_records records = {
        .all = {raw, raw + stored.raw_bytes}, .run = block->run,
        .first_record = block->first_index, .ordinals = stored.ordinals};
    int r = is_sound ? record_observers_look(s->observers, &records)
                     : stored_block_report_run(block->dir, block->run);
    free(raw);
    return r;
}

static int scan_and_free(struct worker *worker, void *item)
{
    struct scanned_block *block = item;
    int r = scan_block(worker, block);
    free(block->value);
    block->value = NULL;
    return r;
}

/* Hands a block to a worker, unless this process wrote it. Returns 0, or -1 after a message. */
static int start_block(const struct scan_stored_settings *s, const struct scanned_blocks *blocks,
                       struct stored_block *queued)
{
    uint32_t run;
    uint64_t first_index;
    merge_bound_position(queued->key, queued->key_bytes, &run, &first_index);
    if (run >= s->end_run) return 0;
    struct scanned_block *block =
        thread_pool_take_slot(s->threads, blocks->all, blocks->n, sizeof *block);
    if (!block) return -1;
    block->settings = s;
    block->dir = queued->dir;
    block->value = queued->value;
    block->value_bytes = queued->value_bytes;
    block->run = run;
    block->first_index = first_index;
    queued->value = NULL;
    return thread_pool_submit_slot(s->threads, &block->slot, scan_and_free);
}

/* Scans the next block of one run reader. Returns 1, 0 after its last one, or -1. */
static int scan_next(const struct scan_stored_settings *s, struct run_readers *run_readers,
                     size_t i, const struct scanned_blocks *blocks)
{
    struct stored_block *queued;
    int r = run_readers_first(run_readers, i, &queued);
    if (r <= 0) return r;
    r = merge_bound_is_sound(queued->key_bytes) ? start_block(s, blocks, queued)
                                             : stored_block_report_entry(queued->dir);
    run_readers_drop(run_readers, i);
    return r < 0 ? -1 : 1;
}

static int scan_all(const struct scan_stored_settings *s, struct run_readers *run_readers,
                    size_t n_feeders, const struct scanned_blocks *blocks)
{
    int r = 0;
    for (size_t i = 0, n_ended = 0; r >= 0 && n_ended < n_feeders; i = (i + 1) % n_feeders) {
        r = scan_next(s, run_readers, i, blocks);
        n_ended = r == 0 ? n_ended + 1 : 0;
    }
    if (r < 0) thread_pool_fail(s->threads);
    return thread_pool_finish_jobs(s->threads);
}

int scan_stored_runs(const struct scan_stored_settings *s)
{
    struct run_scan **scans;
    size_t n_scans = run_store_scan(s->store, &scans);
    const struct run_reader_settings feed = {
        .threads = s->threads, .scans = scans, .n_scans = n_scans, .dropped_runs = s->dropped_runs,
        .n_dropped = s->n_dropped, .queue_bytes = s->queue_bytes,
    };
    struct scanned_blocks blocks = {.n = 2 * s->n_threads};
    blocks.all = xcalloc(blocks.n, sizeof *blocks.all);
    struct run_readers *run_readers = run_readers_start(&feed);
    int r = run_readers ? scan_all(s, run_readers, n_scans, &blocks) : -1;
    if (r < 0) thread_pool_fail(s->threads);
    run_readers_stop(run_readers);
    for (unsigned i = 0; i < blocks.n; i++) free(blocks.all[i].value);
    free(blocks.all);
    for (size_t i = 0; i < n_scans; i++) run_scan_close(scans[i]);
    free(scans);
    return r;
}

/* ---- sort buffers in memory ---- */

enum { RANGE_RECORDS = 16384 }; /* some milliseconds of work */

/* Records of a sort buffer for one job. */
struct range {
    struct sort_buffer *buffer;
    uint32_t run;
    size_t from, to;
};

struct buffer_scan {
    struct range *ranges;
    size_t n;
    const struct record_observers *observers;   /* NULL: records are marked */
    const struct markdup *duplicates;
};

struct buffer_job {
    struct thread_pool_slot slot;
    const struct buffer_scan *scan;
};

static const uint8_t *record_at(const struct sort_buffer *buffer, size_t i)
{
    return sort_entry_record(buffer->rules->order, &buffer->entries[i]);
}

static int scan_range(const struct buffer_scan *scan, const struct range *range)
{
    bool has_ordinals = record_ordinals_are_needed(range->buffer->rules);
    struct observed_parts parts;
    int r = 0;
    observed_parts_begin(&parts, scan->observers);
    for (size_t i = range->from; i < range->to && r == 0; i++) {
        uint8_t ordinal[BAM_BLOCK_ORDINAL_BYTES];
        if (i + 8 < range->to) __builtin_prefetch(record_at(range->buffer, i + 8));
        const uint8_t *rec = record_at(range->buffer, i);
        struct observed_records one = {.all = {rec, rec + bam_record_bytes(rec)},
                                       .run = range->run, .first_record = i};
        if (has_ordinals) {
            bam_block_put_ordinal(ordinal, record_ordinal(&range->buffer, 1, rec));
            one.ordinals = ordinal;
        }
        r = observed_parts_show(&parts, &one);
    }
    return observed_parts_close(&parts, r);
}

/* Marks through the entries, which point into the memory of the sort buffer. */
static int mark_range(const struct buffer_scan *scan, const struct range *range)
{
    size_t n = range->to - range->from;
    struct found_marks found = {0};
    int r = markdup_find(scan->duplicates, range->run, range->from, n, &found);
    for (size_t i = 0; i < n && r == 0; i++)
        if (found_marks_have(&found, i)) {
            uint8_t *rec = (uint8_t *)(uintptr_t)record_at(range->buffer, range->from + i);
            (void)put_u16(rec + BAM_FLAG_AT, bam_record_flag(rec) | BAM_FDUP);
        }
    found_marks_release(&found);
    return r;
}

static int do_range(struct worker *worker, void *item)
{
    (void)worker;
    const struct buffer_job *job = item;
    const struct range *range = &job->scan->ranges[job->slot.number];
    return job->scan->observers ? scan_range(job->scan, range) : mark_range(job->scan, range);
}

static int do_all_ranges(const struct kept_buffers *kept, struct buffer_scan *scan)
{
    size_t room = 0;
    for (size_t i = 0; i < kept->n; i++)
        for (size_t from = 0, n = kept->buffers[i]->n_records, to; from < n; from = to) {
            to = n - from < RANGE_RECORDS ? n : from + RANGE_RECORDS;
            xgrow(&scan->ranges, &room, scan->n + 1, scan->n, sizeof *scan->ranges);
            scan->ranges[scan->n++] = (struct range){
                kept->buffers[i], kept->first_run + (uint32_t)i, from, to};
        }
    unsigned n_jobs = 2 * kept->n_threads;
    struct buffer_job *jobs = xcalloc(n_jobs, sizeof *jobs);
    for (unsigned i = 0; i < n_jobs; i++) jobs[i].scan = scan;
    int r = thread_pool_for_each(kept->threads, (unsigned)scan->n, jobs, n_jobs, sizeof *jobs,
                                 do_range);
    free(jobs);
    free(scan->ranges);
    return r;
}

int scan_kept_buffers(const struct kept_buffers *kept, const struct record_observers *observers)
{
    struct buffer_scan scan = {.observers = observers};
    return do_all_ranges(kept, &scan);
}

int mark_kept_buffers(const struct kept_buffers *kept, const struct markdup *duplicates)
{
    struct buffer_scan scan = {.duplicates = duplicates};
    return do_all_ranges(kept, &scan);
}
