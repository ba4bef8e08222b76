/*
 * load.c -- see load.h.
 *
 * The loader reads pieces of the current input into a queue (span_queue.h), and takes spans of
 * whole records from it, which workers have inflated or parsed. It places the records in a sort
 * buffer (sort_buffer_filler.h); with --fixmate workers have fixed them (template_fixer.h).
 *
 * It waits only for input, for workers if enough is read ahead, and for memory if sort buffers fill
 * faster than they are spilled.
 */
#include "sort/load.h"

#include "sort/template_fixer.h"
#include "util/diag.h"
#include "util/monotonic.h"

#include <inttypes.h>

enum {
    FEW_ALONE = 1000,           /* do not warn below this many reads without a mate */
    ALONE_RATIO = 10,           /* nor if fewer than 1 in this many: a filter may have removed
                                   mates */
};

struct loader {
    const struct sort_context *sort;
    uint64_t most_bytes;        /* bytes to read of the inputs; 0: all */
    struct threads *threads;
    struct load_totals *totals;
    struct bam_reader *reader;  /* of the current input */
    struct span_queue spans;    /* of this input */
    struct template_fixer *templates;   /* NULL without --fixmate */
    struct sort_buffer_filler filler;
    double input_seconds;       /* time spent reading */
    uint64_t n_fetched;         /* uncompressed bytes of pieces */
    bool is_cut;                /* the input ended early; its records are kept */
};

static void drop_span(void *owner)
{
    span_queue_drop_locked(owner);
}

/* Places n records of a span, from `at` to `to`; `first` is the number of the first one. */
static int place_records(struct loader *ld, struct queued_span *span, const uint8_t *at,
                         const uint8_t *to, size_t n, uint64_t first)
{
    const uint64_t end = first + n;
    const struct placed_records records = {
        .at = at, .n_bytes = (size_t)(to - at), .n_records = n, .first = first,
        .input = ld->reader->name,
        .end = {ld->sort->inputs->at - 1,
                record_span_offset(&span->records, to, end - span->records.first_record), end},
        .n_users = &span->n_users, .drop = drop_span, .owner = span};
    return sort_buffer_filler_place(&ld->filler, &records);
}

/* Places the records of a span, and prints the error that follows them, if any. */
static int place_span(struct loader *ld, struct queued_span *span)
{
    const struct record_span *records = &span->records;
    struct bam_walk walk = {.at = records->from};
    uint64_t number = records->first_record, end = number + records->n_records;
    while (number < end) {
        const uint8_t *at = walk.at;
        size_t room = sort_buffer_filler_room(&ld->filler), n = (size_t)(end - number);
        if ((size_t)(records->to - at) <= room) {
            walk.at = records->to;
        } else {                /* as many as fit, perhaps none */
            walk.end = at + room;
            for (n = 0; bam_walk_next(&walk);) n++;
        }
        int r = n > 0 ? place_records(ld, span, at, walk.at, n, number)
                      : sort_buffer_filler_make_room(&ld->filler, bam_record_bytes(at));
        if (r < 0) return -1;
        number += n;
    }
    return record_span_check(records, ld->reader->name);
}

/* Counts bytes of records, to estimate the size of the whole input. */
static void count_fetched(struct loader *ld, size_t n_bytes)
{
    ld->n_fetched += n_bytes;
    /* For text and templates, the size of the records is known only when they are placed. */
    if (!ld->templates && !ld->reader->is_text) ld->filler.n_bytes += n_bytes;
}

/* Places the next span. */
static int take_span(struct loader *ld)
{
    thread_pool_lock(ld->threads);
    struct queued_span *span = span_queue_take_locked(&ld->spans);
    thread_pool_unlock(ld->threads);
    if (!ld->templates && ld->reader->is_text && span->records.n_records > 0)
        ld->filler.n_bytes += (size_t)(span->records.to - span->records.from);
    int r = ld->templates ? template_fixer_place(ld->templates, span, ld->reader->name)
                          : place_span(ld, span);
    span_queue_drop(span);
    return r;
}

/* ---- waiting ---- */

/* With the lock held: updates the position in the input. */
static void note_position(const struct loader *ld, bool all)
{
    const struct sort_context *sort = ld->sort;
    uint64_t n_bytes = sort->inputs->n_bytes, n_read = 0;
    /* If one of several inputs is a pipe, only the position in the last one is known. */
    if (n_bytes > 0 || sort->settings->n_inputs == 1)
        n_read = all && n_bytes > 0 ? n_bytes : bam_inputs_bytes_read(sort->inputs);
    struct load_counts *counts = load_totals_locked(ld->totals);
    counts->file_bytes = n_bytes;
    counts->file_bytes_read = n_read;
}

enum load_step { LOAD_FAILED, LOAD_TAKE, LOAD_FETCH, LOAD_IDLE };

/* Waits for the next step; prefers to process fetched spans. may_fetch: more may be read. */
static enum load_step wait_for_step(struct loader *ld, bool may_fetch)
{
    enum load_step step = LOAD_FAILED;
    thread_pool_lock(ld->threads);
    note_position(ld, false);
    while (!thread_pool_failed(ld->threads) && step == LOAD_FAILED) {
        if (span_queue_is_ready_locked(&ld->spans))
            step = LOAD_TAKE;
        else if (may_fetch && span_queue_has_room_locked(&ld->spans))
            step = LOAD_FETCH;
        else if (!may_fetch && !ld->spans.first)
            step = LOAD_IDLE;
        else
            thread_pool_wait_for(ld->threads, WAIT_READER_WORKERS);
    }
    thread_pool_unlock(ld->threads);
    return step;
}

