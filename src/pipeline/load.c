/*
 * load.c -- see load.h.
 *
 * The reader claims room for a piece of input in the batch that is being filled, and a worker
 * inflates the piece into it. A ring holds the pieces on their way, oldest first. When the oldest
 * is inflated the reader *walks* it: it hops from record to record to find where the last whole
 * record ends, and hands the whole records to a worker to be checked and indexed. The worker that
 * inflated the piece has mostly done the walk, from where it guessed that a record begins: that
 * saves the reader 0.07 s for each million records. When all parts of a closed batch are indexed, a
 * worker sorts the batch.
 *
 * A batch is closed when it has no room for another piece. The next one is filled at once, after a
 * gap. The record that straddles the two is put together when the walk gets there: its beginning is
 * copied into the gap. If the gap is too small for it, the new batch is moved to more memory.
 *
 * The records of a piece of SAM have no known size: a worker first parses its lines into a buffer.
 * When the oldest piece is parsed the reader claims room in the batch for its records, and the
 * workers that index them copy them there.
 *
 * If templates are fixed (load_cutter.h) the records of a piece change their sizes, too. When the
 * next piece is inflated or parsed the reader *cuts* it: it finds the templates that are whole now,
 * and lets a worker fix them into a buffer. When those of the oldest piece are fixed they get a
 * place in the batch as parsed lines do. A template that does not fit in memory is kept in a file
 * (load_large.h). When the piece in which it ends is the oldest one, its records are fixed in
 * parts, and the reader waits for each part.
 *
 * The reader waits only for input, and for memory when batches are filled faster than spilled.
 */
#include "pipeline/load.h"

#include "input/input_error.h"
#include "pipeline/load_cutter.h"
#include "util/diag.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

enum {
    MIN_GAP_BYTES = 4096,       /* several short reads */
    FEW_ALONE = 1000,           /* as many reads without a mate are no reason to warn */
    ALONE_RATIO = 10,           /* nor is one in so many: a filter may have left out its mate */
};

struct loader {
    const struct load_settings *settings;
    struct crew *crew;
    struct batch_pool *pool;
    struct load_totals *totals;
    struct bam_reader *reader;  /* of the input at hand */
    bool is_text;
    bool is_copied;             /* records are made elsewhere and copied to a batch: those of SAM,
                                   and those whose templates are fixed */
    struct load_cutter cutter;  /* if templates are fixed */
    struct load_large_settings large_settings;          /* likewise */
    struct load_piece *parts;   /* of a large template, on their way as those of the ring */
    unsigned n_parts;
    unsigned n_cut;             /* pieces in the ring whose stretch is known; the oldest ones */
    struct batch *filling;      /* pieces are appended here */
    struct batch *walking;      /* the oldest piece is here: `filling` or the batch before it */
    struct load_piece *ring;
    unsigned n_ring, ring_at, ring_used, most_used;
    size_t ring_text_bytes;     /* lines in the ring, as read */
    uint64_t n_records;         /* of the input at hand */
    uint64_t n_bytes;           /* of records of all inputs, so far */
    struct input_position at;   /* after the last whole record that was walked */
    double input_seconds;       /* spent in reading */
    uint64_t n_fetched;         /* bytes of pieces, uncompressed */
    size_t max_record_bytes;
    bool is_cut;                /* the input ended early; what came is kept */
};

/* Appends a batch to the list of those that may be spilled, and lets it be sorted. */
static void seal_batch(struct loader *ld, struct batch *batch)
{
    batch_pool_seal(ld->pool, batch, &ld->at);
    load_jobs_step_done(batch);
}

/* Adds n_records up to `to` to a batch. first_record is the number of the first one. */
static struct batch_part *add_part(const struct loader *ld, struct batch *batch, size_t to,
                                   size_t n_records, uint64_t first_record)
{
    struct batch_part *part = batch_add_part(batch, to, n_records, first_record);
    part->input = bam_reader_name(ld->reader);
    return part;
}

/* Prints that the next record claims a size that it cannot have. */
static int refuse_size(const struct loader *ld, size_t claimed_bytes)
{
    input_error_size(bam_reader_name(ld->reader), ld->n_records + 1, claimed_bytes);
    return -1;
}

