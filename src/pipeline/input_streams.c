/*
 * input_streams.c -- see input_streams.h.
 *
 * Each input has memory of its own for what is read ahead, and may have one piece in any case. So
 * a thread that waits for an input never waits for the memory of another.
 *
 * The crew's lock guards what is marked so.
 */
#include "pipeline/input_streams.h"

#include "pipeline/crew.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum { MOST_READERS = 8 };      /* threads; as many files are read at the same time */

struct stream {                 /* an input */
    struct input_streams *all;
    size_t number;              /* of the input */
    struct bam_reader *reader;
    struct span_queue spans;
};

struct reader {                 /* reads every n-th input */
    struct input_streams *all;
    size_t number;
    pthread_t thread;
    bool started;
};

struct input_streams {
    struct input_streams_settings settings;
    struct stream *streams;
    size_t n;
    struct reader readers[MOST_READERS];
    size_t n_readers;
    /* under the lock */
    bool stopped;
    size_t ahead_bytes;         /* of all inputs */
    pthread_cond_t room;        /* readers wait for memory here, not for each end of a job */
};

/* ---- reading ---- */

/* Reads the next piece of an input and has it filled. Returns 0, or -1 after a message. */
static int fetch(struct stream *stream)
{
    struct crew *crew = stream->all->settings.crew;
    uint64_t before = bam_reader_offset(stream->reader);
    size_t n_bytes;
    int r = span_queue_fetch(&stream->spans, &n_bytes);
    /* After the end the reader may be closed already. */
    if (r != BAM_READER_PIECE) return r == BAM_READER_END ? 0 : -1;
    uint64_t n_read = bam_reader_offset(stream->reader) - before;
    crew_lock(crew);
    load_totals_locked(stream->all->settings.totals)->file_bytes_read += n_read;
    crew_unlock(crew);
    return 0;
}

/* Waits until an input of the reader may be read; of several takes the one with the least ahead.
   NULL if all were read, or the reader should end. */
static struct stream *next_to_read(const struct reader *reader)
{
    struct input_streams *all = reader->all;
    struct crew *crew = all->settings.crew;
    struct stream *best = NULL;
    crew_lock(crew);
    while (!all->stopped && !crew_failed(crew)) {
        bool all_are_read = true;
        best = NULL;
        for (size_t i = reader->number; i < all->n; i += all->n_readers) {
            struct stream *stream = &all->streams[i];
            const struct span_queue *spans = &stream->spans;
            all_are_read &= spans->is_read;
            bool is_better = !best || spans->ahead_bytes < best->spans.ahead_bytes;
            if (is_better && span_queue_has_room_locked(spans)) best = stream;
        }
        if (best || all_are_read) break;
        (void)pthread_cond_wait(&all->room, crew_mutex(crew));
    }
    bool ends = all->stopped || crew_failed(crew);
    crew_unlock(crew);
    return ends ? NULL : best;
}

static void *read_inputs(void *arg)
{
    struct reader *reader = arg;
    struct stream *stream;
    while ((stream = next_to_read(reader)))
        if (fetch(stream) < 0) crew_fail(reader->all->settings.crew);
    return NULL;
}

static int open_inputs(struct input_streams *all)
{
    const struct input_streams_settings *s = &all->settings;
    for (size_t i = 0; i < all->n; i++) {
        struct stream *stream = &all->streams[i];
        const struct span_queue_settings spans = {
            .crew = s->crew, .totals = s->totals, .piece_bytes = s->share.piece_bytes,
            .most_bytes = s->share.ahead_bytes, .n_refs = s->n_refs, .keeps_ids = s->keeps_ids,
            .make = s->make, .drop = s->drop, .arg = s->arg, .room = &all->room,
            .all_bytes = &all->ahead_bytes};
        *stream = (struct stream){.all = all, .number = s->numbers[i]};
        span_queue_init(&stream->spans, &spans);
        stream->reader = bam_inputs_open_one(s->inputs, stream->number);
        if (!stream->reader) return -1;
        bam_reader_drop_header(stream->reader);
        span_queue_begin(&stream->spans, stream->reader, (uint32_t)stream->number, 0,
                         bam_inputs_renames(s->inputs, stream->number));
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
    all->streams = xcalloc(all->n, sizeof *all->streams);
    xalloc_require(pthread_cond_init(&all->room, NULL) == 0);
    if (open_inputs(all) == 0 && start_readers(all) == 0) return all;
    crew_fail(settings->crew);
    input_streams_stop(all);
    (void)crew_finish_jobs(settings->crew);
    input_streams_destroy(all);
    return NULL;
}

/* ---- what was made ---- */

int input_streams_next(struct input_streams *all, size_t i, struct queued_span **span)
{
    struct crew *crew = all->settings.crew;
    struct stream *stream = &all->streams[i];
    struct span_queue *spans = &stream->spans;
    *span = NULL;
    crew_lock(crew);
    while (!crew_failed(crew) && !*span) {
        if (span_queue_is_ready_locked(spans)) {
            *span = span_queue_take_locked(spans);
            if ((*span)->made) break;
            span_queue_drop_locked(*span);      /* it has no records */
            *span = NULL;
        } else if (spans->is_read && span_queue_is_empty_locked(spans)) {
            break;
        } else {
            crew_wait_for(crew, WAIT_DISPATCHER_BLOCKS);
        }
    }
    bool failed = !*span && crew_failed(crew);
    crew_unlock(crew);
    if (failed) return -1;
    if (*span) return 1;
    if (span_reader_end(&spans->reader) < 0) return -1;
    return bam_inputs_leave(all->settings.inputs, stream->number);
}

void input_streams_release(struct queued_span *span)
{
    struct crew *crew = span->queue->settings.crew;
    crew_lock(crew);
    span_queue_drop_locked(span);
    crew_unlock(crew);
}

size_t input_streams_excess_bytes(const struct input_streams *all)
{
    size_t planned = all->n * all->settings.share.ahead_bytes;
    crew_assert_locked(all->settings.crew);
    return all->ahead_bytes > planned ? all->ahead_bytes - planned : 0;
}

const char *input_streams_name(const struct input_streams *all, size_t i)
{
    return all->streams[i].spans.reader.name;
}

uint64_t input_streams_n_records(const struct input_streams *all, size_t i)
{
    return all->streams[i].spans.reader.n_records;
}

/* ---- the end ---- */

void input_streams_stop(struct input_streams *all)
{
    if (!all) return;
    struct crew *crew = all->settings.crew;
    crew_lock(crew);
    all->stopped = true;
    (void)pthread_cond_broadcast(&all->room);
    crew_unlock(crew);
    for (size_t i = 0; i < all->n_readers; i++) {
        if (all->readers[i].started) (void)pthread_join(all->readers[i].thread, NULL);
        all->readers[i].started = false;
    }
}

void input_streams_destroy(struct input_streams *all)
{
    if (!all) return;
    for (size_t i = 0; i < all->n; i++) span_queue_release(&all->streams[i].spans);
    (void)pthread_cond_destroy(&all->room);
    free(all->streams);
    free(all);
}
