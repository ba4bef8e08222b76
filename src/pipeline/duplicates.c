/* duplicates.c -- see duplicates.h. */
#include "pipeline/duplicates.h"

#include "duplicates/duplicate_marks.h"
#include "duplicates/duplicate_table.h"
#include "store/temp_streams.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHARE = 8,                  /* of all memory, for the search */
    MIN_BYTES = 2 << 20,
    RANGE_RECORDS = 16384,      /* of a batch, for one job: some milliseconds */
    VIEW_BYTES_AT_LEAST = 8,    /* to estimate how many views a stream has */
};

struct duplicates {
    struct duplicates_settings settings;
    struct temp_streams *views;
    struct duplicate_marks *marks;
    struct decider *deciders;   /* one for each job that may run at a time */
};

size_t duplicates_memory(size_t total_bytes)
{
    size_t n_bytes = total_bytes / SHARE, most = total_bytes / 4;
    if (n_bytes < MIN_BYTES) n_bytes = MIN_BYTES;
    return n_bytes < most ? n_bytes : most;
}

struct duplicates *duplicates_create(const struct duplicates_settings *settings)
{
    struct duplicates *d = xcalloc(1, sizeof *d);
    d->settings = *settings;
    const struct temp_streams_settings views = {
        .n_streams = VIEW_N_STREAMS, .memory_bytes = settings->memory_bytes / 2,
        .temp_prefix = settings->temp_prefix, .output = settings->output,
    };
    d->views = temp_streams_create(&views);
    d->marks = duplicate_marks_create();
    return d;
}

void duplicates_destroy(struct duplicates *d)
{
    if (!d) return;
    temp_streams_destroy(d->views);
    duplicate_marks_destroy(d->marks);
    free(d);
}

/* ---- views ---- */

int duplicate_looks_add(const struct duplicates *d, struct view_gather *gather,
                        struct duplicate_looks *looks, const uint8_t *rec, uint32_t run,
                        uint64_t index)
{
    struct record_views views;
    const char *problem = duplicate_views_make(d->settings.rules, rec, &views);
    if (problem) {
        diag_error("read '%s' %s", (const char *)bam_record_name(rec), problem);
        return -1;
    }
    for (unsigned i = 0; i < views.n; i++)
        view_gather_add(gather, &views.view[i], (uint32_t)index);
    if (gather->n >= VIEW_GATHER_ENOUGH) duplicate_looks_end(gather, looks, run);
    return 0;
}

void duplicate_looks_end(struct view_gather *gather, struct duplicate_looks *looks, uint32_t run)
{
    view_gather_end(gather, run, &looks->bytes, &looks->n_bytes, &looks->room);
}

void duplicate_looks_release(struct duplicate_looks *looks)
{
    free(looks->bytes);
    *looks = (struct duplicate_looks){0};
}

/* ---- runs ---- */

void duplicates_begin_run(struct duplicates *d)
{
    temp_streams_mark(d->views);
}

int duplicates_take(struct duplicates *d, struct duplicate_looks *looks)
{
    const uint8_t *at = looks->bytes, *end = at + looks->n_bytes;
    struct view_chunk_head head;
    while (at < end) {
        memcpy(&head, at, sizeof head);
        at += sizeof head;
        if (temp_streams_append(d->views, head.stream, &head.n_bytes, sizeof head.n_bytes) < 0 ||
            temp_streams_append(d->views, head.stream, at, head.n_bytes) < 0)
            return -1;
        at += head.n_bytes;
    }
    looks->n_bytes = 0;
    return 0;
}

void duplicates_end_run(struct duplicates *d, uint32_t run, uint64_t n_records)
{
    duplicate_marks_add_run(d->marks, run, (uint32_t)n_records);
}

int duplicates_undo_run(struct duplicates *d)
{
    return temp_streams_undo(d->views);
}

/* ---- deciding ---- */

/* What one job needs to decide a partition. */
struct decider {
    struct duplicates *d;
    struct duplicate_table *singles, *pairs;
    struct temp_stream_reader reader;
    unsigned partition;
    bool is_busy;               /* under the lock */
};

/* What a pass over a stream does with each view. Returns TABLE_FULL to end the pass. */
typedef enum table_result (*view_visitor)(struct decider *decider, const struct duplicate_view *view,
                                          uint32_t run, unsigned part, unsigned n_parts);

