/* template_fixer.c -- see template_fixer.h. */
#include "sort/template_fixer.h"

#include "fixmate/fixed_records.h"
#include "os/tape.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

/* The whole templates of a span. */
struct fixed_span {
    struct fixed_records fixed;
    size_t from, to;            /* offsets in the span */
    size_t at;                  /* offset of the first record that is not fixed yet */
    uint64_t first_record;      /* number in the input of the first one in `fixed` */
    struct fixed_span *next;    /* of the spare ones */
};

/* A template that does not fit in memory. */
struct large_template {
    struct oversized_template *template;        /* NULL: there is none */
    struct tape_set *records;
    struct input_position at;   /* of the next record to place; the offset is unknown */
    uint8_t *rec;               /* this record */
    size_t rec_room;
};

struct template_fixer {
    const struct sort_context *sort;
    struct threads *threads;
    struct sort_buffer_filler *filler;
    struct large_template large;        /* may continue in the next span */
    struct fixed_records large_fixed;
    /* under the lock */
    unsigned n_large_users;     /* jobs that copy from large_fixed */
    struct fixed_span *spare;
};

struct template_fixer *template_fixer_create(const struct sort_context *sort,
                                             struct sort_buffer_filler *filler)
{
    struct template_fixer *tf = xcalloc(1, sizeof *tf);
    *tf = (struct template_fixer){.sort = sort, .threads = sort->threads, .filler = filler};
    return tf;
}

static void release_large(struct large_template *large)
{
    oversized_template_destroy(large->template);
    tape_set_destroy(large->records);
    free(large->rec);
    *large = (struct large_template){NULL};
}

void template_fixer_destroy(struct template_fixer *tf)
{
    if (!tf) return;
    for (struct fixed_span *spare; (spare = tf->spare);) {
        tf->spare = spare->next;
        fixed_records_release(&spare->fixed);
        free(spare);
    }
    release_large(&tf->large);
    fixed_records_release(&tf->large_fixed);
    free(tf);
}

/* ---- fixing ---- */

static int fail(const struct template_fixer *tf, const struct record_problem *problem,
                const char *input)
{
    record_problem_print(problem, input);
    load_totals_set_bad(tf->sort->totals);
    thread_pool_fail(tf->threads);
    return -1;
}

/* Fixes the next templates of a span. */
static int fix_next(struct template_fixer *tf, struct queued_span *queued, const char *input)
{
    struct fixed_span *span = queued->made;
    const struct fixmate_space *space = &span->fixed.space;
    struct record_problem problem = {.record = span->first_record, .is_damaged = true};
    if (fixed_records_make(&span->fixed, &tf->sort->fixmate, queued->records.from, &span->at,
                           span->to, &problem) < 0)
        return fail(tf, &problem, input);
    thread_pool_lock(tf->threads);
    struct load_counts *counts = load_totals_locked(tf->sort->totals);
    counts->n_paired += space->n_paired;
    counts->n_alone += space->n_alone;
    thread_pool_unlock(tf->threads);
    return 0;
}

int template_fixer_make(void *arg, struct worker *worker, struct queued_span *queued,
                        const char *input)
{
    struct template_fixer *tf = arg;
    const struct record_span *records = &queued->records;
    (void)worker;
    thread_pool_lock(tf->threads);
    struct fixed_span *span = tf->spare;
    if (span) tf->spare = span->next;
    thread_pool_unlock(tf->threads);
    if (!span) span = xcalloc(1, sizeof *span);
    queued->made = span;
    span->from = span->at = record_span_place(records, records->n_continuing);
    span->to = record_span_place(records, records->n_records - records->n_continued);
    span->first_record = records->first_record + records->n_continuing;
    int r = fix_next(tf, queued, input);
    queued->made_bytes = fixed_records_memory_bytes(&span->fixed);
    return r;
}