/* Processes all fetched spans. */
static int use_up(struct loader *ld)
{
    enum load_step step;
    while ((step = wait_for_step(ld, false)) == LOAD_TAKE)
        if (take_span(ld) < 0) return -1;
    return step == LOAD_IDLE ? 0 : -1;
}

/* ---- inputs ---- */

/* Places the last template of an input. */
static int finish_templates(struct loader *ld)
{
    if (!ld->templates) return 0;
    if (span_queue_flush(&ld->spans) < 0 || use_up(ld) < 0) return -1;
    return template_fixer_end_large(ld->templates, ld->reader->name);
}

/* Places the rest of an input. Bytes after the last record are an error. */
static int finish_input(struct loader *ld)
{
    return use_up(ld) < 0 || span_reader_end(ld->reader) < 0 ? -1 : finish_templates(ld);
}

/*
 * Ends the input after the last usable record: after an error in an input that cannot be read
 * again, a signal, or most_bytes. Fixes an incomplete last template as if it were complete.
 */
static int end_early(struct loader *ld)
{
    (void)use_up(ld);           /* after a bad record, nothing can follow */
    if (thread_pool_failed(ld->threads) || finish_templates(ld) < 0) return -1;
    thread_pool_lock(ld->threads);
    load_totals_locked(ld->totals)->input_is_cut = true;
    thread_pool_unlock(ld->threads);
    ld->is_cut = true;
    return 0;
}

static int fetch(struct loader *ld)
{
    size_t n_bytes;
    double start = monotonic_seconds();
    int r = span_queue_fetch(&ld->spans, &n_bytes);
    ld->input_seconds += monotonic_seconds() - start;
    if (r == BAM_READER_PIECE) count_fetched(ld, n_bytes);
    return r;
}

static int load_one_input(struct loader *ld)
{
    const struct sort_context *sort = ld->sort;
    uint32_t number = sort->inputs->at - 1;
    uint64_t n_records = number == sort->resume.start.input ? sort->resume.start.n_records : 0;
    span_queue_begin(&ld->spans, ld->reader, number, n_records,
                     bam_inputs_renames(sort->inputs, number));
    for (;;) {
        bool is_enough = ld->most_bytes > 0 && ld->n_fetched >= ld->most_bytes;
        enum load_step step = wait_for_step(ld, !is_enough);
        if (step == LOAD_FAILED || ld->totals->stop_signal) return -1;
        if (step == LOAD_IDLE) return end_early(ld);
        int r = step == LOAD_TAKE ? take_span(ld) : fetch(ld);
        if (r < 0) return -1;
        if (step == LOAD_FETCH && r == BAM_READER_END) return finish_input(ld);
    }
}

/* Handles an error while reading an input. Marks the input as bad, unless something else failed or
   the system could not read it. Returns 0 if the records so far are kept, else -1. */
static int input_failed(struct loader *ld)
{
    if (thread_pool_failed(ld->threads)) return -1;
    if (checkpoint_writer_saves_part(ld->sort->checkpoint)) return end_early(ld);
    if (!ld->reader->io_failed) load_totals_set_bad(ld->totals);
    return -1;
}

static int load_all(struct loader *ld)
{
    const struct sort_context *sort = ld->sort;
    int r = 0;
    while (!ld->is_cut && (r = bam_inputs_next(sort->inputs, &ld->reader)) > 0)
        if (load_one_input(ld) < 0 && (r = input_failed(ld)) < 0) break;
    if (r < 0 && sort->inputs->changed) load_totals_set_bad(ld->totals);
    if (r < 0) return -1;
    thread_pool_lock(ld->threads);
    note_position(ld, true);
    thread_pool_unlock(ld->threads);
    return 0;
}

/* Warns if many reads lack an adjacent mate: the input is probably not grouped by name. */
static void tell_alone(const struct loader *ld)
{
    struct load_counts counts;
    load_totals_look(ld->totals, &counts);
    if (counts.n_alone <= FEW_ALONE || counts.n_alone * ALONE_RATIO <= counts.n_paired) return;
    diag_warning("%" PRIu64 " of %" PRIu64 " paired reads have no mate beside them: if reads of "
                 "one name lie apart, run samtools collate or rocksort -n first",
                 counts.n_alone, counts.n_paired);
}

int load_input(const struct sort_context *sort, uint64_t most_bytes)
{
    struct loader ld = {.sort = sort, .most_bytes = most_bytes, .threads = sort->threads,
                        .totals = sort->totals};
    struct input_streams_settings spans = {
        .threads = ld.threads, .totals = ld.totals, .n_refs = sam_hdr_nref(sort->header),
        .share = {.span_bytes = sort->budget.span_bytes, .ahead_bytes = sort->budget.input_bytes},
        .taker_checks = true};
    if (sort->settings->fixmate) {
        spans.arg = ld.templates = template_fixer_create(sort, &ld.filler);
        spans.make = template_fixer_make;
        spans.drop = template_fixer_drop;
        spans.most_template_bytes = sort->fixmate.max_template_bytes / 2;
        spans.share.ahead_bytes *= 2;   /* memory_budget_fix_templates */
    }
    span_queue_init(&ld.spans, &spans);
    int r = sort_buffer_filler_begin(&ld.filler, sort) < 0 ? -1 : load_all(&ld);
    if (r == 0) sort_buffer_filler_end(&ld.filler);
    if (r < 0) thread_pool_fail(ld.threads);
    thread_pool_add_wait(ld.threads, WAIT_READER_INPUT, ld.input_seconds);
    load_totals_set_loading(ld.totals, false);
    /* Jobs use the sort buffers, and those point to the sort. */
    r = thread_pool_finish_jobs(ld.threads);
    sort_buffer_filler_release(&ld.filler);
    if (r == 0) tell_alone(&ld);
    span_queue_release(&ld.spans);
    template_fixer_destroy(ld.templates);
    return r;
}
