/*
 * load.c -- the reader: input to sorted batches in memory.
 *
 * The reader claims room for a piece of input in the batch that is being filled, and a worker
 * inflates the piece into it. A ring holds the pieces on their way, oldest first. When the oldest
 * is inflated the reader *walks* it: it hops from record to record to find where the last whole
 * record ends, and hands the whole records to a worker to be checked and indexed. When all parts of
 * a closed batch are indexed, a worker sorts the batch.
 *
 * A batch is closed when it has no room for another piece. The next one is filled at once, behind a
 * gap; the record that straddles the two is put together when the walk gets there: its beginning is
 * copied into the gap. If the gap is too small for it, the new batch is moved to more memory.
 *
 * SAM has no such places: workers parse its lines into buffers of the pieces. When the oldest is
 * parsed the reader claims room for its records, and the workers that index them copy them there.
 *
 * The reader waits only for input, and for memory when batches are filled faster than spilled.
 */
#include "pipeline/load.h"

#include "pipeline/input_damage.h"
#include "util/diag.h"
#include "util/grow.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    MIN_GAP_BYTES = 4096,       /* several short reads */
};

struct loader {
    struct pipeline *p;
    struct bam_reader *reader;  /* of the input at hand */
    bool is_text;
    struct batch *filling;  /* pieces are appended here */
    struct batch *walking;  /* the oldest piece is here: `filling` or the batch before it */
    struct load_piece *ring;
    unsigned n_ring, ring_at, ring_used, most_used;
    size_t ring_text_bytes;     /* lines in the ring, as read */
    uint64_t n_records;         /* of the input at hand */
    uint64_t n_bytes;           /* of records of all inputs, so far */
    struct input_position at;   /* behind the last whole record that was walked */
    double input_seconds;       /* spent in reading */
    size_t max_record_bytes;
    bool space_checked;         /* somebody was warned, if need be */
};

/* Appends a batch to the list of those that may be spilled, and lets it be sorted. */
static int seal_batch(struct loader *ld, struct batch *batch)
{
    struct pipeline *p = ld->p;
    struct batch_list *list = &p->sealed;
    pipeline_lock(p);
    if (grow_array(&list->batches, &list->room, list->n + 1, list->n + 63,
                   sizeof *list->batches) < 0) {
        pipeline_unlock(p);
        return pipeline_no_memory(p);
    }
    batch->end = ld->at;
    list->batches[list->n++] = batch;
    pipeline_announce(p);
    pipeline_unlock(p);
    batch_step_done(p, batch);
    return 0;
}

/* Adds the next n_records of the input, up to `to`, to a batch; NULL after a message. */
static struct batch_part *add_part(struct loader *ld, struct batch *batch, size_t to,
                                       size_t n_records)
{
    struct batch_part *part = batch_add_part(batch, to, n_records, ld->n_records);
    if (part) {
        part->input = bam_reader_name(ld->reader);
        ld->n_records += n_records;
    } else {
        (void)pipeline_no_memory(ld->p);
    }
    return part;
}

/*
 * Walks the oldest piece, whose bytes are there: finds its whole records and hands them out. The
 * walk may begin in an earlier piece, in which the first record began.
 */
static int walk_records(struct loader *ld, const struct load_piece *piece)
{
    struct batch *batch = piece->batch;
    size_t end = piece->raw_at + piece->input.raw_bytes, at = batch->walk_at, n_records = 0;
    size_t rec_bytes = 0;
    bool is_damaged = false;
    while (end - at >= 4) {
        rec_bytes = bam_record_bytes(batch->mem + at);
        is_damaged = rec_bytes < BAM_RECORD_FIXED_BYTES || rec_bytes > INT32_MAX;
        if (is_damaged) break;
        if (rec_bytes > ld->max_record_bytes) ld->max_record_bytes = rec_bytes;
        if (rec_bytes > end - at) break;
        at += rec_bytes;
        n_records++;
    }
    if (n_records > 0) {
        struct batch_part *part = add_part(ld, batch, at, n_records);
        if (!part) return -1;
        ld->at = (struct input_position){bam_inputs_number(ld->p->inputs),
                                         bam_piece_offset(&piece->input, at - piece->raw_at),
                                         ld->n_records};
        if (pipeline_submit(ld->p, index_job, part) < 0) return -1;
    }
    if (!is_damaged) return 0;
    /* Those before it may be wanted (end_early). */
    char problem[64];
    (void)snprintf(problem, sizeof problem, "it claims a size of %zu bytes", rec_bytes);
    input_damage_record(bam_reader_name(ld->reader), ld->n_records + 1, NULL, problem);
    return -1;
}