/*
 * Walks the oldest piece, whose bytes are there: finds its whole records and hands them out. The
 * walk may begin in an earlier piece, in which the first record began.
 */
static int walk_records(struct loader *ld, const struct load_piece *piece)
{
    struct batch *batch = piece->batch;
    size_t max_bytes = ld->max_record_bytes;
    const uint8_t *raw = batch->mem + piece->raw_at;
    struct bam_walk walk = {.at = batch->mem + batch->walk_at,
                            .end = raw + piece->input.raw_bytes};
    size_t n_records = guessed_walk_go(&piece->guess, raw, &walk, &max_bytes);
    /* Also look at the size of the next record, of which only the beginning is here. */
    if (walk.claimed_bytes > max_bytes && !walk.is_damaged) max_bytes = walk.claimed_bytes;
    ld->max_record_bytes = max_bytes;
    size_t at = (size_t)(walk.at - batch->mem);
    if (n_records > 0) {
        struct batch_part *part = add_part(ld, batch, at, n_records, ld->n_records);
        ld->n_records += n_records;
        ld->at = (struct input_position){bam_inputs_number(ld->settings->inputs),
                                         bam_piece_offset(&piece->input, at - piece->raw_at),
                                         ld->n_records};
        if (load_jobs_index(part) < 0) return -1;
    }
    /* The records before a damaged one are kept: --partial writes them (end_early). */
    return walk.is_damaged ? refuse_size(ld, walk.claimed_bytes) : 0;
}

static struct load_piece *oldest_piece(const struct loader *ld)
{
    return &ld->ring[ld->ring_at];
}

/* Waits until all pieces in the ring are inflated, without walking them. */
static int wait_for_ring(struct loader *ld)
{
    crew_lock(ld->crew);
    for (unsigned i = 0; i < ld->ring_used; i++) {
        const struct load_piece *piece = &ld->ring[(ld->ring_at + i) % ld->n_ring];
        while (!piece->done && !crew_failed(ld->crew)) crew_wait(ld->crew);
    }
    crew_unlock(ld->crew);
    return crew_failed(ld->crew) ? -1 : 0;
}

/*
 * Moves the batch being filled, of which nothing was walked yet, to memory of its own that also has
 * room for tail_bytes before it and for the rest of a record of record_bytes.
 */
static int move_to_larger_batch(struct loader *ld, size_t tail_bytes, size_t record_bytes)
{
    struct batch *old = ld->filling;
    if (wait_for_ring(ld) < 0) return -1;
    size_t filled = old->raw_end - old->raw_begin;
    size_t raw_bytes = filled + record_bytes + 2 * BGZF_MAX_BYTES;
    /* After one large record expect more: make room for a few, but not for a large part of the
       memory. */
    struct mem_budget budget;
    batch_pool_budget(ld->pool, &budget);
    size_t fair = budget.batch_bytes * budget.n_batches / 8;
    if (fair > 4 * record_bytes) fair = 4 * record_bytes;
    if (raw_bytes < fair) raw_bytes = fair;
    size_t size = batch_bytes_for(ld->settings->rules->order, tail_bytes, raw_bytes);
    if (size < old->mem_bytes) size = old->mem_bytes;
    struct batch *larger = batch_pool_make_large(ld->pool, size);
    larger->owner = ld->settings;
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
    batch_pool_free(ld->pool, old);
    batch_pool_drop_free(ld->pool);
    return 0;
}

/* The walk leaves one batch for the next, which takes the beginning of the record between them. */
static int walk_next_batch(struct loader *ld)
{
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
    if (left->n_records > 0)
        seal_batch(ld, left);
    else                        /* not one whole record fitted */
        batch_pool_free(ld->pool, left);
    return 0;
}

static int fill_next_batch(struct loader *ld, size_t room_bytes);

/* Records of a piece that were parsed or fixed. */
struct made_records {
    const uint8_t *at;
    size_t n_bytes, n_records;
    uint64_t first;             /* number of the first one, or RECORD_NUMBER_UNKNOWN */
};

