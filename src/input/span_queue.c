/*
 * span_queue.c -- see span_queue.h.
 *
 * The list has all spans that were fetched and not taken, in file order; those before `to_cut` are
 * cut. The worker that fills the span `to_cut` also cuts it and all filled spans after it. The
 * thread that has set is_cutting uses the state of cutting without a lock.
 *
 * Each of several inputs has its own memory limit for reading ahead, and may always have one piece.
 * So a thread that waits for an input never waits for the memory of another.
 */
#include "input/span_queue.h"

#include "bam/bam_check.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum { MOST_READERS = 8 };      /* threads, and files that are read at the same time */

struct reader {                 /* reads every n-th input */
    struct input_streams *all;
    size_t number;
    pthread_t thread;
    bool started;
};

struct input_streams {
    struct input_streams_settings settings;     /* fixed; the queues point to it */
    struct span_queue *queues;  /* of the inputs */
    size_t n;
    struct reader readers[MOST_READERS];
    size_t n_readers;
    /* under the lock */
    bool stopped;
    size_t ahead_bytes;         /* of all inputs */
    pthread_cond_t room;        /* readers wait here for memory, without a wake-up after each job */
};

void span_queue_init(struct span_queue *queue, const struct input_streams_settings *settings)
{
    *queue = (struct span_queue){.settings = settings};
    queue->end = &queue->first;
}

void span_queue_begin(struct span_queue *queue, struct bam_reader *reader, uint32_t input,
                      uint64_t n_records, const struct id_renames *renames)
{
    queue->input = input;
    queue->renames = queue->settings->keeps_ids ? NULL : renames;
    queue->is_read = false;
    queue->reader = reader;
    span_reader_begin(reader, queue->settings->share.span_bytes,
                      queue->settings->most_template_bytes, n_records);
}

/* ---- memory ---- */

/* With the lock held: changes counted memory from `before` to n_bytes. */
static void count(struct span_queue *queue, size_t n_bytes, size_t before)
{
    struct input_streams *all = queue->streams;
    queue->ahead_bytes += n_bytes - before;
    if (!all) return;
    all->ahead_bytes += n_bytes - before;
    if (n_bytes < before) (void)pthread_cond_broadcast(&all->room);
}

static void count_span(struct queued_span *span, size_t n_bytes)
{
    count(span->queue, n_bytes, span->ahead_bytes);
    span->ahead_bytes = n_bytes;
}

bool span_queue_has_room_locked(const struct span_queue *queue)
{
    const struct input_streams_settings *s = queue->settings;
    thread_pool_assert_locked(s->threads);
    return !queue->is_read && (queue->ahead_bytes == queue->tail_bytes ||
                               queue->ahead_bytes + s->share.span_bytes + queue->made_bytes <=
                                   s->share.ahead_bytes);
}

/* Returns a spare span, or a new one. */
static struct queued_span *get_span(struct span_queue *queue)
{
    struct threads *threads = queue->settings->threads;
    thread_pool_lock(threads);
    struct queued_span *span = queue->spare;
    if (span) queue->spare = span->next;
    thread_pool_unlock(threads);
    if (!span) {
        span = xcalloc(1, sizeof *span);
        span->older = queue->newest;
        queue->newest = span;
    }
    *span = (struct queued_span){.records = span->records, .queue = queue, .n_users = 1,
                                 .input = queue->input, .older = span->older};
    return span;
}

void span_queue_drop_locked(struct queued_span *span)
{
    struct span_queue *queue = span->queue;
    const struct input_streams_settings *s = queue->settings;
    thread_pool_assert_locked(s->threads);
    if (--span->n_users > 0) return;
    if (span->made) s->drop(s->arg, span->made);
    count_span(span, 0);
    /* Lines of a million bases should not keep all buffers large. */
    record_span_shrink(&span->records, 2 * s->share.span_bytes);
    record_span_reuse(&span->records);
    span->next = queue->spare;
    queue->spare = span;
}

void span_queue_drop(struct queued_span *span)
{
    struct threads *threads = span->queue->settings->threads;
    thread_pool_lock(threads);
    span_queue_drop_locked(span);
    thread_pool_unlock(threads);
}

/* ---- taking ---- */

bool span_queue_is_ready_locked(const struct span_queue *queue)
{
    thread_pool_assert_locked(queue->settings->threads);
    return queue->first && queue->first->is_done;
}

bool span_queue_is_empty_locked(const struct span_queue *queue)
{
    thread_pool_assert_locked(queue->settings->threads);
    return !queue->first;
}

