/*
 * template_splitter.c -- see template_splitter.h.
 *
 * A ring holds the spans whose templates are being fixed, oldest first. Slots stay in use while
 * records are copied from them.
 */
#include "sort/template_splitter.h"

#include "fixmate/fixed_records.h"
#include "os/tape.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum { LARGE_TEMPLATE_BYTES = 8 << 20 };        /* for any memory limit: all copies of a smaller
                                                   template fit the allowance */

/* A part of a template that does not fit in memory. Its records go to a tape, in parts, each with a
   head. They are read back in these parts, which workers fix. */
struct part_head {
    size_t n_bytes;
    uint64_t first_record;
    struct oversized_place place;
};

struct oversized_spool {
    const struct sort_context *sort;
    struct oversized_template *template; /* shared data of all records of the template */
    struct tape_set *records;
    struct tape_reader reader;
    uint64_t n_records;         /* of the input, up to the last one added */
    struct part_head head;      /* of the current part */
    struct record_bytes made;
};

struct template_work {          /* templates completed by a span */
    struct template_splitter *ts;
    struct queued_span *span;   /* NULL: a part of a large template, or the end of the input */
    struct template_span templates;
    uint64_t first_record;      /* number of the span's first record in the input, from 0 */
    struct oversized_spool *large;      /* a large template to place next, or NULL */
    struct fixed_part part;     /* instead of a span, if part.template is not NULL */
    struct record_bytes part_records;
    struct fixed_records fixed;
    /* under the lock */
    bool done;                  /* the records are fixed */
    unsigned n_users;           /* the loader, and jobs that copy */
};

struct template_splitter {
    const struct sort_context *sort;
    struct threads *threads;
    struct sort_buffer_filler *filler;
    size_t max_template_bytes;
    /* of the current input */
    const char *input;
    struct template_cutter cutter;
    struct oversized_spool *large;      /* the current one, or NULL */
    uint64_t n_records;         /* in spans, and in `large` */
    uint64_t end_offset;        /* offset of the end of the input */
    /* all */
    struct template_work *ring;
    unsigned n_ring, ring_at, ring_used;
    struct template_work *parts;        /* parts of a large template that are being fixed */
    unsigned n_parts;
};

size_t template_splitter_max_template(const struct memory_budget *budget)
{
    size_t n_bytes = budget->total_bytes / 16;
    return n_bytes < LARGE_TEMPLATE_BYTES ? LARGE_TEMPLATE_BYTES : n_bytes;
}

/* ---- oversized templates ---- */

static void begin_part(struct oversized_spool *large)
{
    large->made.n_bytes = 0;
    large->head = (struct part_head){.first_record = large->n_records,
                                     .place = oversized_template_place(large->template)};
}

/* first_record: number of its first record in the input, from 0. */
static struct oversized_spool *oversized_create(const struct sort_context *sort,
                                                   uint64_t first_record)
{
    struct oversized_spool *large = xcalloc(1, sizeof *large);
    large->sort = sort;
    large->n_records = first_record;
    large->template = oversized_template_create(&sort->fixmate);
    large->records = tape_set_create(1, 2 * sort->budget.span_bytes, &sort->temp_places);
    begin_part(large);
    return large;
}

static void oversized_destroy(struct oversized_spool *large)
{
    if (!large) return;
    oversized_template_destroy(large->template);
    tape_reader_release(&large->reader);
    tape_set_destroy(large->records);
    free(large->made.at);
    free(large);
}

static int write_part(struct oversized_spool *large)
{
    large->head.n_bytes = large->made.n_bytes;
    if (large->made.n_bytes == 0) return 0;
    if (tape_set_append(large->records, 0, &large->head, sizeof large->head) < 0 ||
        tape_set_append(large->records, 0, large->made.at, large->made.n_bytes) < 0)
        return -1;
    begin_part(large);
    return 0;
}