/* Gives records a place in the batch being filled, into which they will be copied. */
static int place_records(struct loader *ld, struct load_piece *piece,
                         const struct made_records *records)
{
    struct batch *batch = ld->filling;
    batch_append(batch, records->n_bytes);
    ld->n_bytes += records->n_bytes;
    struct batch_part *part = add_part(ld, batch, batch->raw_end, records->n_records,
                                       records->first);
    part->source = records->at;
    part->source_owner = piece;
    crew_lock(ld->crew);
    piece->n_users++;
    crew_unlock(ld->crew);
    return load_jobs_index(part);
}

/* Makes room for a record or a template of n_bytes, which the batch being filled does not have. */
static int make_room(struct loader *ld, size_t n_bytes)
{
    if (fill_next_batch(ld, n_bytes) < 0) return -1;
    return ld->walking != ld->filling ? walk_next_batch(ld) : 0;
}

/* Says what is wrong with the line after those of the piece that were placed, if anything. */
static int check_lines(const struct loader *ld, const struct load_piece *piece)
{
    return input_check_lines(bam_reader_name(ld->reader), ld->n_records, &piece->input.lines);
}

/* Hands out the records of a piece of SAM, whose lines are parsed. */
static int place_lines(struct loader *ld, struct load_piece *piece)
{
    struct sam_chunk *lines = &piece->input.lines;
    const uint8_t *at = lines->raw;         /* NULL where the first line is damaged */
    size_t bytes_left = lines->raw_bytes, n_left = lines->n_records;
    lines->n_records = 0;       /* so that end_early does not hand them out again */
    while (n_left > 0) {
        size_t room = batch_room(ld->filling), n_bytes = bytes_left, n = n_left;
        if (n_bytes > room) {
            /* As many as fit, which is none when the batch is full. */
            struct bam_walk walk = {.at = at, .end = at + room};
            for (n = 0; bam_walk_next(&walk);) n++;
            n_bytes = (size_t)(walk.at - at);
        }
        if (n > 0) {
            const struct made_records records = {at, n_bytes, n, ld->n_records};
            if (place_records(ld, piece, &records) < 0) return -1;
            ld->n_records += n;
        } else if (make_room(ld, bam_record_bytes(at)) < 0) {
            return -1;
        }
        at += n_bytes;
        bytes_left -= n_bytes;
        n_left -= n;
    }
    return check_lines(ld, piece);
}

/* Takes the oldest piece out of the ring. */
static void release_oldest(struct loader *ld)
{
    struct load_piece *piece = oldest_piece(ld);
    if (ld->is_copied) {
        crew_lock(ld->crew);
        load_jobs_drop_records(piece);
        crew_unlock(ld->crew);
    }
    if (ld->is_text) ld->ring_text_bytes -= piece->input.lines.text_bytes;
    ld->ring_at = (ld->ring_at + 1) % ld->n_ring;
    ld->ring_used--;
}

/* ---- templates ---- */

/* The piece that is to be cut next, or NULL if all in the ring are cut. */
static struct load_piece *next_to_cut(const struct loader *ld)
{
    if (ld->n_cut == ld->ring_used || ld->cutter.is_at_end) return NULL;
    return &ld->ring[(ld->ring_at + ld->n_cut) % ld->n_ring];
}

/* Counts the piece that was cut; r is what load_cutter.h has returned. */
static int count_cut_piece(struct loader *ld, int r)
{
    ld->n_cut++;
    ld->n_records = ld->cutter.n_records;
    if (r < 0) crew_fail(ld->crew);     /* nothing fixes its stretch */
    return r;
}

/* Gives fixed records a place in the batch being filled. */
static int place_group(struct loader *ld, struct load_piece *piece, const struct fixed_group *group)
{
    bool has_all = group->end.n_records - group->n_before == group->n_records;
    const struct made_records records = {
        .at = group->at, .n_bytes = group->n_bytes, .n_records = group->n_records,
        .first = has_all ? piece->templates.first_record + group->n_before
                         : RECORD_NUMBER_UNKNOWN};
    return group->n_records > 0 ? place_records(ld, piece, &records) : 0;
}