struct queued_span *span_queue_take_locked(struct span_queue *queue)
{
    struct queued_span *span = queue->first;
    thread_pool_assert_locked(queue->settings->threads);
    queue->first = span->next;
    if (!queue->first) queue->end = &queue->first;
    return span;
}

/* With the lock held: marks the span as ready. The thread pool wakes waiters after each job. */
static void be_done(struct queued_span *span)
{
    struct span_queue *queue = span->queue;
    const struct input_streams_settings *s = queue->settings;
    span->is_done = true;
    while (s->make && !s->drop && span_queue_is_ready_locked(queue))
        span_queue_drop_locked(span_queue_take_locked(queue));
}

/* ---- cutting ---- */

/* True if no record of a span is damaged. */
static bool are_sound(const struct queued_span *span)
{
    struct bam_records records = {span->records.from, span->records.to};
    const uint8_t *rec;
    while ((rec = bam_records_next(&records)))
        if (bam_record_check(rec, span->queue->settings->n_refs)) return false;
    return true;
}

static int check(const struct queued_span *span)
{
    const struct span_queue *queue = span->queue;
    if (queue->settings->taker_checks) return 0;
    return record_span_check(&span->records, queue->reader->name);
}

static void make(struct worker *worker, struct queued_span *span)
{
    struct span_queue *queue = span->queue;
    const struct input_streams_settings *s = queue->settings;
    const char *input = queue->reader->name;
    if (!thread_pool_failed(s->threads) && queue->renames)
        record_span_rename(&span->records, queue->renames, s->n_refs);
    size_t n_bytes = record_span_memory_bytes(&span->records);
    if (!thread_pool_failed(s->threads) && s->make) {
        /* Reports a damaged record first, then what follows the records, then their order. */
        bool is_sound = !record_span_has_problem(&span->records) || are_sound(span);
        int r = is_sound ? check(span) : 0;
        if (r == 0) r = s->make(s->arg, worker, span, input);
        if (r == 0 && !is_sound) r = check(span);
        if (r < 0) thread_pool_fail(s->threads);
    }
    thread_pool_lock(s->threads);
    count_span(span, n_bytes + span->made_bytes);
    queue->made_bytes = span->made_bytes;
    be_done(span);
    thread_pool_unlock(s->threads);
}

static void make_job(struct worker *worker, void *arg)
{
    make(worker, arg);
}

/* Cuts a span. Returns true if its records are to be processed. */
static bool cut(struct queued_span *span)
{
    struct span_queue *queue = span->queue;
    const struct input_streams_settings *s = queue->settings;
    bool is_made = false;
    if (!thread_pool_failed(s->threads)) {
        span_reader_cut(queue->reader, &span->records);
        is_made = (s->make || queue->renames) && span->records.n_records > 0;
        if (s->make && !is_made && check(span) < 0) thread_pool_fail(s->threads);
    }
    size_t tail_bytes = span_reader_tail_bytes(queue->reader);
    if (span->records.n_records == 0) record_span_shrink(&span->records, 0);
    thread_pool_lock(s->threads);
    count(queue, tail_bytes, queue->tail_bytes);
    queue->tail_bytes = tail_bytes;
    count_span(span, record_span_memory_bytes(&span->records) + (is_made ? queue->made_bytes : 0));
    if (!is_made) be_done(span);
    thread_pool_unlock(s->threads);
    return is_made;
}

/* Called when a span is filled. Cuts all spans whose turn it is, unless another thread does so. The
   worker processes the first one in this job, because its records are in the cache. */
static void be_filled(struct queued_span *span, struct worker *worker)
{
    struct span_queue *queue = span->queue;
    struct threads *threads = queue->settings->threads;
    struct queued_span *first = NULL;
    thread_pool_lock(threads);
    span->is_filled = true;
    while (!queue->is_cutting && queue->to_cut && queue->to_cut->is_filled) {
        struct queued_span *next = queue->to_cut;
        queue->to_cut = next->next;
        queue->is_cutting = true;
        thread_pool_unlock(threads);
        bool is_made = cut(next);
        if (is_made && !first)
            first = next;
        else if (is_made)
            (void)thread_pool_submit(threads, make_job, next);
        thread_pool_lock(threads);
        queue->is_cutting = false;
    }
    thread_pool_unlock(threads);
    if (first) make(worker, first);
}

struct fill_scratch {
    struct bgzf_coder bgzf;
    bam1_t *record;             /* scratch space for lines; NULL: not allocated yet */
};