/* Adds n_bytes of whole records. */
static int oversized_add(struct oversized_spool *large, const uint8_t *records, size_t n_bytes)
{
    struct record_bytes *made = &large->made;
    struct bam_records all = {records, records + n_bytes};
    for (const uint8_t *rec; (rec = bam_records_next(&all));) {
        size_t rec_bytes = bam_record_bytes(rec);
        oversized_template_look(large->template, rec);
        xgrow(&made->at, &made->room, made->n_bytes + rec_bytes, made->n_bytes / 2, 1);
        memcpy(made->at + made->n_bytes, rec, rec_bytes);
        made->n_bytes += rec_bytes;
        large->n_records++;
        if (made->n_bytes >= large->sort->budget.span_bytes && write_part(large) < 0)
            return -1;
    }
    return 0;
}

/* Ends the template. */
static int oversized_end(struct oversized_spool *large)
{
    if (write_part(large) < 0) return -1;
    oversized_template_end(large->template);
    free(large->made.at);
    large->made = (struct record_bytes){NULL, 0, 0};
    tape_reader_begin(&large->reader, large->records, 0);
    return 0;
}

/* Reads the records of the next part. Returns 1, 0 if there is none, or -1. */
static int oversized_next(struct oversized_spool *large, struct template_work *work)
{
    struct record_bytes *records = &work->part_records;
    struct part_head head;
    if (tape_is_at_end(&large->reader)) return 0;
    const uint8_t *bytes = tape_read(&large->reader, sizeof head);
    if (!bytes) return -1;
    memcpy(&head, bytes, sizeof head);
    bytes = tape_read(&large->reader, head.n_bytes);
    if (!bytes) return -1;
    xgrow(&records->at, &records->room, head.n_bytes, 0, 1);
    memcpy(records->at, bytes, head.n_bytes);
    work->first_record = head.first_record;
    work->part = (struct fixed_part){.template = large->template, .place = head.place,
                                     .records = records->at, .n_bytes = head.n_bytes,
                                     .max_bytes = 4 * large->sort->budget.span_bytes};
    return 1;
}

/* ---- the splitter ---- */

static struct template_work *make_works(struct template_splitter *ts, unsigned n)
{
    struct template_work *works = xcalloc(n, sizeof *works);
    for (unsigned i = 0; i < n; i++) works[i].ts = ts;
    return works;
}

static void free_works(struct template_work *works, unsigned n)
{
    for (unsigned i = 0; works && i < n; i++) {
        free(works[i].part_records.at);
        oversized_destroy(works[i].large);
        template_span_release(&works[i].templates);
        fixed_records_release(&works[i].fixed);
    }
    free(works);
}

struct template_splitter *template_splitter_create(const struct sort_context *sort,
                                                   struct sort_buffer_filler *filler)
{
    struct template_splitter *ts = xcalloc(1, sizeof *ts);
    *ts = (struct template_splitter){
        .sort = sort, .threads = sort->threads, .filler = filler,
        .max_template_bytes = template_splitter_max_template(&sort->budget),
        .n_ring = 2 * sort->budget.n_spans, .n_parts = sort->budget.n_threads + 1,
    };
    ts->ring = make_works(ts, ts->n_ring);
    return ts;
}

void template_splitter_destroy(struct template_splitter *ts)
{
    if (!ts) return;
    free_works(ts->ring, ts->n_ring);
    free_works(ts->parts, ts->n_parts);
    template_cutter_release(&ts->cutter);
    oversized_destroy(ts->large);
    free(ts);
}

void template_splitter_begin(struct template_splitter *ts, const char *input, uint64_t n_records)
{
    ts->input = input;
    ts->n_records = n_records;
    ts->end_offset = INPUT_OFFSET_UNKNOWN;
}

/* ---- fixing ---- */

static int fix_records(struct template_work *work, struct record_problem *problem)
{
    const struct fixmate_rules *rules = &work->ts->sort->fixmate;
    uint8_t *records = work->span ? work->span->records.from : NULL;
    if (work->part.template)
        return fixed_records_make_part(&work->fixed, rules, &work->part, problem);
    return fixed_records_make(&work->fixed, rules, records, &work->templates, problem);
}