/* Hands out fixed records. A batch ends where a template ends, so that the input can be read again
   from there; but within a large one. */
static int place_groups(struct loader *ld, struct load_piece *piece)
{
    struct fixed_group group;
    while (fixed_records_take(&piece->templates.fixed, batch_room(ld->filling), &group)) {
        if (group.n_bytes > batch_room(ld->filling) && make_room(ld, group.n_bytes) < 0) return -1;
        if (place_group(ld, piece, &group) < 0) return -1;
        ld->at = load_cutter_position(piece, bam_inputs_number(ld->settings->inputs), &group.end);
    }
    return 0;
}

/* Waits until a worker has fixed the records of a piece. */
static int wait_until_fixed(struct loader *ld, const struct load_piece *piece)
{
    crew_lock(ld->crew);
    while (!piece->done && !crew_failed(ld->crew)) crew_wait_for(ld->crew, WAIT_READER_WORKERS);
    crew_unlock(ld->crew);
    return crew_failed(ld->crew) ? -1 : 0;
}

/* Waits until no more than n_users use the records of a piece. */
static int wait_for_users(struct loader *ld, const struct load_piece *piece, unsigned n_users)
{
    crew_lock(ld->crew);
    while (piece->n_users > n_users && !crew_failed(ld->crew)) crew_wait(ld->crew);
    crew_unlock(ld->crew);
    return crew_failed(ld->crew) ? -1 : 0;
}

/* Lets a worker fix more records of a piece, when those that were placed are copied. */
static int fix_rest(struct loader *ld, struct load_piece *piece)
{
    if (wait_for_users(ld, piece, 1) < 0) return -1;    /* the reader */
    piece->templates.first_record += piece->templates.fixed.n_done;
    return load_jobs_fix(piece) < 0 ? -1 : wait_until_fixed(ld, piece);
}

/* Reads the next part of a large template, and submits the job that fixes it. Returns 1, 0 if there
   is none, or -1. */
static int fetch_part(struct loader *ld, struct load_large *large, struct load_piece *piece)
{
    struct template_work *work = &piece->templates;
    if (wait_for_users(ld, piece, 0) < 0) return -1;
    piece->reader = ld->reader;
    int r = load_large_next(large, &work->raw, &work->part, &work->first_record);
    if (r < 0) crew_fail(ld->crew);
    if (r <= 0) return r;
    piece->n_users = 1;
    return load_jobs_fix(piece) < 0 ? -1 : 1;
}

static int place_part(struct loader *ld, struct load_piece *piece)
{
    const struct fixed_part *part = &piece->templates.part;
    if (wait_until_fixed(ld, piece) < 0 || place_groups(ld, piece) < 0) return -1;
    while (part->at < part->n_bytes)
        if (fix_rest(ld, piece) < 0 || place_groups(ld, piece) < 0) return -1;
    crew_lock(ld->crew);
    load_jobs_drop_records(piece);
    crew_unlock(ld->crew);
    return 0;
}

static void make_parts(struct loader *ld)
{
    if (ld->parts) return;
    ld->parts = xcalloc(ld->n_parts, sizeof *ld->parts);
    for (unsigned i = 0; i < ld->n_parts; i++) ld->parts[i].load = ld->settings;
}

/* Hands out the records of the large template that comes before a stretch. */
static int place_large(struct loader *ld, struct template_work *work)
{
    unsigned first = 0, n = 0;
    int r = 1;
    make_parts(ld);
    do {
        while (r > 0 && n < ld->n_parts) {
            r = fetch_part(ld, work->large, &ld->parts[(first + n) % ld->n_parts]);
            if (r > 0) n++;
        }
        if (r < 0 || (n > 0 && place_part(ld, &ld->parts[first]) < 0)) return -1;
        first = (first + 1) % ld->n_parts;
    } while (n-- > 1);
    load_large_destroy(work->large);
    work->large = NULL;
    return 0;
}

/* Makes a large template of one that tags of its mates have made too large. It comes after what was
   placed of the stretch. */