static struct load_piece *oldest_piece(const struct loader *ld)
{
    return &ld->ring[ld->ring_at];
}

/* Waits until all pieces in the ring are inflated, without walking them. */
static int wait_for_ring(struct loader *ld)
{
    struct pipeline *p = ld->p;
    pipeline_lock(p);
    for (unsigned i = 0; i < ld->ring_used; i++) {
        const struct load_piece *piece = &ld->ring[(ld->ring_at + i) % ld->n_ring];
        while (!piece->done && !pipeline_failed(p)) pipeline_wait(p);
    }
    pipeline_unlock(p);
    return pipeline_failed(p) ? -1 : 0;
}

/*
 * Moves the batch being filled, of which nothing was walked yet, to memory of its own that also has
 * room for tail_bytes before it and for the rest of a record of record_bytes.
 */
static int move_to_larger_batch(struct loader *ld, size_t tail_bytes, size_t record_bytes)
{
    struct pipeline *p = ld->p;
    struct batch *old = ld->filling;
    if (wait_for_ring(ld) < 0) return -1;
    size_t filled = old->raw_end - old->raw_begin;
    size_t raw_bytes = filled + record_bytes + 2 * BGZF_MAX_BYTES;
    /* Where one record is so large the next will be, too: a few of them at a time, if they are not
       a large part of the memory. */
    pipeline_lock(p);           /* the spiller may retire batches */
    size_t fair = p->budget.batch_bytes * p->budget.n_batches / 8;
    pipeline_unlock(p);
    if (fair > 4 * record_bytes) fair = 4 * record_bytes;
    if (raw_bytes < fair) raw_bytes = fair;
    size_t size = batch_bytes_for(p->rules.order, tail_bytes, raw_bytes);
    if (size < old->mem_bytes) size = old->mem_bytes;
    struct batch *larger = batch_create(&p->rules, NULL, size);
    if (!larger) return pipeline_no_memory(p);
    batch_reset(larger, tail_bytes);
    memcpy(larger->mem + larger->raw_end, old->mem + old->raw_begin, filled);
    for (unsigned i = 0; i < ld->ring_used; i++) {
        struct load_piece *piece = &ld->ring[(ld->ring_at + i) % ld->n_ring];
        if (piece->batch != old) continue;
        piece->raw_at += larger->raw_begin - old->raw_begin;
        piece->batch = larger;
    }
    batch_append(larger, filled);
    ld->filling = larger;
    pipeline_lock(p);
    p->large_bytes += larger->mem_bytes;
    free_batch(p, old);
    drop_free_batches(p);
    pipeline_unlock(p);
    return 0;
}

/* The walk leaves one batch for the next, which takes the beginning of the record between them. */
static int walk_next_batch(struct loader *ld)
{
    struct pipeline *p = ld->p;
    struct batch *left = ld->walking;
    const uint8_t *tail = left->mem + left->walk_at;
    size_t tail_bytes = left->raw_end - left->walk_at;
    if (tail_bytes > ld->filling->gap_bytes) {
        size_t record_bytes = tail_bytes >= 4 ? bam_record_bytes(tail) : 0;
        if (move_to_larger_batch(ld, tail_bytes, record_bytes) < 0) return -1;
    }
    ld->walking = ld->filling;
    batch_prepend(ld->walking, tail, tail_bytes);
    left->raw_end = left->walk_at;
    if (left->n_records > 0) return seal_batch(ld, left);
    /* Not one whole record fitted: the batch never was. */
    pipeline_lock(p);
    free_batch(p, left);
    pipeline_unlock(p);
    return 0;
}

static int fill_next_batch(struct loader *ld, size_t room_bytes);

/* Gives n_bytes of parsed records, n_records of them, a place in the batch being filled. */
static int place_records(struct loader *ld, struct load_piece *piece, const uint8_t *records,
                         size_t n_bytes, size_t n_records)
{
    struct pipeline *p = ld->p;
    struct batch *batch = ld->filling;
    batch_append(batch, n_bytes);
    ld->n_bytes += n_bytes;
    struct batch_part *part = add_part(ld, batch, batch->raw_end, n_records);
    if (!part) return -1;
    part->source = records;
    part->source_owner = piece;
    pipeline_lock(p);
    piece->n_users++;
    pipeline_unlock(p);
    return pipeline_submit(p, index_job, part);
}