static void fix_job(struct worker *worker, void *arg)
{
    (void)worker;
    struct template_work *work = arg;
    const struct sort_context *sort = work->ts->sort;
    const struct fixmate_space *space = &work->fixed.space;
    struct record_problem problem = {.record = work->first_record, .is_damaged = true};
    if (!thread_pool_failed(sort->threads) && fix_records(work, &problem) < 0) {
        record_problem_print(&problem, work->ts->input);
        load_totals_set_bad(sort->totals);
        thread_pool_fail(sort->threads);
    }
    thread_pool_lock(sort->threads);
    struct load_counts *counts = load_totals_locked(sort->totals);
    counts->n_paired += space->n_paired;
    counts->n_alone += space->n_alone;
    work->done = true;
    thread_pool_unlock(sort->threads);
}

static int submit(struct template_work *work)
{
    struct threads *threads = work->ts->threads;
    thread_pool_lock(threads);
    work->done = false;
    thread_pool_unlock(threads);
    return thread_pool_submit(threads, fix_job, work);
}

/* Waits until at most n_users use the records of a work. */
static int wait_for_users(const struct template_work *work, unsigned n_users)
{
    struct threads *threads = work->ts->threads;
    thread_pool_lock(threads);
    while (work->n_users > n_users && !thread_pool_failed(threads)) thread_pool_wait(threads);
    thread_pool_unlock(threads);
    return thread_pool_failed(threads) ? -1 : 0;
}

/* Waits until a worker has fixed the records of a work. */
static int wait_until_fixed(const struct template_work *work)
{
    struct threads *threads = work->ts->threads;
    thread_pool_lock(threads);
    while (!work->done && !thread_pool_failed(threads))
        thread_pool_wait_for(threads, WAIT_READER_WORKERS);
    thread_pool_unlock(threads);
    return thread_pool_failed(threads) ? -1 : 0;
}

/* With the lock held: removes a user of a work. */
static void drop_user(void *owner)
{
    struct template_work *work = owner;
    size_t keep_bytes = 2 * work->ts->sort->budget.span_bytes;
    if (--work->n_users > 0) return;
    /* Otherwise one large template would leave every buffer in the ring large. */
    fixed_records_shrink(&work->fixed, keep_bytes);
    if (work->templates.left.room > keep_bytes) template_span_release(&work->templates);
}

static void drop_work(struct template_work *work)
{
    struct threads *threads = work->ts->threads;
    thread_pool_lock(threads);
    if (work->span) span_queue_drop_locked(work->span);
    work->span = NULL;
    drop_user(work);
    thread_pool_unlock(threads);
}

/* ---- cutting ---- */

/* A template is in memory four times: as read, as cut, as fixed, and in its sort buffer; with -M
   its tags are there once more; and each of its records has a draft. */
static bool is_large(const struct template_splitter *ts)
{
    const struct template_cutter *c = &ts->cutter;
    return c->kept.n_bytes + c->n_kept * sizeof(struct draft) / 2 > ts->max_template_bytes;
}

/* Adds the records of a span to the large template. */
static int add_to_large(struct template_splitter *ts, const uint8_t *records,
                        struct template_span *templates)
{
    size_t n_bytes = templates->to - templates->from;
    ts->n_records += templates->n_records;
    int r = oversized_add(ts->large, templates->left.at, templates->left.n_bytes);
    if (r == 0 && n_bytes > 0) r = oversized_add(ts->large, records + templates->from, n_bytes);
    template_span_release(templates);
    return r;
}

/* Makes the incomplete template a large one. */
static int begin_large(struct template_splitter *ts)
{
    struct template_span templates = {.n_records = 0};
    ts->large = oversized_create(ts->sort, ts->n_records);
    template_cut_open(&ts->cutter, &templates);
    return add_to_large(ts, NULL, &templates);
}

/* Takes the records of a span that continue the large template. Stores where the rest of the span
   starts, and how many records precede it. Returns 0, or -1 after a message. */
static int go_on_with_large(struct template_work *work, const uint8_t *records, size_t n_bytes,
                            bool is_last, size_t *from, size_t *n_before)
{
    struct template_splitter *ts = work->ts;
    struct template_span templates = {.n_records = 0};
    template_cut_more(&ts->cutter, records, n_bytes, &templates);
    *from = templates.to;
    *n_before = templates.n_records;
    if (add_to_large(ts, records, &templates) < 0) return -1;
    if (ts->cutter.is_open && !is_last) return 0;
    ts->cutter.is_open = false;
    work->large = ts->large;
    ts->large = NULL;
    return oversized_end(work->large);
}