static int make_large(const struct loader *ld, struct template_work *work)
{
    const struct fixed_records *fixed = &work->fixed;
    work->large = load_large_create(&ld->large_settings,
                                    work->first_record + fixed->n_done - fixed->too_large);
    int r = work->large ? 0 : -1;
    for (size_t i = 0; r == 0 && i < fixed->too_large; i++) {
        const uint8_t *rec = fixed->space.drafts[i].rec;
        r = load_large_add(work->large, rec, bam_record_bytes(rec));
    }
    if (r == 0) r = load_large_end(work->large);
    if (r < 0) crew_fail(ld->crew);
    return r;
}

/* Hands out the records of a piece whose templates are fixed. */
static int place_templates(struct loader *ld, struct load_piece *piece)
{
    struct template_work *work = &piece->templates;
    if (work->large && place_large(ld, work) < 0) return -1;
    if (place_groups(ld, piece) < 0) return -1;
    while (work->fixed.too_large > 0 || work->fixed.has_rest) {
        if (work->fixed.too_large > 0 && make_large(ld, work) < 0) return -1;
        if (fix_rest(ld, piece) < 0 || (work->large && place_large(ld, work) < 0) ||
            place_groups(ld, piece) < 0)
            return -1;
    }
    if (work->size_is_impossible) return refuse_size(ld, ld->cutter.cutter.claimed_bytes);
    return ld->is_text ? check_lines(ld, piece) : 0;
}

/* With the lock held: can the reader place the oldest piece, or cut the next? */
static bool templates_can_go_on(const struct loader *ld)
{
    const struct load_piece *oldest = oldest_piece(ld), *next = next_to_cut(ld);
    return (oldest->templates.is_cut && oldest->done) || (next && next->done);
}

/* Cuts the next piece, or else places the oldest; one of both can be done. */
static int go_on_with_templates(struct loader *ld)
{
    struct load_piece *oldest = oldest_piece(ld), *next = next_to_cut(ld);
    crew_lock(ld->crew);
    bool can_cut = next && next->done;
    crew_unlock(ld->crew);
    if (can_cut) return count_cut_piece(ld, load_cutter_cut(&ld->cutter, next));
    if (place_templates(ld, oldest) < 0) return -1;
    release_oldest(ld);
    ld->n_cut--;
    return 0;
}

/* With the lock held: tells how far the input has been read. */
static void note_position(const struct loader *ld, bool all)
{
    const struct load_settings *s = ld->settings;
    uint64_t n_bytes = bam_inputs_bytes(s->inputs), n_read = 0;
    /* If one of several inputs is a pipe, only the position in the last one is known. */
    if (n_bytes > 0 || s->n_inputs == 1)
        n_read = all && n_bytes > 0 ? n_bytes : bam_inputs_bytes_read(s->inputs);
    load_totals_set_position(ld->totals, n_bytes, n_read);
}

/* Walks the oldest piece, once it is inflated or parsed; or cuts or places templates, once there is
   something to do. */
static int walk_oldest(struct loader *ld)
{
    struct load_piece *piece = oldest_piece(ld);
    bool has_templates = ld->settings->fixmate != NULL;
    crew_lock(ld->crew);
    note_position(ld, false);
    while (!(has_templates ? templates_can_go_on(ld) : piece->done) && !crew_failed(ld->crew))
        crew_wait_for(ld->crew, WAIT_READER_WORKERS);
    crew_unlock(ld->crew);
    if (crew_failed(ld->crew)) return -1;
    if (has_templates) return go_on_with_templates(ld);
    if (ld->is_text) {
        if (place_lines(ld, piece) < 0) return -1;
    } else {
        if (piece->batch != ld->walking && walk_next_batch(ld) < 0) return -1;
        if (walk_records(ld, piece) < 0) return -1;
    }
    release_oldest(ld);
    return 0;
}

/* Walks the pieces that are inflated already; waits for none. */
static int walk_what_is_there(struct loader *ld)
{
    while (ld->ring_used > 0) {
        crew_lock(ld->crew);
        bool done = ld->settings->fixmate ? templates_can_go_on(ld) : oldest_piece(ld)->done;
        crew_unlock(ld->crew);
        if (!done) break;
        if (walk_oldest(ld) < 0) return -1;
    }
    return 0;
}