static void found_duplicate(struct decider *decider, const struct duplicate_record *record)
{
    (void)duplicate_marks_set(decider->d->marks, record->run, record->index);
}

/* Reads a whole stream. Returns 0, 1 if a table was full, or -1 after a message. */
static int visit_stream(struct decider *decider, unsigned stream, view_visitor visit, unsigned part,
                        unsigned n_parts)
{
    struct temp_stream_reader *reader = &decider->reader;
    temp_stream_reader_begin(reader, decider->d->views, stream);
    while (!temp_stream_is_at_end(reader)) {
        uint32_t n_bytes;
        struct view_chunk chunk;
        struct duplicate_view view;
        const uint8_t *bytes = temp_stream_read(reader, sizeof n_bytes);
        if (!bytes) return -1;
        memcpy(&n_bytes, bytes, sizeof n_bytes);
        bytes = temp_stream_read(reader, n_bytes);
        if (!bytes) return -1;
        if (!view_chunk_open(&chunk, bytes, n_bytes)) {
            diag_damaged("the temporary data of --markdup are damaged: sort again on another disk");
            return -1;
        }
        while (view_chunk_next(&chunk, &view)) {
            enum table_result r = visit(decider, &view, chunk.run, part, n_parts);
            if (r == TABLE_FULL) return 1;
            if (r == TABLE_LACKS_SCORE) return -1;
        }
    }
    return 0;
}

static enum table_result add(struct decider *decider, struct duplicate_table *table,
                             struct duplicate_key key, const struct duplicate_view *view,
                             uint32_t run)
{
    struct duplicate_record record;
    enum table_result r = duplicate_table_add(table, key, view, run, &record);
    if (r == TABLE_DUPLICATE) found_duplicate(decider, &record);
    if (r == TABLE_LACKS_SCORE)
        diag_error("read '%.*s' has no tag ms, which --markdup needs to choose the best of several "
                   "pairs: add --fixmate, if reads of one name stand together in the input, or run "
                   "samtools fixmate -m first", (int)record.name_bytes, (const char *)record.name);
    return r;
}

static enum table_result visit_single(struct decider *decider, const struct duplicate_view *view,
                                      uint32_t run, unsigned part, unsigned n_parts)
{
    struct duplicate_key key = duplicate_key_of_single(decider->d->settings.rules, view);
    if (duplicate_key_part(key, n_parts) != part) return TABLE_NO_DUPLICATE;
    return add(decider, decider->singles, key, view, run);
}

/* Single reads at the 5' end of a member of a pair are duplicates. */
static enum table_result visit_end(struct decider *decider, const struct duplicate_view *view,
                                   uint32_t run, unsigned part, unsigned n_parts)
{
    (void)run;
    (void)part;
    (void)n_parts;
    struct duplicate_record record;
    if (view->kind == VIEW_PAIR &&
        !duplicate_view_is_at_five_end(decider->d->settings.rules, view))
        return TABLE_NO_DUPLICATE;
    enum table_result r = duplicate_table_meet_pair(decider->singles, duplicate_key_of_single(decider->d->settings.rules, view),
                                                    &record);
    if (r == TABLE_DUPLICATE) found_duplicate(decider, &record);
    return r;
}

static enum table_result visit_pair(struct decider *decider, const struct duplicate_view *view,
                                    uint32_t run, unsigned part, unsigned n_parts)
{
    if (part == 0 && !duplicate_table_is_empty(decider->singles))
        (void)visit_end(decider, view, run, part, n_parts);
    if (view->kind == VIEW_END) return TABLE_NO_DUPLICATE;
    struct duplicate_key key = duplicate_key_of_pair(decider->d->settings.rules, view);
    if (duplicate_key_part(key, n_parts) != part) return TABLE_NO_DUPLICATE;
    return add(decider, decider->pairs, key, view, run);
}

/*
 * Decides the views of a stream: all keys at once, or, if they do not fit into the table, in so many
 * parts that they do. Returns the number of parts, or -1 after a message. What was found before a
 * table was full is right, and found again. If there is one part only, the table stays filled.
 */