/* Hands out the records of a piece of SAM, whose lines are parsed. */
static int place_lines(struct loader *ld, struct load_piece *piece)
{
    struct sam_chunk *lines = &piece->input.lines;
    const uint8_t *at = lines->raw;         /* NULL where the first line is damaged */
    size_t bytes_left = lines->raw_bytes, n_left = lines->n_records;
    lines->n_records = 0;       /* nobody hands them out again (end_early) */
    while (n_left > 0) {
        size_t room = batch_room(ld->filling), n_bytes = bytes_left, n = n_left;
        if (n_bytes > room) {
            /* As many as fit, which is none when the batch is full. */
            for (n_bytes = n = 0; n_bytes + bam_record_bytes(at + n_bytes) <= room; n++)
                n_bytes += bam_record_bytes(at + n_bytes);
        }
        if (n > 0) {
            if (place_records(ld, piece, at, n_bytes, n) < 0) return -1;
        } else if (fill_next_batch(ld, bam_record_bytes(at)) < 0 ||
                   (ld->walking != ld->filling && walk_next_batch(ld) < 0)) {
            return -1;
        }
        at += n_bytes;
        bytes_left -= n_bytes;
        n_left -= n;
    }
    if (!lines->problem) return 0;
    if (lines->problem == sam_chunk_no_memory) return pipeline_no_memory(ld->p);
    input_damage_record(bam_reader_name(ld->reader), ld->n_records + 1, lines->problem_name,
                        lines->problem);
    return -1;
}

/* With the lock held: tells how far the input has been read. */
static void note_position(const struct loader *ld, bool all)
{
    struct pipeline *p = ld->p;
    uint64_t n_bytes = bam_inputs_bytes(p->inputs);
    p->input_bytes = n_bytes;
    /* Of several inputs, one of them a pipe, only the position in the last one is known. */
    if (n_bytes > 0 || p->settings->n_inputs == 1)
        p->input_bytes_read = all && n_bytes > 0 ? n_bytes : bam_inputs_bytes_read(p->inputs);
}

/* Walks the oldest piece, once it is inflated or parsed. */
static int walk_oldest(struct loader *ld)
{
    struct pipeline *p = ld->p;
    struct load_piece *piece = oldest_piece(ld);
    pipeline_lock(p);
    note_position(ld, false);
    while (!piece->done && !pipeline_failed(p)) pipeline_wait_for(p, WAIT_READER_WORKERS);
    pipeline_unlock(p);
    if (pipeline_failed(p)) return -1;
    if (ld->is_text) {
        if (place_lines(ld, piece) < 0) return -1;
        pipeline_lock(p);
        drop_lines(p, piece);
        pipeline_unlock(p);
        ld->ring_text_bytes -= piece->input.lines.text_bytes;
    } else {
        if (piece->batch != ld->walking && walk_next_batch(ld) < 0) return -1;
        if (walk_records(ld, piece) < 0) return -1;
    }
    ld->ring_at = (ld->ring_at + 1) % ld->n_ring;
    ld->ring_used--;
    return 0;
}

/* Walks all pieces that are inflated, without waiting. */
static int walk_what_is_there(struct loader *ld)
{
    struct pipeline *p = ld->p;
    while (ld->ring_used > 0) {
        pipeline_lock(p);
        bool done = oldest_piece(ld)->done;
        pipeline_unlock(p);
        if (!done) break;
        if (walk_oldest(ld) < 0) return -1;
    }
    return 0;
}

/* Estimates the whole input from how well what was read of it is compressed. */
static void estimate_input(struct loader *ld)
{
    struct pipeline *p = ld->p;
    uint64_t n_read = bam_inputs_bytes_read(p->inputs), n_bytes = bam_inputs_bytes(p->inputs);
    if (n_read == 0 || n_bytes == 0) return;
    double expected = (double)ld->n_bytes * ((double)n_bytes / (double)n_read);
    pipeline_lock(p);
    p->expected_bytes = (uint64_t)expected;
    pipeline_unlock(p);
    if (ld->space_checked || ld->n_bytes == 0) return;
    warn_about_space(p, store_expected_bytes(p));
    ld->space_checked = true;
}

