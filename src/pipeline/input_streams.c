/*
 * input_streams.c -- see input_streams.h.
 *
 * The way of an input's bytes: a reader reads a piece; a worker inflates it (or parses it, if it is
 * SAM); when all pieces before it were cut, a worker cuts it: it finds the whole records, puts the
 * beginning of the first one before them if that was in the piece before, and keeps the rest for
 * the next piece; a worker makes of the records what the caller wants. Pieces and stretches of an
 * input stay in the order of the file; those of different inputs know nothing of each other.
 *
 * Each input has memory of its own for what is read ahead, and may have one piece in any case. So
 * a thread that waits for an input never waits for the memory of another. A record that is longer
 * than a piece is gathered in the tail of the input, and then the tail becomes a piece: there is
 * never a second copy. Its memory counts as what is read ahead.
 *
 * The crew's lock guards what is marked so. A piece or a stretch that is on no list belongs to the
 * thread that took it off or made it. What is marked as the cutting worker's belongs to the worker
 * that has set `is_cut`.
 */
#include "pipeline/input_streams.h"

#include "bam/bam_check.h"
#include "bam/guessed_walk.h"
#include "input/input_error.h"
#include "pipeline/thread.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_READERS = 8,           /* threads; as many files are read at the same time */
    GAP_BYTES = 4096,           /* before a piece: room for the beginning of its first record */
};

struct piece {                  /* read, and not cut yet */
    struct piece *next;
    struct stream *stream;
    struct bam_piece read;
    uint8_t *memory;            /* of BAM: a gap, and the raw bytes */
    size_t memory_bytes;
    size_t ahead_bytes;         /* memory that is counted for it */
    size_t tail_bytes;          /* if its memory was the tail: so many more */
    struct guessed_walk guess;
    bool is_there;              /* under the lock: its raw bytes are */
    struct stretch *stretch;    /* what it was cut to, or NULL */
};

