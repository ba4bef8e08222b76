/*
 * span_queue.c -- see span_queue.h.
 *
 * The list has all spans that were fetched and not taken, in the order of the file; those before
 * `to_cut` are cut. The worker that fills the span that is to be cut next also cuts it, and all
 * after it that are filled. What only the thread that cuts uses needs no lock: it has set
 * is_cutting.
 */
#include "pipeline/span_queue.h"

#include "util/xalloc.h"

#include <stdlib.h>

void span_queue_init(struct span_queue *queue, const struct span_queue_settings *settings)
{
    *queue = (struct span_queue){.settings = *settings};
    queue->end = &queue->first;
}

void span_queue_begin(struct span_queue *queue, struct bam_reader *reader, uint32_t input,
                      uint64_t n_records, const struct id_renames *renames)
{
    queue->input = input;
    queue->renames = queue->settings.keeps_ids ? NULL : renames;
    queue->is_read = false;
    span_reader_begin(&queue->reader, reader, queue->settings.piece_bytes, n_records);
}

/* ---- memory ---- */

/* With the lock held: counts memory as n_bytes that was counted as `before`. */
static void count(struct span_queue *queue, size_t n_bytes, size_t before)
{
    const struct span_queue_settings *s = &queue->settings;
    queue->ahead_bytes += n_bytes - before;
    if (s->all_bytes) *s->all_bytes += n_bytes - before;
    if (n_bytes < before && s->room) (void)pthread_cond_broadcast(s->room);
}

static void count_span(struct queued_span *span, size_t n_bytes)
{
    count(span->queue, n_bytes, span->ahead_bytes);
    span->ahead_bytes = n_bytes;
}

bool span_queue_has_room_locked(const struct span_queue *queue)
{
    const struct span_queue_settings *s = &queue->settings;
    crew_assert_locked(s->crew);
    return !queue->is_read && (queue->ahead_bytes == queue->tail_bytes ||
                               queue->ahead_bytes + s->piece_bytes + queue->made_bytes <=
                                   s->most_bytes);
}

/* A span that was used before, or a new one. */
static struct queued_span *get_span(struct span_queue *queue)
{
    struct crew *crew = queue->settings.crew;
    crew_lock(crew);
    struct queued_span *span = queue->spare;
    if (span) queue->spare = span->next;
    crew_unlock(crew);
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
    const struct span_queue_settings *s = &queue->settings;
    crew_assert_locked(s->crew);
    if (--span->n_users > 0) return;
    if (span->made) s->drop(s->arg, span->made);
    count_span(span, 0);
    /* One line of a million bases should not make every buffer stay large. */
    record_span_shrink(&span->records, 2 * s->piece_bytes);
    record_span_reuse(&span->records);
    span->next = queue->spare;
    queue->spare = span;
}

/* ---- taking ---- */

bool span_queue_is_ready_locked(const struct span_queue *queue)
{
    crew_assert_locked(queue->settings.crew);
    return queue->first && queue->first->is_done;
}

bool span_queue_is_empty_locked(const struct span_queue *queue)
{
    crew_assert_locked(queue->settings.crew);
    return !queue->first;
}

struct queued_span *span_queue_take_locked(struct span_queue *queue)
{
    struct queued_span *span = queue->first;
    crew_assert_locked(queue->settings.crew);
    queue->first = span->next;
    if (!queue->first) queue->end = &queue->first;
    return span;
}

/* With the lock held: the span can be taken. The crew announces the end of each job. */
static void be_done(struct queued_span *span)
{
    struct span_queue *queue = span->queue;
    const struct span_queue_settings *s = &queue->settings;
    span->is_done = true;
    while (s->make && !s->drop && span_queue_is_ready_locked(queue))
        span_queue_drop_locked(span_queue_take_locked(queue));
}

/* ---- cutting ---- */

static void make(struct worker *worker, struct queued_span *span)
{
    struct span_queue *queue = span->queue;
    const struct span_queue_settings *s = &queue->settings;
    const char *input = queue->reader.name;
    if (!crew_failed(s->crew) && queue->renames)
        record_span_rename(&span->records, queue->renames, s->n_refs, s->has_offsets);
    size_t n_bytes = record_span_memory_bytes(&span->records);
    if (!crew_failed(s->crew) && s->make && (s->make(s->arg, worker, span, input) < 0 ||
                                             record_span_check(&span->records, input) < 0))
        crew_fail(s->crew);
    crew_lock(s->crew);
    count_span(span, n_bytes + span->made_bytes);
    queue->made_bytes = span->made_bytes;
    be_done(span);
    crew_unlock(s->crew);
}