void template_fixer_drop(void *arg, void *made)
{
    struct template_fixer *tf = arg;
    struct fixed_span *span = made;
    thread_pool_assert_locked(tf->threads);
    /* Otherwise one large template would leave every buffer large. */
    fixed_records_shrink(&span->fixed, 2 * tf->sort->budget.span_bytes);
    span->next = tf->spare;
    tf->spare = span;
}

/* ---- placing ---- */

/* Waits until at most `most` use some fixed records. */
static int wait_for_users(const struct template_fixer *tf, const unsigned *n_users, unsigned most)
{
    thread_pool_lock(tf->threads);
    while (*n_users > most && !thread_pool_failed(tf->threads)) thread_pool_wait(tf->threads);
    thread_pool_unlock(tf->threads);
    return thread_pool_failed(tf->threads) ? -1 : 0;
}

/* Places fixed records. A sort buffer ends where a template ends, so that reading can resume there;
   except within a large one, which has no span. `records` says what all groups have in common; its
   end is the position before them. */
static int place_fixed(struct template_fixer *tf, struct fixed_records *fixed,
                       const struct record_span *span, struct placed_records records)
{
    struct sort_buffer_filler *filler = tf->filler;
    const uint64_t first = records.end.n_records;
    struct fixed_group group;
    while (fixed_records_take(fixed, sort_buffer_filler_room(filler), &group)) {
        if (group.n_bytes > sort_buffer_filler_room(filler) &&
            sort_buffer_filler_make_room(filler, group.n_bytes) < 0)
            return -1;
        bool has_all = group.end.n_records - group.n_before == group.n_records;
        records.at = group.at;
        records.n_bytes = group.n_bytes;
        records.n_records = group.n_records;
        records.first = has_all ? first + group.n_before : RECORD_NUMBER_UNKNOWN;
        records.end.n_records = first + group.end.n_records;
        if (span)
            records.end.offset = record_span_offset(span, span->from + group.end.at,
                                                    records.end.n_records - span->first_record);
        filler->n_bytes += group.n_bytes;
        filler->at = records.end;
        if (group.n_records > 0 && sort_buffer_filler_place(filler, &records) < 0) return -1;
    }
    return 0;
}

/* ---- large templates ---- */

static void begin_large(struct template_fixer *tf, uint32_t input, uint64_t first_record)
{
    const struct sort_context *sort = tf->sort;
    tf->large = (struct large_template){
        .template = oversized_template_create(&sort->fixmate),
        .records = tape_set_create(1, 2 * sort->budget.span_bytes, &sort->temp_places),
        .at = {input, INPUT_OFFSET_UNKNOWN, first_record},
    };
}

static int add_to_large(struct template_fixer *tf, const uint8_t *rec)
{
    oversized_template_look(tf->large.template, rec);
    return tape_set_append(tf->large.records, 0, rec, bam_record_bytes(rec));
}

static int add_all_to_large(struct template_fixer *tf, const uint8_t *from, const uint8_t *to)
{
    struct bam_records records = {from, to};
    for (const uint8_t *rec; (rec = bam_records_next(&records));)
        if (add_to_large(tf, rec) < 0) return -1;
    return 0;
}

/* Reads the next record of the large template. */
static int read_large(struct large_template *large, struct tape_reader *reader)
{
    enum { SIZE_BYTES = 4 };
    const uint8_t *bytes = tape_read(reader, SIZE_BYTES);
    if (!bytes) return -1;
    size_t n_bytes = bam_record_bytes(bytes);
    xgrow(&large->rec, &large->rec_room, n_bytes, 0, 1);
    memcpy(large->rec, bytes, SIZE_BYTES);
    bytes = tape_read(reader, n_bytes - SIZE_BYTES);
    if (!bytes) return -1;
    memcpy(large->rec + SIZE_BYTES, bytes, n_bytes - SIZE_BYTES);
    return 0;
}

static void drop_large(void *owner)
{
    struct template_fixer *tf = owner;
    tf->n_large_users--;
}