/* Estimates the whole input from how well what was read of it is compressed. */
static void estimate_input(struct loader *ld)
{
    const struct bam_inputs *inputs = ld->settings->inputs;
    uint64_t n_read = bam_inputs_bytes_read(inputs), n_bytes = bam_inputs_bytes(inputs);
    if (n_read == 0 || n_bytes == 0) return;
    double expected = (double)ld->n_bytes * ((double)n_bytes / (double)n_read);
    load_totals_set_estimate(ld->totals, (uint64_t)expected);
}

/* Closes the batch being filled and starts the next, with room for room_bytes at least. */
static int fill_next_batch(struct loader *ld, size_t room_bytes)
{
    /* The walk must have reached the batch that is closed now: it can only be one batch behind. */
    while (ld->walking != ld->filling && ld->ring_used > 0)
        if (walk_oldest(ld) < 0) return -1;
    if (ld->walking != ld->filling && walk_next_batch(ld) < 0) return -1;
    estimate_input(ld);
    struct batch *next = batch_pool_take(ld->pool);
    if (!next) return -1;
    next->owner = ld->settings;
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
    assert(batch_room(ld->filling) >= room_bytes);
    return 0;
}

/* The next free slot of the ring. */
static struct load_piece *take_slot(struct loader *ld)
{
    struct load_piece *piece = &ld->ring[(ld->ring_at + ld->ring_used) % ld->n_ring];
    if (wait_for_users(ld, piece, 0) < 0) return NULL;
    piece->reader = ld->reader;
    piece->templates.is_cut = false;
    return piece;
}

/* Reads a piece of BAM into memory of its own: its templates will be fixed. Returns a code of the
   reader. */
static int read_for_templates(struct loader *ld, struct load_piece *piece)
{
    struct record_bytes *raw = &piece->templates.raw;
    size_t piece_bytes = ld->settings->budget->piece_bytes;
    int r;
    do {
        size_t room = bam_reader_room_needed(ld->reader);
        if (room < piece_bytes) room = piece_bytes;
        xgrow(&raw->at, &raw->room, room, 0, 1);
        r = bam_reader_next(ld->reader, &piece->input, raw->at, piece_bytes, raw->room);
    } while (r == BAM_READER_NO_ROOM);
    return r;
}

/* Reads a piece of BAM into the batch being filled. Returns a code of the reader. */
static int read_into_batch(struct loader *ld, struct load_piece *piece)
{
    struct batch *batch = ld->filling;
    int r = bam_reader_next(ld->reader, &piece->input, batch->mem + batch->raw_end,
                            ld->settings->budget->piece_bytes, batch_room(batch));
    if (r != BAM_READER_PIECE) return r;
    piece->batch = batch;
    piece->guess = (struct guessed_walk){0};
    piece->raw_at = batch->raw_end;
    batch_append(batch, piece->input.raw_bytes);
    ld->n_bytes += piece->input.raw_bytes;
    return r;
}

/* Reads lines of SAM, or a piece of BAM, into the next slot of the ring. Returns a code of the
   reader. */
static int fetch(struct loader *ld)
{
    struct load_piece *piece = take_slot(ld);
    if (!piece) return BAM_READER_ERROR;
    double start = monotonic_seconds();
    int r = ld->is_text     ? bam_reader_next(ld->reader, &piece->input, NULL,
                                              ld->settings->budget->text_bytes, 0)
            : ld->is_copied ? read_for_templates(ld, piece)
                            : read_into_batch(ld, piece);
    ld->input_seconds += monotonic_seconds() - start;
    if (r != BAM_READER_PIECE) return r;
    ld->n_fetched += ld->is_text ? piece->input.lines.text_bytes : piece->input.raw_bytes;
    piece->done = !ld->is_text && piece->input.compressed_bytes == 0;
    if (ld->is_copied) piece->n_users = 1;
    ld->ring_used++;
    if (piece->done) return r;
    if (!ld->is_text) return load_jobs_inflate(piece) < 0 ? BAM_READER_ERROR : r;
    ld->ring_text_bytes += piece->input.lines.text_bytes;
    return load_jobs_parse(piece) < 0 ? BAM_READER_ERROR : r;
}