static void make_job(struct worker *worker, void *arg)
{
    make(worker, arg);
}

/* Cuts a span. Returns true if something is to be made of it. */
static bool cut(struct queued_span *span)
{
    struct span_queue *queue = span->queue;
    const struct span_queue_settings *s = &queue->settings;
    bool is_made = false;
    if (!crew_failed(s->crew)) {
        span_reader_cut(&queue->reader, &span->records);
        is_made = (s->make || queue->renames) && span->records.n_records > 0;
        if (s->make && !is_made && record_span_check(&span->records, queue->reader.name) < 0)
            crew_fail(s->crew);
    }
    size_t tail_bytes = span_reader_tail_bytes(&queue->reader);
    if (span->records.n_records == 0) record_span_shrink(&span->records, 0);
    crew_lock(s->crew);
    count(queue, tail_bytes, queue->tail_bytes);
    queue->tail_bytes = tail_bytes;
    count_span(span, record_span_memory_bytes(&span->records) + (is_made ? queue->made_bytes : 0));
    if (!is_made) be_done(span);
    crew_unlock(s->crew);
    return is_made;
}

/* The raw bytes of a span are there. Cuts all spans whose turn it is, unless another thread does
   so. A worker makes something of the first one in this job: its records are in the cache. worker
   NULL: the thread that fetches calls, and making becomes jobs. */
static void be_filled(struct queued_span *span, struct worker *worker)
{
    struct span_queue *queue = span->queue;
    struct crew *crew = queue->settings.crew;
    struct queued_span *first = NULL;
    crew_lock(crew);
    span->is_filled = true;
    while (!queue->is_cutting && queue->to_cut && queue->to_cut->is_filled) {
        struct queued_span *next = queue->to_cut;
        queue->to_cut = next->next;
        queue->is_cutting = true;
        crew_unlock(crew);
        bool is_made = cut(next);
        if (is_made && worker && !first)
            first = next;
        else if (is_made)
            (void)crew_submit(crew, make_job, next);
        crew_lock(crew);
        queue->is_cutting = false;
    }
    if (!worker) crew_announce(crew);
    crew_unlock(crew);
    if (first) make(worker, first);
}

struct fill_scratch {
    struct bgzf_coder bgzf;
    bam1_t *record;             /* that a line becomes; NULL: there was none yet */
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
    struct crew *crew = queue->settings.crew;
    if (!scratch->record) scratch->record = bam_init1();
    xalloc_require(scratch->record != NULL);
    if (!crew_failed(crew) &&
        span_reader_fill(&queue->reader, &span->records, &scratch->bgzf, scratch->record) < 0) {
        load_totals_set_bad(queue->settings.totals);
        crew_fail(crew);
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
    struct crew *crew = queue->settings.crew;
    struct queued_span *span = get_span(queue);
    int r = span_reader_read(&queue->reader, &span->records);
    const struct bam_piece *piece = &span->records.piece;
    *n_bytes = queue->reader.is_text ? piece->lines.text_bytes : piece->raw_bytes;
    crew_lock(crew);
    if (r == BAM_READER_PIECE) {
        *queue->end = span;
        queue->end = &span->next;
        if (!queue->to_cut) queue->to_cut = span;
        count_span(span, record_span_memory_bytes(&span->records) + queue->made_bytes);
    } else {
        span_queue_drop_locked(span);
        queue->is_read = true;
        crew_announce(crew);
    }
    crew_unlock(crew);
    if (r != BAM_READER_PIECE) return r;
    if (record_span_is_raw(&span->records))
        be_filled(span, NULL);
    else if (crew_submit(crew, fill_job, span) < 0)
        return BAM_READER_ERROR;
    return r;
}

/* ---- the end ---- */

/* With no job left: drops all spans in the queue. */
static void span_queue_clear(struct span_queue *queue)
{
    struct crew *crew = queue->settings.crew;
    if (!crew) return;
    crew_lock(crew);
    queue->to_cut = NULL;
    while (queue->first) span_queue_drop_locked(span_queue_take_locked(queue));
    crew_unlock(crew);
}

void span_queue_release(struct span_queue *queue)
{
    span_queue_clear(queue);
    while (queue->newest) {
        struct queued_span *span = queue->newest;
        queue->newest = span->older;
        record_span_release(&span->records);
        free(span);
    }
    span_reader_release(&queue->reader);
}