/* Divides a span, or the rest at the end, into templates. is_last: no usable span follows. */
static int cut(struct template_work *work, bool is_last)
{
    static const struct record_span nothing;
    struct template_splitter *ts = work->ts;
    const struct record_span *span = work->span ? &work->span->records : &nothing;
    struct template_span *templates = &work->templates;
    size_t n_bytes = span->n_records > 0 ? (size_t)(span->to - span->from) : 0;
    size_t from = 0, n_before = 0;
    template_span_empty(templates);
    if (ts->large && go_on_with_large(work, span->from, n_bytes, is_last, &from, &n_before) < 0)
        return -1;
    work->first_record = ts->n_records;
    if (!ts->large) {
        const uint8_t *rest = from > 0 ? span->from + from : span->from;
        template_cut(&ts->cutter, rest, n_bytes - from, span->n_records - n_before, is_last,
                     templates);
        templates->from += from;
        templates->to += from;
    }
    ts->n_records += templates->n_records;
    if (!ts->large && is_large(ts) && begin_large(ts) < 0) return -1;
    return submit(work);
}

/* Divides a span into templates, in the next free slot of the ring. */
static int add(struct template_splitter *ts, struct queued_span *span, bool is_last)
{
    struct template_work *work = &ts->ring[(ts->ring_at + ts->ring_used) % ts->n_ring];
    ts->ring_used++;
    work->span = span;
    work->n_users = 1;
    if (cut(work, is_last) == 0) return 0;
    thread_pool_fail(ts->threads); /* no job will fix its span */
    return -1;
}

bool template_splitter_has_room_locked(const struct template_splitter *ts)
{
    thread_pool_assert_locked(ts->threads);
    return ts->ring_used < ts->n_ring &&
           ts->ring[(ts->ring_at + ts->ring_used) % ts->n_ring].n_users == 0;
}

int template_splitter_add(struct template_splitter *ts, struct queued_span *span)
{
    return add(ts, span, record_span_has_problem(&span->records));
}

int template_splitter_finish(struct template_splitter *ts, uint64_t end_offset)
{
    ts->end_offset = end_offset;
    if (wait_for_users(&ts->ring[(ts->ring_at + ts->ring_used) % ts->n_ring], 0) < 0) return -1;
    return add(ts, NULL, true);
}

/* ---- placing ---- */

/* The position in the input after some templates of a work. */
static struct input_position position_after(const struct template_work *work,
                                            const struct fixed_end *end)
{
    struct input_position position = {work->ts->sort->inputs->at - 1,
                                      INPUT_OFFSET_UNKNOWN,
                                      work->first_record + end->n_records};
    if (end->piece_at == FIXED_END_UNKNOWN) return position;
    if (!work->span) {
        position.offset = work->ts->end_offset;
        return position;
    }
    const struct record_span *span = &work->span->records;
    position.offset = record_span_offset(span, end->piece_at > 0 ? span->from + end->piece_at
                                                                : span->from);
    return position;
}

/* Places fixed records. */
static int place_group(struct template_work *work, const struct fixed_group *group)
{
    struct sort_buffer_filler *filler = work->ts->filler;
    bool has_all = group->end.n_records - group->n_before == group->n_records;
    const struct placed_records records = {
        .at = group->at, .n_bytes = group->n_bytes, .n_records = group->n_records,
        .first = has_all ? work->first_record + group->n_before : RECORD_NUMBER_UNKNOWN,
        .input = work->ts->input, .end = position_after(work, &group->end),
        .n_users = &work->n_users, .drop = drop_user, .owner = work};
    filler->n_bytes += group->n_bytes;
    if (group->n_records > 0) return sort_buffer_filler_place(filler, &records);
    filler->at = records.end;
    return 0;
}

/* Places fixed records. A sort buffer ends where a template ends, so that reading can resume there;
   except within a large one. */