/* Fixes and hands out the last template of an input. */
static int finish_templates(struct loader *ld)
{
    struct load_piece *piece = take_slot(ld);
    if (!piece) return -1;
    piece->n_users = 1;
    ld->ring_used++;
    if (count_cut_piece(ld, load_cutter_finish(&ld->cutter, piece)) < 0) return -1;
    while (ld->ring_used > 0)
        if (walk_oldest(ld) < 0) return -1;
    return 0;
}

/* Walks the last pieces of an input. It is an error if bytes are left after the last record. */
static int finish_input(struct loader *ld)
{
    while (ld->ring_used > 0)
        if (walk_oldest(ld) < 0) return -1;
    if (ld->settings->fixmate && finish_templates(ld) < 0) return -1;
    if (ld->walking != ld->filling && walk_next_batch(ld) < 0) return -1;
    if (ld->walking->raw_end == ld->walking->walk_at && !load_cutter_has_part(&ld->cutter))
        return 0;
    input_error_end(bam_reader_name(ld->reader), ld->n_records + 1);
    return -1;
}

/* Waits for the pieces in the ring and drops them. */
static int drop_ring(struct loader *ld)
{
    if (wait_for_ring(ld) < 0) return -1;
    crew_lock(ld->crew);
    for (unsigned i = 0; ld->is_copied && i < ld->ring_used; i++)
        load_jobs_drop_records(&ld->ring[(ld->ring_at + i) % ld->n_ring]);
    crew_unlock(ld->crew);
    ld->ring_used = ld->n_cut = 0;
    return 0;
}

/*
 * Ends the input after the last whole record that can be walked, and drops the rest. For errors in
 * an input that cannot be read again, for signals, and after most_bytes. What came of the last
 * template is fixed as if it were whole.
 */
static int end_early(struct loader *ld)
{
    while (ld->ring_used > 0 && walk_oldest(ld) == 0) continue;
    if (drop_ring(ld) < 0) return -1;
    if (ld->settings->fixmate && finish_templates(ld) < 0) return -1;
    struct batch *last = ld->walking;
    crew_lock(ld->crew);
    if (ld->filling != last) batch_pool_free_locked(ld->pool, ld->filling);
    crew_unlock(ld->crew);
    load_totals_set_cut(ld->totals);
    ld->is_cut = true;
    ld->filling = last;
    last->raw_end = last->walk_at;
    return 0;
}

static int load_one_input(struct loader *ld)
{
    ld->is_text = bam_reader_is_text(ld->reader);
    ld->is_copied = ld->is_text || ld->settings->fixmate;
    const struct load_settings *s = ld->settings;
    bool is_first = bam_inputs_number(s->inputs) == s->start.input;
    ld->n_records = is_first ? s->start.n_records : 0;
    load_cutter_begin(&ld->cutter, ld->n_records);
    for (;;) {
        if (crew_failed(ld->crew) || walk_what_is_there(ld) < 0) return -1;
        if (load_totals_stop_signal(ld->totals)) return -1;
        bool is_enough = s->most_bytes > 0 && ld->n_fetched >= s->most_bytes;
        if (is_enough && ld->ring_used == 0) return end_early(ld);
        if (is_enough || ld->ring_used == ld->most_used ||
            ld->ring_text_bytes > s->budget->max_text_bytes) {
            if (walk_oldest(ld) < 0) return -1;
            continue;
        }
        int r = fetch(ld);
        if (r == BAM_READER_ERROR) return -1;
        if (r == BAM_READER_END) return finish_input(ld);
        if (r == BAM_READER_NO_ROOM &&
            fill_next_batch(ld, bam_reader_room_needed(ld->reader)) < 0)
            return -1;
    }
}

/* Called after an error while an input was read. Marks the input as bad, unless something else
   failed or the system could not read it. Returns 0 if what came is kept, else -1. */
static int input_failed(struct loader *ld)
{
    if (crew_failed(ld->crew)) return -1;
    if (ld->settings->saves_part) return end_early(ld);
    if (!bam_reader_io_failed(ld->reader)) load_totals_set_bad(ld->totals);
    return -1;
}