static void release_scratch(void *arg)
{
    struct fill_scratch *scratch = arg;
    bgzf_coder_release(&scratch->bgzf);
    bam_destroy1(scratch->record);
}

static const struct scratch_kind scratch_kind = {sizeof(struct fill_scratch), release_scratch};

static void fill_job(struct worker *worker, void *arg)
{
    enum { LONG_BYTES = 4 << 20 };
    struct fill_scratch *scratch = worker_scratch(worker, &scratch_kind);
    struct queued_span *span = arg;
    const struct span_queue *queue = span->queue;
    struct threads *threads = queue->settings->threads;
    if (!scratch->record) scratch->record = bam_init1();
    xalloc_require(scratch->record != NULL);
    if (!thread_pool_failed(threads) &&
        span_reader_fill(queue->reader, &span->records, &scratch->bgzf, scratch->record) < 0) {
        load_totals_set_bad(queue->settings->totals);
        thread_pool_fail(threads);
    }
    if (scratch->record->m_data > LONG_BYTES) {
        bam_destroy1(scratch->record);
        scratch->record = NULL;
    }
    be_filled(span, worker);
}

/* ---- fetching ---- */

int span_queue_fetch(struct span_queue *queue, size_t *n_bytes)
{
    struct threads *threads = queue->settings->threads;
    struct queued_span *span = get_span(queue);
    int r = span_reader_read(queue->reader, &span->records);
    *n_bytes = queue->reader->is_text ? span->records.packed_bytes : span->records.raw_bytes;
    thread_pool_lock(threads);
    if (r == BAM_READER_PIECE) {
        *queue->end = span;
        queue->end = &span->next;
        if (!queue->to_cut) queue->to_cut = span;
        count_span(span, record_span_memory_bytes(&span->records) + queue->made_bytes);
    } else {
        span_queue_drop_locked(span);
        queue->is_read = true;
        thread_pool_announce(threads);
    }
    thread_pool_unlock(threads);
    bool is_lost = r == BAM_READER_PIECE && thread_pool_submit(threads, fill_job, span) < 0;
    return is_lost ? BAM_READER_ERROR : r;
}

int span_queue_flush(struct span_queue *queue)
{
    struct threads *threads = queue->settings->threads;
    struct queued_span *span = get_span(queue);
    span_reader_flush(queue->reader, &span->records);
    thread_pool_lock(threads);
    count(queue, 0, queue->tail_bytes);
    queue->tail_bytes = 0;
    count_span(span, record_span_memory_bytes(&span->records));
    *queue->end = span;
    queue->end = &span->next;
    thread_pool_unlock(threads);
    return thread_pool_submit(threads, make_job, span);
}

/* ---- the end ---- */

void span_queue_release(struct span_queue *queue)
{
    queue->to_cut = NULL;
    while (queue->first) {
        struct queued_span *span = queue->first;
        queue->first = span->next;
        span_queue_drop(span);
    }
    while (queue->newest) {
        struct queued_span *span = queue->newest;
        queue->newest = span->older;
        record_span_release(&span->records);
        free(span);
    }
}

/* ---- several inputs ---- */

/* Reads the next piece of an input and submits a job to fill it. Returns 0, or -1 after a
   message. */
static int fetch(struct span_queue *queue)
{
    struct threads *threads = queue->settings->threads;
    uint64_t before = queue->reader->file_offset;
    size_t n_bytes;
    int r = span_queue_fetch(queue, &n_bytes);
    /* After the end the reader may be closed already. */
    if (r != BAM_READER_PIECE) return r == BAM_READER_END ? 0 : -1;
    uint64_t n_read = queue->reader->file_offset - before;
    thread_pool_lock(threads);
    load_totals_locked(queue->settings->totals)->file_bytes_read += n_read;
    thread_pool_unlock(threads);
    return 0;
}

/* Waits until an input of the reader may be read; of several returns the one with the least memory
   ahead. NULL if all were read, or the reader should end. */
static struct span_queue *next_to_read(const struct reader *reader)
{
    struct input_streams *all = reader->all;
    struct threads *threads = all->settings.threads;
    struct span_queue *best = NULL;
    thread_pool_lock(threads);
    while (!all->stopped && !thread_pool_failed(threads)) {
        bool all_are_read = true;
        best = NULL;
        for (size_t i = reader->number; i < all->n; i += all->n_readers) {
            struct span_queue *queue = &all->queues[i];
            all_are_read &= queue->is_read;
            bool is_better = !best || queue->ahead_bytes < best->ahead_bytes;
            if (is_better && span_queue_has_room_locked(queue)) best = queue;
        }
        if (best || all_are_read) break;
        (void)pthread_cond_wait(&all->room, thread_pool_mutex(threads));
    }
    bool ends = all->stopped || thread_pool_failed(threads);
    thread_pool_unlock(threads);
    return ends ? NULL : best;
}