static int place_groups(struct template_work *work)
{
    struct sort_buffer_filler *filler = work->ts->filler;
    struct fixed_group group;
    while (fixed_records_take(&work->fixed, sort_buffer_filler_room(filler), &group)) {
        if (group.n_bytes > sort_buffer_filler_room(filler) &&
            sort_buffer_filler_make_room(filler, group.n_bytes) < 0)
            return -1;
        if (place_group(work, &group) < 0) return -1;
    }
    return 0;
}

/* Submits the next records of a work, once the placed ones are copied. */
static int fix_rest(struct template_work *work)
{
    if (wait_for_users(work, 1) < 0) return -1;         /* the loader */
    work->first_record += work->fixed.n_done;
    return submit(work) < 0 ? -1 : wait_until_fixed(work);
}

/* Reads the next part of a large template, and submits the job that fixes it. Returns 1, 0 if there
   is none, or -1. */
static int fetch_part(struct oversized_spool *large, struct template_work *part)
{
    if (wait_for_users(part, 0) < 0) return -1;
    int r = oversized_next(large, part);
    if (r < 0) thread_pool_fail(part->ts->threads);
    if (r <= 0) return r;
    part->n_users = 1;
    return submit(part) < 0 ? -1 : 1;
}

static int place_part(struct template_work *part)
{
    if (wait_until_fixed(part) < 0 || place_groups(part) < 0) return -1;
    while (part->part.at < part->part.n_bytes)
        if (fix_rest(part) < 0 || place_groups(part) < 0) return -1;
    drop_work(part);
    return 0;
}

/* Places the records of the large template that precedes a span. */
static int place_large(struct template_work *work)
{
    struct template_splitter *ts = work->ts;
    unsigned first = 0, n = 0;
    int r = 1;
    if (!ts->parts) ts->parts = make_works(ts, ts->n_parts);
    do {
        while (r > 0 && n < ts->n_parts) {
            r = fetch_part(work->large, &ts->parts[(first + n) % ts->n_parts]);
            if (r > 0) n++;
        }
        if (r < 0 || (n > 0 && place_part(&ts->parts[first]) < 0)) return -1;
        first = (first + 1) % ts->n_parts;
    } while (n-- > 1);
    oversized_destroy(work->large);
    work->large = NULL;
    return 0;
}

/* Makes a large template of one that mate tags have enlarged too much. It follows the records of
   the span that are already placed. */
static int make_large(struct template_work *work)
{
    const struct fixed_records *fixed = &work->fixed;
    work->large = oversized_create(work->ts->sort,
                                   work->first_record + fixed->n_done - fixed->too_large);
    int r = 0;
    for (size_t i = 0; r == 0 && i < fixed->too_large; i++) {
        const uint8_t *rec = fixed->space.drafts[i].rec;
        r = oversized_add(work->large, rec, bam_record_bytes(rec));
    }
    if (r == 0) r = oversized_end(work->large);
    if (r < 0) thread_pool_fail(work->ts->threads);
    return r;
}

/* Places all records of a work. */
static int place_work(struct template_work *work)
{
    if (work->large && place_large(work) < 0) return -1;
    if (place_groups(work) < 0) return -1;
    while (work->fixed.too_large > 0 || work->fixed.has_rest) {
        if (work->fixed.too_large > 0 && make_large(work) < 0) return -1;
        if (fix_rest(work) < 0 || (work->large && place_large(work) < 0) ||
            place_groups(work) < 0)
            return -1;
    }
    return work->span ? record_span_check(&work->span->records, work->ts->input) : 0;
}

bool template_splitter_is_ready_locked(const struct template_splitter *ts)
{
    thread_pool_assert_locked(ts->threads);
    return ts->ring_used > 0 && ts->ring[ts->ring_at].done;
}

bool template_splitter_is_empty(const struct template_splitter *ts)
{
    return ts->ring_used == 0;
}

int template_splitter_place(struct template_splitter *ts)
{
    struct template_work *work = &ts->ring[ts->ring_at];
    ts->ring_at = (ts->ring_at + 1) % ts->n_ring;
    ts->ring_used--;
    int r = place_work(work);
    drop_work(work);
    return r;
}