struct stream {                 /* an input */
    struct input_streams *all;
    size_t number;              /* of the input */
    struct bam_reader *reader;
    const char *name;           /* of the input in messages */
    const struct id_renames *renames;   /* for its records, or NULL */
    bool is_text;
    /* under the lock */
    struct piece *pieces, **last_piece;
    struct stretch *stretches, **last_stretch;
    size_t ahead_bytes;         /* of pieces, of stretches that were not released, of the tail */
    size_t tail_ahead_bytes;    /* the part of ahead_bytes that is the tail's */
    bool is_cut;                /* a worker cuts a piece now */
    bool is_read;               /* to its end */
    /* by the worker that cuts */
    uint8_t *tail;              /* the beginning of a record that the next piece ends */
    size_t tail_bytes, tail_room;
    uint64_t n_records;         /* that were cut */
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

/* With the lock held: the memory was taken. */
static void add_ahead(struct stream *stream, size_t n_bytes)
{
    stream->ahead_bytes += n_bytes;
    stream->all->ahead_bytes += n_bytes;
}

/* With the lock held: the memory was freed. */
static void free_ahead(struct stream *stream, size_t n_bytes)
{
    stream->ahead_bytes -= n_bytes;
    stream->all->ahead_bytes -= n_bytes;
    if (n_bytes > 0) (void)pthread_cond_broadcast(&stream->all->room);
}

/* ---- stretches ---- */

static void free_stretch(struct stretch *stretch)
{
    const struct input_streams_settings *s = &stretch->stream->all->settings;
    if (stretch->made) s->drop(s->arg, stretch->made);
    free(stretch->records.memory);
    free(stretch);
}

/* Gives records the IDs of the united header. Those after a damaged record stay as they are: make
   will refuse it. */
static void rename_ids(const struct stream *stream, struct input_records *records)
{
    const struct id_renames *renames = stream->renames;
    int32_t n_refs = stream->all->settings.n_refs;
    const uint8_t *rec = records->from, *end = records->to;
    size_t most_bytes = 0;
    bool changes = false;
    for (; rec < end && !bam_record_check(rec, n_refs); rec += bam_record_bytes(rec)) {
        changes = changes || id_renames_touch(renames, rec);
        most_bytes += id_renames_rewrite_bound(renames, rec);
    }
    if (rec < end || !changes) return;
    uint8_t *memory = xmalloc(most_bytes), *out = memory;
    for (rec = records->from; rec < end; rec += bam_record_bytes(rec))
        out += id_renames_rewrite(renames, rec, out);
    free(records->memory);
    records->memory = records->from = memory;
    records->to = out;
}

static void make(struct worker *worker, struct stretch *stretch)
{
    struct stream *stream = stretch->stream;
    const struct input_streams_settings *s = &stream->all->settings;
    if (stream->renames && !s->keeps_ids) rename_ids(stream, &stretch->records);
    if (!crew_failed(s->crew) && s->make(s->arg, worker, stretch, stream->name) < 0)
        crew_fail(s->crew);
    crew_lock(s->crew);
    stretch->is_done = true;
    if (!s->drop) free_ahead(stream, stretch->ahead_bytes);
    crew_announce(s->crew);
    crew_unlock(s->crew);
    if (s->drop) return;
    free(stretch->records.memory);
    free(stretch);
}

static void make_job(struct worker *worker, void *arg)
{
    make(worker, arg);
}

/* ---- cutting ---- */

static void free_piece(struct piece *piece)
{
    bam_piece_release(&piece->read);
    free(piece->memory);
    free(piece);
}

/* Makes a stretch of the records of a piece, [from, to) in memory. */
static void add_stretch(struct piece *piece, uint8_t *from, const uint8_t *to, size_t n_records)
{
    struct stream *stream = piece->stream;
    struct crew *crew = stream->all->settings.crew;
    struct stretch *stretch = xcalloc(1, sizeof *stretch);
    stretch->stream = stream;
    stretch->records = (struct input_records){
        .memory = piece->memory, .from = from, .to = to, .n_records = n_records,
        .run = (uint32_t)stream->number, .first_record = stream->n_records};
    stretch->ahead_bytes = piece->ahead_bytes + piece->tail_bytes;
    piece->ahead_bytes = 0;
    piece->memory = NULL;
    stream->n_records += n_records;
    crew_lock(crew);
    add_ahead(stream, piece->tail_bytes);
    if (stream->all->settings.drop) {
        *stream->last_stretch = stretch;
        stream->last_stretch = &stretch->next;
    }
    crew_unlock(crew);
    piece->stretch = stretch;
}

/* All records of a piece of SAM are whole. */
static int cut_lines(struct piece *piece)
{
    struct sam_chunk *lines = &piece->read.lines;
    const struct stream *stream = piece->stream;
    size_t n = lines->n_records;
    if (n > 0) {
        piece->memory = lines->raw;
        lines->raw = NULL;
        lines->raw_room = 0;
        add_stretch(piece, piece->memory, piece->memory + lines->raw_bytes, n);
    }
    return input_check_lines(stream->name, stream->n_records, lines);
}

/* How many bytes a tail of n_bytes still gets: a long record and the rest of the piece in which it
   ends. Room for all of them is made at once: growing step by step would leave holes in the heap of
   as many bytes. A damaged record may claim any size, so there is a limit. */
static size_t tail_to_come(const struct stream *stream, const uint8_t *tail, size_t n_bytes)
{
    enum { MOST_BYTES = 64 << 20 };
    size_t record_bytes = bam_record_bytes(tail);
    if (record_bytes <= n_bytes) return 0;
    size_t to_come = record_bytes - n_bytes + stream->all->settings.share.piece_bytes;
    return to_come < MOST_BYTES ? to_come : MOST_BYTES;
}

/* Adds bytes to the tail. */
static void keep_tail(struct stream *stream, const uint8_t *bytes, size_t n_bytes)
{
    size_t n_before = stream->tail_bytes, n = n_before + n_bytes, more = 0;
    if (n_bytes == 0) return;
    if (n > GAP_BYTES && (n_before == 0 || n_before >= 4))
        more = tail_to_come(stream, n_before > 0 ? stream->tail : bytes, n);
    xgrow(&stream->tail, &stream->tail_room, n, more, 1);
    memcpy(stream->tail + stream->tail_bytes, bytes, n_bytes);
    stream->tail_bytes += n_bytes;
}

/* Puts the tail before the n_bytes at `raw` of the piece. Returns where it begins then. */
static uint8_t *prepend_tail(struct piece *piece, uint8_t *raw, size_t n_bytes)
{
    struct stream *stream = piece->stream;
    if (stream->tail_bytes > GAP_BYTES) {
        keep_tail(stream, raw, n_bytes);
        free(piece->memory);
        piece->memory = stream->tail;
        piece->tail_bytes = stream->tail_bytes;
        stream->tail = NULL;
        stream->tail_bytes = stream->tail_room = 0;
        return piece->memory;
    }
    raw -= stream->tail_bytes;
    if (stream->tail_bytes > 0) memcpy(raw, stream->tail, stream->tail_bytes);
    stream->tail_bytes = 0;
    return raw;
}

/* True if the record in the tail does not end in the next n_bytes. One that may be another file is
   looked at again (bam_walk_next). */
static bool tail_goes_on(const struct stream *stream, size_t n_bytes)
{
    size_t record_bytes = stream->tail_bytes >= 4 ? bam_record_bytes(stream->tail) : 0;
    return !bam_size_is_magic(record_bytes) &&
           record_bytes > stream->tail_bytes + n_bytes && record_bytes <= INT32_MAX;
}

/* Finds the whole records of a piece. */
static int cut_records(struct piece *piece)
{
    struct stream *stream = piece->stream;
    uint8_t *raw = piece->memory + GAP_BYTES;
    size_t n_bytes = piece->read.raw_bytes, n_before = stream->tail_bytes, max_bytes = 0;
    if (tail_goes_on(stream, n_bytes)) {
        keep_tail(stream, raw, n_bytes);
        return 0;
    }
    uint8_t *from = prepend_tail(piece, raw, n_bytes);
    raw = from + n_before;
    struct bam_walk walk = {.at = from, .end = raw + n_bytes};
    size_t n_records = guessed_walk_go(&piece->guess, raw, &walk, &max_bytes);
    const uint8_t *to = walk.at;
    keep_tail(stream, to, (size_t)(walk.end - to));
    if (n_records > 0) add_stretch(piece, from, to, n_records);
    if (!walk.is_damaged) return 0;
    input_error_size(stream->name, stream->n_records + 1, walk.claimed_bytes);
    return -1;
}

/* With the lock held, by the worker that cuts: counts the memory of the tail as it is now. That of
   a usual one is small. */
static void count_tail(struct stream *stream)
{
    size_t n_bytes = stream->tail_bytes > GAP_BYTES ? stream->tail_bytes : 0;
    add_ahead(stream, n_bytes);
    free_ahead(stream, stream->tail_ahead_bytes);
    stream->tail_ahead_bytes = n_bytes;
}

/* Cuts the oldest piece, which was taken off the list. Returns its stretch, or NULL. */
static struct stretch *cut(struct piece *piece)
{
    struct stream *stream = piece->stream;
    struct crew *crew = stream->all->settings.crew;
    int r = crew_failed(crew) ? 0 : stream->is_text ? cut_lines(piece) : cut_records(piece);
    if (r < 0) crew_fail(crew);
    crew_lock(crew);
    count_tail(stream);
    free_ahead(stream, piece->ahead_bytes);     /* 0 if a stretch took it over */
    crew_unlock(crew);
    struct stretch *stretch = piece->stretch;
    free_piece(piece);
    return stretch;
}

/* The raw bytes of a piece are there. Cuts all pieces whose turn it is, unless another worker does
   so. A worker then has the first stretch made in this job: its records are in the cache. worker
   NULL: a reader calls, and all stretches become jobs. */
static void piece_is_there(struct piece *piece, struct worker *worker)
{
    struct stream *stream = piece->stream;
    struct crew *crew = stream->all->settings.crew;
    struct stretch *first = NULL;
    crew_lock(crew);
    piece->is_there = true;
    while (!stream->is_cut && stream->pieces && stream->pieces->is_there) {
        struct piece *oldest = stream->pieces;
        stream->pieces = oldest->next;
        if (!stream->pieces) stream->last_piece = &stream->pieces;
        stream->is_cut = true;
        crew_unlock(crew);
        struct stretch *stretch = cut(oldest);
        if (stretch && worker && !first)
            first = stretch;
        else if (stretch)
            (void)crew_submit(crew, make_job, stretch);
        crew_lock(crew);
        stream->is_cut = false;
    }
    crew_announce(crew);
    crew_unlock(crew);
    if (first) make(worker, first);
}

/* ---- reading ---- */

/* Parses the lines of a piece, or inflates its blocks. */
static int fill(struct piece *piece, struct worker *worker)
{
    struct stream *stream = piece->stream;
    if (stream->is_text) {
        sam_chunk_parse(&piece->read.lines, bam_reader_header(stream->reader),
                        worker_record(worker));
        return 0;
    }
    uint8_t *raw = piece->memory + GAP_BYTES;
    if (bam_piece_inflate(&piece->read, &worker->bgzf, raw) < 0) {
        input_error_piece(stream->name, &piece->read);
        return -1;
    }
    guessed_walk_make(&piece->guess, raw, piece->read.raw_bytes);
    return 0;
}

static void fill_job(struct worker *worker, void *arg)
{
    struct piece *piece = arg;
    struct stream *stream = piece->stream;
    struct crew *crew = stream->all->settings.crew;
    if (!crew_failed(crew) && fill(piece, worker) < 0) crew_fail(crew);
    piece_is_there(piece, worker);
}

/* Reads a piece. Returns a code of the reader. */
static int read_piece(struct stream *stream, struct piece *piece)
{
    size_t piece_bytes = stream->all->settings.share.piece_bytes;
    int r;
    if (stream->is_text)
        return bam_reader_next(stream->reader, &piece->read, NULL, piece_bytes / 4, 0);
    do {
        size_t room = bam_reader_room_needed(stream->reader);
        if (room < piece_bytes) room = piece_bytes;
        if (piece->memory_bytes < GAP_BYTES + room) {
            free(piece->memory);
            piece->memory_bytes = GAP_BYTES + room;
            piece->memory = xmalloc(piece->memory_bytes);
        }
        r = bam_reader_next(stream->reader, &piece->read, piece->memory + GAP_BYTES, piece_bytes,
                            piece->memory_bytes - GAP_BYTES);
    } while (r == BAM_READER_NO_ROOM);
    return r;
}

/* Reads the next piece of an input and has it filled. Returns 0, or -1 after a message. */
static int fetch(struct stream *stream)
{
    struct crew *crew = stream->all->settings.crew;
    struct piece *piece = xcalloc(1, sizeof *piece);
    piece->stream = stream;
    uint64_t before = bam_reader_offset(stream->reader);
    int r = read_piece(stream, piece);
    uint64_t n_read = bam_reader_offset(stream->reader) - before;
    if (r != BAM_READER_PIECE) {
        free_piece(piece);
        crew_lock(crew);
        stream->is_read = true;
        crew_announce(crew);
        crew_unlock(crew);
        return r == BAM_READER_END ? 0 : -1;
    }
    bool is_filled = !stream->is_text && piece->read.compressed_bytes == 0;
    /* Lines become records of about the same size. */
    piece->ahead_bytes = stream->is_text ? 2 * piece->read.lines.text_room
                                         : piece->memory_bytes + piece->read.compressed_room;
    crew_lock(crew);
    load_totals_add_position(stream->all->settings.totals, n_read);
    *stream->last_piece = piece;
    stream->last_piece = &piece->next;
    add_ahead(stream, piece->ahead_bytes);
    crew_unlock(crew);
    if (!is_filled) return crew_submit(crew, fill_job, piece);
    piece_is_there(piece, NULL);
    return 0;
}

/* With the lock held: true if a piece of the input may be read. */
static bool has_room(const struct stream *stream)
{
    const struct input_streams_settings *s = &stream->all->settings;
    return !stream->is_read && (stream->ahead_bytes == stream->tail_ahead_bytes ||
                                stream->ahead_bytes + s->share.piece_bytes <= s->share.ahead_bytes);
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
            all_are_read &= stream->is_read;
            bool is_better = !best || stream->ahead_bytes < best->ahead_bytes;
            if (is_better && has_room(stream)) best = stream;
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
    for (size_t i = 0; i < all->n; i++) {
        struct stream *stream = &all->streams[i];
        *stream = (struct stream){.all = all, .number = all->settings.numbers[i]};
        stream->last_piece = &stream->pieces;
        stream->last_stretch = &stream->stretches;
        stream->reader = bam_inputs_open_one(all->settings.inputs, stream->number,
                                             &stream->renames);
        if (!stream->reader) return -1;
        stream->name = bam_reader_name(stream->reader);
        stream->is_text = bam_reader_is_text(stream->reader);
        bam_reader_drop_header(stream->reader);
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

/* With the lock held: true if nothing comes after what was taken off the lists. */
static bool is_at_end(const struct stream *stream)
{
    return stream->is_read && !stream->pieces && !stream->is_cut && !stream->stretches;
}

/* The input has no more records. */
static int end_stream(struct stream *stream)
{
    if (stream->tail_bytes == 0)
        return bam_inputs_leave(stream->all->settings.inputs, stream->number);
    input_error_end(stream->name, stream->n_records + 1);
    return -1;
}

int input_streams_next(struct input_streams *all, size_t i, struct stretch **stretch)
{
    struct crew *crew = all->settings.crew;
    struct stream *stream = &all->streams[i];
    *stretch = NULL;
    crew_lock(crew);
    while (!crew_failed(crew) && !is_at_end(stream) &&
           !(stream->stretches && stream->stretches->is_done))
        crew_wait_for(crew, WAIT_DISPATCHER_BLOCKS);
    bool failed = crew_failed(crew);
    if (!failed && stream->stretches) {
        *stretch = stream->stretches;
        stream->stretches = (*stretch)->next;
        if (!stream->stretches) stream->last_stretch = &stream->stretches;
    }
    crew_unlock(crew);
    if (failed) return -1;
    return *stretch ? 1 : end_stream(stream);
}

void input_streams_release(struct stretch *stretch)
{
    struct stream *stream = stretch->stream;
    struct crew *crew = stream->all->settings.crew;
    crew_lock(crew);
    free_ahead(stream, stretch->ahead_bytes);
    crew_unlock(crew);
    free_stretch(stretch);
}

size_t input_streams_excess_bytes(const struct input_streams *all)
{
    size_t planned = all->n * all->settings.share.ahead_bytes;
    crew_assert_locked(all->settings.crew);
    return all->ahead_bytes > planned ? all->ahead_bytes - planned : 0;
}

const char *input_streams_name(const struct input_streams *all, size_t i)
{
    return all->streams[i].name;
}

uint64_t input_streams_n_records(const struct input_streams *all, size_t i)
{
    return all->streams[i].n_records;
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

static void free_stream(struct stream *stream)
{
    while (stream->pieces) {
        struct piece *piece = stream->pieces;
        stream->pieces = piece->next;
        free_piece(piece);
    }
    while (stream->stretches) {
        struct stretch *stretch = stream->stretches;
        stream->stretches = stretch->next;
        free_stretch(stretch);
    }
    free(stream->tail);
}

void input_streams_destroy(struct input_streams *all)
{
    if (!all) return;
    for (size_t i = 0; i < all->n; i++) free_stream(&all->streams[i]);
    (void)pthread_cond_destroy(&all->room);
    free(all->streams);
    free(all);
}