/* Closes the batch being filled and starts the next, with room for room_bytes at least. */
static int fill_next_batch(struct loader *ld, size_t room_bytes)
{
    struct pipeline *p = ld->p;
    /* The walk must have reached the batch that is closed now: it can only be one batch behind. */
    while (ld->walking != ld->filling && ld->ring_used > 0)
        if (walk_oldest(ld) < 0) return -1;
    if (ld->walking != ld->filling && walk_next_batch(ld) < 0) return -1;
    estimate_input(ld);
    struct batch *next = take_batch(p);
    if (!next) return -1;
    size_t gap_bytes = 2 * ld->max_record_bytes, most = next->mem_bytes / 8;
    if (gap_bytes < MIN_GAP_BYTES) gap_bytes = MIN_GAP_BYTES;
    batch_reset(next, (gap_bytes < most ? gap_bytes : most) & ~(size_t)15);
    ld->filling = next;
    if (!ld->walking) {
        ld->walking = next;
        batch_prepend(next, NULL, 0);       /* the first of all */
    }
    if (batch_room(next) >= room_bytes) return 0;
    bool walked_here = ld->walking == next;
    if (move_to_larger_batch(ld, next->gap_bytes, room_bytes) < 0) return -1;
    if (walked_here) {
        ld->walking = ld->filling;
        batch_prepend(ld->filling, NULL, 0);
    }
    if (batch_room(ld->filling) >= room_bytes) return 0;
    return pipeline_no_memory(p);
}

/* The next free slot of the ring. */
static struct load_piece *take_slot(struct loader *ld)
{
    struct pipeline *p = ld->p;
    struct load_piece *piece = &ld->ring[(ld->ring_at + ld->ring_used) % ld->n_ring];
    pipeline_lock(p);
    while (piece->n_users > 0 && !pipeline_failed(p)) pipeline_wait(p);
    pipeline_unlock(p);
    piece->reader = ld->reader;
    return pipeline_failed(p) ? NULL : piece;
}

/* Fetches lines into the next slot. Returns a code of the reader. */
static int fetch_lines(struct loader *ld)
{
    struct pipeline *p = ld->p;
    struct load_piece *piece = take_slot(ld);
    if (!piece) return BAM_READER_ERROR;
    double start = monotonic_seconds();
    int r = bam_reader_next(ld->reader, &piece->input, NULL, p->budget.text_bytes, 0);
    ld->input_seconds += monotonic_seconds() - start;
    if (r != BAM_READER_PIECE) return r;
    piece->done = false;
    piece->n_users = 1;
    ld->ring_used++;
    ld->ring_text_bytes += piece->input.lines.text_bytes;
    return pipeline_submit(p, parse_job, piece) < 0 ? BAM_READER_ERROR : r;
}

/* Fetches a piece into the next slot. Returns a code of the reader. */
static int fetch_piece(struct loader *ld)
{
    struct pipeline *p = ld->p;
    struct batch *batch = ld->filling;
    struct load_piece *piece = take_slot(ld);
    if (!piece) return BAM_READER_ERROR;
    double start = monotonic_seconds();
    int r = bam_reader_next(ld->reader, &piece->input, batch->mem + batch->raw_end,
                            p->budget.piece_bytes, batch_room(batch));
    ld->input_seconds += monotonic_seconds() - start;
    if (r != BAM_READER_PIECE) return r;
    piece->batch = batch;
    piece->raw_at = batch->raw_end;
    piece->done = piece->input.compressed_bytes == 0;
    batch_append(batch, piece->input.raw_bytes);
    ld->n_bytes += piece->input.raw_bytes;
    ld->ring_used++;
    if (!piece->done && pipeline_submit(p, inflate_job, piece) < 0) return BAM_READER_ERROR;
    return r;
}

/* After the last piece of an input: everything is walked; what is left must be nothing. */
static int finish_input(struct loader *ld)
{
    while (ld->ring_used > 0)
        if (walk_oldest(ld) < 0) return -1;
    if (ld->walking != ld->filling && walk_next_batch(ld) < 0) return -1;
    if (ld->walking->raw_end == ld->walking->walk_at) return 0;
    diag_error("'%s' is truncated: it ends within record %" PRIu64, bam_reader_name(ld->reader),
               ld->n_records + 1);
    return -1;
}