static int load_all(struct loader *ld)
{
    const struct load_settings *s = ld->settings;
    int r = 0;
    if (fill_next_batch(ld, 0) < 0) return -1;
    while (!ld->is_cut && (r = bam_inputs_next(s->inputs, &ld->reader)) > 0)
        if (load_one_input(ld) < 0 && (r = input_failed(ld)) < 0) break;
    if (r < 0 && bam_inputs_changed(s->inputs)) load_totals_set_bad(ld->totals);
    if (r < 0) return -1;
    crew_lock(ld->crew);
    note_position(ld, true);
    crew_unlock(ld->crew);
    if (ld->walking->n_records > 0)
        seal_batch(ld, ld->walking);
    else
        batch_pool_free(ld->pool, ld->walking);
    return 0;
}

/* Waits until no job works on a piece, and after a failure until there is no job at all. */
static void wait_for_jobs(struct loader *ld)
{
    crew_lock(ld->crew);
    for (unsigned i = 0; i < ld->n_ring; i++)
        while (ld->ring[i].n_users > 0 && !crew_failed(ld->crew)) crew_wait(ld->crew);
    if (crew_failed(ld->crew)) crew_wait_for_jobs(ld->crew);
    crew_unlock(ld->crew);
}

static void prepare_loader(struct loader *ld, const struct load_settings *s)
{
    struct load_counts before;
    load_totals_look(s->totals, &before);
    *ld = (struct loader){
        .settings = s,
        .crew = s->crew,
        .pool = s->pool,
        .totals = s->totals,
        .at = s->start,
        .n_bytes = before.sum.n_bytes,
        /* Walked pieces of SAM keep their slots while their records are copied. */
        .most_used = s->budget->n_pieces,
        .n_ring = 2 * s->budget->n_pieces,
        .cutter = {.max_template_bytes = load_cutter_max_template(s->budget)},
        .large_settings = {.rules = s->fixmate, .temp_prefix = s->temp_prefix,
                           .output = s->output, .part_bytes = s->budget->piece_bytes},
        .n_parts = s->budget->n_threads + 1,
    };
    ld->cutter.large_settings = &ld->large_settings;
    ld->ring = xcalloc(ld->n_ring, sizeof *ld->ring);
    for (unsigned i = 0; i < ld->n_ring; i++) ld->ring[i].load = ld->settings;
}

/* Warns if so many reads had no mate beside them that the input is probably not in groups. */
static void tell_alone(const struct loader *ld)
{
    struct load_counts counts;
    load_totals_look(ld->totals, &counts);
    if (counts.n_alone <= FEW_ALONE || counts.n_alone * ALONE_RATIO <= counts.n_paired) return;
    diag_warning("%" PRIu64 " of %" PRIu64 " paired reads have no mate beside them: if reads of "
                 "one name lie apart, run samtools collate or rocksort -n first",
                 counts.n_alone, counts.n_paired);
}

int load_input(const struct load_settings *settings)
{
    struct loader ld;
    prepare_loader(&ld, settings);
    int r = load_all(&ld);
    if (r < 0) crew_fail(ld.crew);
    crew_add_wait(ld.crew, WAIT_READER_INPUT, ld.input_seconds);
    wait_for_jobs(&ld);
    if (r < 0) {
        /* Batches that are not sealed are not in the pool: free them here. */
        if (ld.walking != ld.filling) batch_destroy(ld.walking);
        batch_destroy(ld.filling);
    }
    load_totals_set_loading(ld.totals, false);
    /* Batches are freed, and point to the settings. */
    if (crew_finish_jobs(ld.crew) == 0) tell_alone(&ld);
    for (unsigned i = 0; i < ld.n_ring; i++) load_jobs_release(&ld.ring[i]);
    for (unsigned i = 0; ld.parts && i < ld.n_parts; i++) load_jobs_release(&ld.parts[i]);
    load_cutter_release(&ld.cutter);
    free(ld.parts);
    free(ld.ring);
    return crew_failed(ld.crew) ? -1 : 0;
}