/* Fixes and places the next records of the large template. */
static int place_part(struct template_fixer *tf, struct tape_reader *reader, const char *input)
{
    struct large_template *large = &tf->large;
    struct fixed_records *fixed = &tf->large_fixed;
    struct record_problem problem = {.record = large->at.n_records, .is_damaged = true};
    const struct placed_records records = {
        .input = input, .end = large->at, .n_users = &tf->n_large_users, .drop = drop_large,
        .owner = tf};
    if (wait_for_users(tf, &tf->n_large_users, 0) < 0) return -1;
    fixed_records_empty(fixed);
    while (tape_left(reader) > 0 && fixed->space.out_bytes < 4 * tf->sort->budget.span_bytes) {
        if (read_large(large, reader) < 0) return -1;
        if (fixed_records_add(fixed, &tf->sort->fixmate, large->template, large->rec, &problem) < 0)
            return fail(tf, &problem, input);
    }
    large->at.n_records = problem.record;
    return place_fixed(tf, fixed, NULL, records);
}

int template_fixer_end_large(struct template_fixer *tf, const char *input)
{
    struct tape_reader reader = {NULL};
    int r = 0;
    if (!tf->large.template) return 0;
    oversized_template_end(tf->large.template);
    tape_reader_begin(&reader, tf->large.records, 0);
    while (r == 0 && tape_left(&reader) > 0) r = place_part(tf, &reader, input);
    tape_reader_release(&reader);
    release_large(&tf->large);
    return r;
}

/* ---- spans ---- */

/* Places a template that mate tags enlarge too much. */
static int place_enlarged(struct template_fixer *tf, const struct queued_span *queued,
                          const char *input)
{
    const struct fixed_span *span = queued->made;
    const struct fixed_records *fixed = &span->fixed;
    begin_large(tf, queued->input, span->first_record + fixed->n_done - fixed->too_large);
    for (size_t i = 0; i < fixed->too_large; i++)
        if (add_to_large(tf, fixed->space.drafts[i].rec) < 0) return -1;
    return template_fixer_end_large(tf, input);
}

static void drop_span(void *owner)
{
    span_queue_drop_locked(owner);
}

/* Places the whole templates of a span. */
static int place_whole(struct template_fixer *tf, struct queued_span *queued, const char *input)
{
    struct fixed_span *span = queued->made;
    for (;;) {
        const struct placed_records records = {
            .input = input, .end = {queued->input, INPUT_OFFSET_UNKNOWN, span->first_record},
            .n_users = &queued->n_users, .drop = drop_span, .owner = queued};
        if (place_fixed(tf, &span->fixed, &queued->records, records) < 0 ||
            (span->fixed.too_large > 0 && place_enlarged(tf, queued, input) < 0))
            return -1;
        if (span->at == span->to) return 0;
        if (wait_for_users(tf, &queued->n_users, 1) < 0) return -1;     /* the loader */
        span->first_record += span->fixed.n_done;
        if (fix_next(tf, queued, input) < 0) return -1;
    }
}

static int place_span(struct template_fixer *tf, struct queued_span *queued, const char *input)
{
    const struct record_span *records = &queued->records;
    const struct fixed_span *span = queued->made;
    if (add_all_to_large(tf, records->from, records->from + span->from) < 0) return -1;
    if (records->n_continuing == records->n_records) return 0;
    if (template_fixer_end_large(tf, input) < 0 || place_whole(tf, queued, input) < 0) return -1;
    if (records->n_continued == 0) return 0;
    begin_large(tf, queued->input,
                records->first_record + records->n_records - records->n_continued);
    return add_all_to_large(tf, records->from + span->to, records->to);
}

int template_fixer_place(struct template_fixer *tf, struct queued_span *queued, const char *input)
{
    const struct record_span *records = &queued->records;
    if (records->n_records > 0 && place_span(tf, queued, input) < 0) return -1;
    if (record_span_has_problem(records) && template_fixer_end_large(tf, input) < 0) return -1;
    return record_span_check(records, input);
}