static int load_one_input(struct loader *ld)
{
    struct pipeline *p = ld->p;
    ld->is_text = bam_reader_is_text(ld->reader);
    ld->n_records = bam_inputs_number(p->inputs) == p->start.input ? p->start.n_records : 0;
    for (;;) {
        if (pipeline_failed(p) || walk_what_is_there(ld) < 0) return -1;
        if (atomic_load_explicit(&p->stop_signal, memory_order_relaxed)) return -1;
        if (ld->ring_used == ld->most_used || ld->ring_text_bytes > p->budget.max_text_bytes) {
            if (walk_oldest(ld) < 0) return -1;
            continue;
        }
        int r = ld->is_text ? fetch_lines(ld) : fetch_piece(ld);
        if (r == BAM_READER_ERROR) return -1;
        if (r == BAM_READER_END) return finish_input(ld);
        if (r == BAM_READER_NO_ROOM &&
            fill_next_batch(ld, bam_reader_room_needed(ld->reader)) < 0)
            return -1;
    }
}

/*
 * After an error in an input that is lost, or a signal: lets the whole records before it be all
 * that there are. What cannot be walked any more is dropped.
 */
static int end_early(struct loader *ld)
{
    struct pipeline *p = ld->p;
    struct batch *last;
    while (ld->ring_used > 0 && walk_oldest(ld) == 0) continue;
    if (wait_for_ring(ld) < 0) return -1;
    pipeline_lock(p);
    for (unsigned i = 0; ld->is_text && i < ld->ring_used; i++)
        drop_lines(p, &ld->ring[(ld->ring_at + i) % ld->n_ring]);
    last = ld->walking;
    if (ld->filling != last) free_batch(p, ld->filling);
    p->input_is_cut = true;
    pipeline_unlock(p);
    ld->ring_used = 0;
    ld->filling = last;
    last->raw_end = last->walk_at;
    return 0;
}

/* After an error while an input was read, which is its fault unless something else failed, the
   system could not read it, or a signal ended it. */
static int input_failed(struct loader *ld)
{
    struct pipeline *p = ld->p;
    if (pipeline_failed(p)) return -1;
    if (resume_saves_part(p)) return end_early(ld);
    if (!bam_reader_io_failed(ld->reader)) note_bad_input(p);
    return -1;
}

static int load_all(struct loader *ld)
{
    struct pipeline *p = ld->p;
    int r;
    if (p->settings->input_bytes > 0) {
        warn_about_space(p, p->settings->input_bytes);
        ld->space_checked = true;
    }
    if (fill_next_batch(ld, 0) < 0) return -1;
    while ((r = bam_inputs_next(p->inputs, &ld->reader)) > 0)
        if (load_one_input(ld) < 0 && ((r = input_failed(ld)) < 0 || p->input_is_cut)) break;
    if (r < 0 && bam_inputs_changed(p->inputs)) note_bad_input(p);
    if (r < 0) return -1;
    pipeline_lock(p);
    note_position(ld, true);
    pipeline_unlock(p);
    if (!ld->space_checked) warn_about_space(p, ld->n_bytes);
    if (ld->walking->n_records > 0) return seal_batch(ld, ld->walking);
    pipeline_lock(p);
    free_batch(p, ld->walking);
    pipeline_unlock(p);
    return 0;
}

int load_input(struct pipeline *p)
{
    struct loader ld = {.p = p, .at = p->start, .n_bytes = p->sum_in.n_bytes};
    /* Behind the pieces of SAM on their way there are those whose records are being copied. */
    ld.most_used = p->budget.n_pieces;
    ld.n_ring = 2 * ld.most_used;
    ld.ring = calloc(ld.n_ring, sizeof *ld.ring);
    int r = ld.ring ? load_all(&ld) : pipeline_no_memory(p);
    if (r < 0) pipeline_fail(p);
    pipeline_add_wait(p, WAIT_READER_INPUT, ld.input_seconds);
    /* Jobs hold pieces of the ring. */
    pipeline_lock(p);
    for (unsigned i = 0; ld.ring && i < ld.n_ring; i++)
        while (ld.ring[i].n_users > 0 && !pipeline_failed(p)) pipeline_wait(p);
    while (p->n_jobs > 0 && pipeline_failed(p)) pipeline_wait(p);
    pipeline_unlock(p);
    if (r < 0) {
        /* Unsealed batches belong to nobody else. */
        if (ld.walking != ld.filling) batch_destroy(ld.walking);
        batch_destroy(ld.filling);
    }
    for (unsigned i = 0; ld.ring && i < ld.n_ring; i++) bam_piece_release(&ld.ring[i].input);
    free(ld.ring);
    return r;
}