static int decide_stream(struct decider *decider, unsigned stream, struct duplicate_table *table,
                         view_visitor visit, view_visitor visit_pairs_after)
{
    uint64_t n_views = temp_streams_bytes(decider->d->views, stream) / VIEW_BYTES_AT_LEAST;
    unsigned n_parts = 1;
    for (unsigned part = 0; part < n_parts; part++) {
        duplicate_table_reset(table, n_views);
        int r = visit_stream(decider, stream, visit, part, n_parts);
        if (r == 0 && n_parts > 1 && visit_pairs_after)
            r = visit_stream(decider, VIEW_STREAM_PAIRS + decider->partition, visit_pairs_after,
                             part, n_parts);
        if (r < 0) return -1;
        if (r == 0) continue;
        n_parts *= 4;
        part = (unsigned)-1;    /* from the start */
    }
    return (int)n_parts;
}

static int decide_partition(struct decider *decider)
{
    unsigned p = decider->partition;
    int n_parts = decide_stream(decider, VIEW_STREAM_SINGLES + p, decider->singles, visit_single,
                                visit_end);
    if (n_parts < 0) return -1;
    if (n_parts > 1) duplicate_table_reset(decider->singles, 0);
    return decide_stream(decider, VIEW_STREAM_PAIRS + p, decider->pairs, visit_pair, NULL) < 0
               ? -1 : 0;
}

static void decide_job(struct worker *worker, void *arg)
{
    (void)worker;
    struct decider *decider = arg;
    struct crew *crew = decider->d->settings.crew;
    if (!crew_failed(crew) && decide_partition(decider) < 0) crew_fail(crew);
    crew_lock(crew);
    decider->is_busy = false;
    crew_unlock(crew);
}

/* Waits for a decider that is not at work. NULL if the crew has failed. */
static struct decider *idle_decider(struct duplicates *d)
{
    struct crew *crew = d->settings.crew;
    struct decider *idle = NULL;
    crew_lock(crew);
    while (!crew_failed(crew)) {
        for (unsigned i = 0; i < d->settings.n_threads && !idle; i++)
            if (!d->deciders[i].is_busy) idle = &d->deciders[i];
        if (idle) break;
        crew_wait(crew);
    }
    if (idle) idle->is_busy = true;
    crew_unlock(crew);
    return idle;
}

static int wait_for_jobs(struct crew *crew)
{
    crew_lock(crew);
    crew_wait_for_jobs(crew);
    crew_unlock(crew);
    return crew_failed(crew) ? -1 : 0;
}

static void prepare_deciders(struct duplicates *d)
{
    unsigned n = d->settings.n_threads;
    size_t each_bytes = d->settings.memory_bytes / 2 / n;
    d->deciders = xcalloc(n, sizeof *d->deciders);
    for (unsigned i = 0; i < n; i++) {
        d->deciders[i].d = d;
        d->deciders[i].singles = duplicate_table_create(each_bytes / 4);
        d->deciders[i].pairs = duplicate_table_create(each_bytes / 4 * 3);
    }
}

static void release_deciders(struct duplicates *d)
{
    for (unsigned i = 0; i < d->settings.n_threads; i++) {
        duplicate_table_destroy(d->deciders[i].singles);
        duplicate_table_destroy(d->deciders[i].pairs);
        temp_stream_reader_release(&d->deciders[i].reader);
    }
    free(d->deciders);
    d->deciders = NULL;
}

static int decide_all(struct duplicates *d)
{
    prepare_deciders(d);
    for (unsigned p = 0; p < VIEW_N_PARTITIONS; p++) {
        if (p + 1 < VIEW_N_PARTITIONS) {
            temp_streams_advise(d->views, VIEW_STREAM_SINGLES + p + 1);
            temp_streams_advise(d->views, VIEW_STREAM_PAIRS + p + 1);
        }
        struct decider *decider = idle_decider(d);
        if (!decider) break;
        decider->partition = p;
        if (crew_submit(d->settings.crew, decide_job, decider) < 0) break;
    }
    int r = wait_for_jobs(d->settings.crew);
    release_deciders(d);
    return r;
}

/* ---- batches in memory ---- */

/* Records of a batch that one job looks at, or marks. */
struct range {
    struct duplicates *d;
    const struct batch *batch;
    uint32_t run;
    size_t from, to;
    struct duplicate_looks looks;
    bool done;                  /* under the lock */
};

static const uint8_t *record_at(const struct batch *batch, size_t i)
{
    return sort_entry_record(batch->rules->order, &batch->entries[i]);
}