static void *read_inputs(void *arg)
{
    struct reader *reader = arg;
    struct span_queue *queue;
    while ((queue = next_to_read(reader)))
        if (fetch(queue) < 0) thread_pool_fail(reader->all->settings.threads);
    return NULL;
}

static int open_inputs(struct input_streams *all)
{
    const struct input_streams_settings *s = &all->settings;
    for (size_t i = 0; i < all->n; i++) {
        size_t number = s->numbers[i];
        span_queue_init(&all->queues[i], s);
        all->queues[i].streams = all;
        struct bam_reader *reader = bam_inputs_open_one(s->inputs, number);
        if (!reader) return -1;
        bam_reader_drop_header(reader);
        span_queue_begin(&all->queues[i], reader, (uint32_t)number, 0,
                         bam_inputs_renames(s->inputs, number));
    }
    return 0;
}

static int start_readers(struct input_streams *all)
{
    all->n_readers = all->n < MOST_READERS ? all->n : MOST_READERS;
    for (size_t i = 0; i < all->n_readers; i++) {
        struct reader *reader = &all->readers[i];
        *reader = (struct reader){.all = all, .number = i};
        int error = thread_start(&reader->thread, "reader", read_inputs, reader);
        reader->started = error == 0;
        if (!error) continue;
        diag_no_thread(error);
        return -1;
    }
    return 0;
}

struct input_streams *input_streams_start(const struct input_streams_settings *settings)
{
    struct input_streams *all = xcalloc(1, sizeof *all);
    all->settings = *settings;
    all->n = settings->n_inputs;
    all->queues = xcalloc(all->n, sizeof *all->queues);
    xalloc_require(pthread_cond_init(&all->room, NULL) == 0);
    if (open_inputs(all) == 0 && start_readers(all) == 0) return all;
    thread_pool_fail(settings->threads);
    input_streams_stop(all);
    (void)thread_pool_finish_jobs(settings->threads);
    input_streams_destroy(all);
    return NULL;
}

int input_streams_next(struct input_streams *all, size_t i, struct queued_span **span)
{
    struct threads *threads = all->settings.threads;
    struct span_queue *queue = &all->queues[i];
    *span = NULL;
    thread_pool_lock(threads);
    while (!thread_pool_failed(threads) && !*span) {
        if (span_queue_is_ready_locked(queue)) {
            *span = span_queue_take_locked(queue);
            if ((*span)->made) break;
            span_queue_drop_locked(*span);      /* it has no records */
            *span = NULL;
        } else if (queue->is_read && span_queue_is_empty_locked(queue)) {
            break;
        } else {
            thread_pool_wait_for(threads, WAIT_DISPATCHER_BLOCKS);
        }
    }
    bool failed = !*span && thread_pool_failed(threads);
    thread_pool_unlock(threads);
    if (failed) return -1;
    if (*span) return 1;
    if (span_reader_end(queue->reader) < 0) return -1;
    return bam_inputs_leave(all->settings.inputs, queue->input);
}

size_t input_streams_excess_bytes(const struct input_streams *all)
{
    size_t planned = all->n * all->settings.share.ahead_bytes;
    thread_pool_assert_locked(all->settings.threads);
    return all->ahead_bytes > planned ? all->ahead_bytes - planned : 0;
}

const char *input_streams_name(const struct input_streams *all, size_t i)
{
    return all->queues[i].reader->name;
}

void input_streams_stop(struct input_streams *all)
{
    if (!all) return;
    struct threads *threads = all->settings.threads;
    thread_pool_lock(threads);
    all->stopped = true;
    (void)pthread_cond_broadcast(&all->room);
    thread_pool_unlock(threads);
    for (size_t i = 0; i < all->n_readers; i++) {
        if (all->readers[i].started) (void)pthread_join(all->readers[i].thread, NULL);
        all->readers[i].started = false;
    }
}

void input_streams_destroy(struct input_streams *all)
{
    if (!all) return;
    for (size_t i = 0; i < all->n; i++) span_queue_release(&all->queues[i]);
    (void)pthread_cond_destroy(&all->room);
    free(all->queues);
    free(all);
}