static void look_job(struct worker *worker, void *arg)
{
    struct range *range = arg;
    struct crew *crew = range->d->settings.crew;
    for (size_t i = range->from; i < range->to && !crew_failed(crew); i++) {
        if (i + 8 < range->to) __builtin_prefetch(record_at(range->batch, i + 8));
        if (duplicate_looks_add(range->d, &worker->views, &range->looks,
                                record_at(range->batch, i), range->run, i) < 0)
            crew_fail(crew);
    }
    duplicate_looks_end(&worker->views, &range->looks, range->run);
    crew_lock(crew);
    range->done = true;
    crew_unlock(crew);
}

/* The entries of a batch point into memory that belongs to it, and nobody reads the records now. */
static void mark_job(struct worker *worker, void *arg)
{
    (void)worker;
    struct range *range = arg;
    struct crew *crew = range->d->settings.crew;
    for (size_t i = range->from; i < range->to; i++)
        if (duplicate_marks_get(range->d->marks, range->run, i)) {
            uint8_t *rec = (uint8_t *)(uintptr_t)record_at(range->batch, i);
            (void)put_u16(rec + BAM_FLAG_AT, bam_record_flag(rec) | BAM_FDUP);
        }
    crew_lock(crew);
    range->done = true;
    crew_unlock(crew);
}

struct ranges {
    struct range *ring;
    unsigned n_ring, at, n_used;
};

/* Waits for the oldest job and takes its views, if it made some. */
static int finish_oldest(struct duplicates *d, struct ranges *ranges)
{
    struct range *oldest = &ranges->ring[ranges->at];
    struct crew *crew = d->settings.crew;
    crew_lock(crew);
    while (!oldest->done) crew_wait(crew);
    crew_unlock(crew);
    ranges->at = (ranges->at + 1) % ranges->n_ring;
    ranges->n_used--;
    return crew_failed(crew) ? -1 : duplicates_take(d, &oldest->looks);
}

/* Has jobs go through all records of a batch. Returns 0, or -1 after a message. */
static int go_through(struct duplicates *d, const struct batch *batch, uint32_t run,
                      void (*job)(struct worker *, void *), struct ranges *ranges)
{
    for (size_t from = 0; from < batch->n_records; from += RANGE_RECORDS) {
        if (ranges->n_used == ranges->n_ring && finish_oldest(d, ranges) < 0) return -1;
        struct range *range = &ranges->ring[(ranges->at + ranges->n_used) % ranges->n_ring];
        size_t left = batch->n_records - from;
        struct duplicate_looks looks = range->looks;
        *range = (struct range){d, batch, run, from,
                                from + (left < RANGE_RECORDS ? left : RANGE_RECORDS), looks, false};
        ranges->n_used++;
        if (crew_submit(d->settings.crew, job, range) < 0) {
            ranges->n_used--;
            return -1;
        }
    }
    return 0;
}

static int for_all_batches(struct duplicates *d, struct batch *const *batches, size_t n,
                           uint32_t first_run, void (*job)(struct worker *, void *))
{
    struct ranges ranges = {.n_ring = 2 * d->settings.n_threads};
    ranges.ring = xcalloc(ranges.n_ring, sizeof *ranges.ring);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = go_through(d, batches[i], first_run + (uint32_t)i, job, &ranges);
    while (ranges.n_used > 0)
        if (finish_oldest(d, &ranges) < 0) r = -1;
    for (unsigned i = 0; i < ranges.n_ring; i++) duplicate_looks_release(&ranges.ring[i].looks);
    free(ranges.ring);
    if (r < 0) crew_fail(d->settings.crew);
    return r;
}

int duplicates_decide(struct duplicates *d, struct batch *const *batches, size_t n,
                      uint32_t first_run)
{
    for (size_t i = 0; i < n; i++)
        duplicates_end_run(d, first_run + (uint32_t)i, batches[i]->n_records);
    if (for_all_batches(d, batches, n, first_run, look_job) < 0 || decide_all(d) < 0) return -1;
    temp_streams_destroy(d->views);
    d->views = NULL;
    return for_all_batches(d, batches, n, first_run, mark_job);
}

void duplicates_mark(const struct duplicates *d, uint32_t run, uint64_t first_index, uint8_t *raw,
                     size_t n)
{
    for (size_t i = 0; i < n; i++, raw += bam_record_bytes(raw))
        if (duplicate_marks_get(d->marks, run, first_index + i))
            (void)put_u16(raw + BAM_FLAG_AT, bam_record_flag(raw) | BAM_FDUP);
}
