/* span_reader.c -- see span_reader.h. */
#include "input/span_reader.h"

#include "bam/bam_check.h"
#include "input/input_error.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { GAP_BYTES = 4096 };      /* before a piece: room for the tail */

void span_reader_begin(struct span_reader *sr, struct bam_reader *reader, size_t span_bytes,
                       size_t most_template_bytes, uint64_t n_records)
{
    free(sr->open);
    *sr = (struct span_reader){
        .reader = reader, .name = reader->file.name, .is_text = reader->source->kind->is_text,
        .span_bytes = span_bytes, .most_template_bytes = most_template_bytes,
        .n_records = n_records, .end_offset = INPUT_OFFSET_UNKNOWN,
        .tail = sr->tail, .tail_room = sr->tail_room};
}

void span_reader_release(struct span_reader *sr)
{
    free(sr->tail);
    free(sr->open);
    *sr = (struct span_reader){0};
}

/* ---- reading ---- */

int span_reader_read(const struct span_reader *sr, struct record_span *span)
{
    size_t span_bytes = sr->span_bytes;
    int r;
    if (sr->is_text) {          /* takes memory as lines and as records */
        free(span->memory);
        span->memory = NULL;
        span->memory_bytes = 0;
        return bam_reader_next(sr->reader, &span->piece, NULL, span_bytes / 2, 0);
    }
    do {
        size_t room = bam_reader_room_needed(sr->reader);
        if (room < span_bytes) room = span_bytes;
        if (span->memory_bytes < GAP_BYTES + room) {
            free(span->memory);
            span->memory_bytes = GAP_BYTES + room;
            span->memory = xmalloc(span->memory_bytes);
        }
        r = bam_reader_next(sr->reader, &span->piece, span->memory + GAP_BYTES, span_bytes,
                            span->memory_bytes - GAP_BYTES);
    } while (r == BAM_READER_NO_ROOM);
    return r;
}

int span_reader_fill(const struct span_reader *sr, struct record_span *span,
                     struct bgzf_coder *coder, bam1_t *record)
{
    if (sr->is_text) {
        span->piece.lines.gap_bytes = sr->most_template_bytes > 0 ? GAP_BYTES : 0;
        sam_chunk_parse(&span->piece.lines, sr->reader->file.header, record);
        sam_chunk_shrink_text(&span->piece.lines, sr->span_bytes);
        return 0;
    }
    uint8_t *raw = span->memory + GAP_BYTES;
    if (bam_piece_inflate(&span->piece, coder, raw) < 0) {
        diag_error("'%s' is damaged: a BGZF block after byte %" PRIu64 " cannot be inflated or "
                   "fails its checksum", sr->name, span->piece.file_offset);
        return -1;
    }
    speculative_scan_make(&span->guess, raw, span->piece.raw_bytes);
    return 0;
}

size_t record_span_memory_bytes(const struct record_span *span)
{
    const struct sam_chunk *lines = &span->piece.lines;
    size_t records_room = lines->raw_room > lines->text_room ? lines->raw_room : lines->text_room;
    return span->memory_bytes + span->piece.compressed_room + lines->text_room + records_room;
}

uint8_t *record_span_take_memory(struct record_span *span)
{
    struct sam_chunk *lines = &span->piece.lines;
    uint8_t *memory = span->memory;
    span->memory = NULL;
    span->memory_bytes = 0;
    if (memory) return memory;
    memory = lines->raw;
    lines->raw = NULL;
    lines->raw_room = 0;
    return memory;
}

void record_span_shrink(struct record_span *span, size_t keep_bytes)
{
    sam_chunk_shrink_text(&span->piece.lines, keep_bytes);
    sam_chunk_shrink_raw(&span->piece.lines, keep_bytes);
    if (span->memory_bytes > keep_bytes) free(record_span_take_memory(span));
    free(span->places);
    span->places = NULL;
}

static void clear_lines(struct sam_chunk *lines)
{
    lines->problem = NULL;
    lines->is_cut = false;
    lines->text_bytes = lines->n_records = 0;
}

void record_span_reuse(struct record_span *span)
{
    clear_lines(&span->piece.lines);
    *span = (struct record_span){.piece = span->piece, .memory = span->memory,
                                 .memory_bytes = span->memory_bytes};
}

void record_span_release(struct record_span *span)
{
    bam_piece_release(&span->piece);
    free(span->memory);
    free(span->places);
    *span = (struct record_span){0};
}

/* ---- the tail ---- */

size_t span_reader_tail_bytes(const struct span_reader *sr)
{
    return sr->tail_bytes > GAP_BYTES ? sr->tail_bytes : 0;
}

/* How many more bytes a tail of n_bytes will get: a long record and the rest of the piece in which
   it ends. Room for all of them is allocated at once, because growing step by step would leave
   holes in the heap. A damaged record may claim any size, so there is a limit. */
static size_t tail_to_come(const uint8_t *tail, size_t n_bytes, size_t span_bytes)
{
    enum { MOST_BYTES = 64 << 20 };
    size_t record_bytes = bam_record_bytes(tail);
    if (record_bytes <= n_bytes) return 0;
    size_t to_come = record_bytes - n_bytes + span_bytes;
    return to_come < MOST_BYTES ? to_come : MOST_BYTES;
}

/* Adds bytes to the tail. */
static void keep_tail(struct span_reader *sr, const uint8_t *bytes, size_t n_bytes)
{
    size_t n_before = sr->tail_bytes, n = n_before + n_bytes, at = sr->kept.at, more = at / 2;
    if (n_bytes == 0) return;
    const uint8_t *rec = at < n_before ? sr->tail + at : bytes + (at - n_before);
    if (n > GAP_BYTES && (at < n_before ? n_before : n) - at >= 4)
        more += tail_to_come(rec, n - at, sr->span_bytes);
    xgrow(&sr->tail, &sr->tail_room, n, more, 1);
    memcpy(sr->tail + n_before, bytes, n_bytes);
    sr->tail_bytes = n;
}

/* Puts the tail before n_bytes at `bytes`, which has a gap before it. Returns the place of these
   bytes. */
static uint8_t *prepend_tail(struct span_reader *sr, struct record_span *span, uint8_t *bytes,
                             size_t n_bytes)
{
    size_t n_tail = sr->tail_bytes;
    if (n_tail > GAP_BYTES) {
        keep_tail(sr, bytes, n_bytes);
        free(span->memory);
        span->from = span->memory = sr->tail;
        span->memory_bytes = sr->tail_room;
        sr->tail = NULL;
        sr->tail_room = 0;
    } else {
        span->from = bytes - n_tail;
        if (n_tail > 0) memcpy(span->from, sr->tail, n_tail);
    }
    sr->tail_bytes = 0;
    return span->from + n_tail;
}

/* True if the record in the tail does not end in the next n_bytes. False if the tail is too short
   to decide whether it begins another file: bam_walk_next checks again. */
static bool tail_goes_on(const struct span_reader *sr, size_t n_bytes)
{
    enum { DECIDED_BYTES = 16 };        /* bam_begins_file */
    size_t n_tail = sr->tail_bytes - sr->kept.at;
    size_t record_bytes = n_tail >= 4 ? bam_record_bytes(sr->tail + sr->kept.at) : 0;
    return (n_tail >= DECIDED_BYTES || !bam_size_is_magic(record_bytes)) &&
           record_bytes > n_tail + n_bytes && record_bytes <= INT32_MAX;
}

/* ---- cutting ---- */

/* Makes a span of the records of the tail. */
static void take_kept(struct span_reader *sr, struct record_span *span)
{
    span->n_records = sr->kept.n_records;
    if (span->n_records == 0) return;
    free(span->memory);
    span->from = span->memory = sr->tail;
    span->memory_bytes = sr->tail_room;
    span->to = span->from + sr->kept.at;
    sr->kept = (struct last_template){0, 0};
    sr->tail = NULL;
    sr->tail_bytes = sr->tail_room = 0;
}

/* Counts the records of a span that continue the large template. */
static void continue_open(struct span_reader *sr, struct record_span *span)
{
    struct bam_records records = {span->from, span->to};
    while (records.at < records.to && template_same_name(sr->open, records.at)) {
        (void)bam_records_next(&records);
        span->n_continuing++;
    }
    if (records.at == records.to) return;
    free(sr->open);
    sr->open = NULL;
}

/* Leaves the records of the last template to the next span, which may continue it, unless it is
   too large or no usable record follows. */
static void leave_template(struct span_reader *sr, struct record_span *span)
{
    if (sr->open) continue_open(sr, span);
    if (sr->open || sr->is_ended || span->n_records == 0) return;
    const struct last_template last = template_find_last(span->from, span->to);
    size_t n_bytes = (size_t)(span->to - span->from) - last.at;
    if (template_memory_bytes(n_bytes, last.n_records) > sr->most_template_bytes) {
        span->n_continued = last.n_records;
        sr->open = template_copy_name(span->from + last.at);
        return;
    }
    span->to = span->from + last.at;
    span->n_records -= last.n_records;
    sr->kept = (struct last_template){n_bytes, last.n_records};
}

/* Keeps what the next span begins with: from span->to to `end`. */
static void leave_tail(struct span_reader *sr, struct record_span *span, const uint8_t *end)
{
    bool is_moved = span->memory && span->from == span->memory;
    size_t n_bytes = (size_t)(end - span->to);
    if (span->n_records > 0 || !is_moved) {
        keep_tail(sr, span->to, n_bytes);
        return;
    }
    /* The template goes on: it has not been copied to be copied back. */
    sr->tail = span->memory;
    sr->tail_bytes = n_bytes;
    sr->tail_room = span->memory_bytes;
    span->memory = NULL;
    span->memory_bytes = 0;
}

/* The virtual offset of a place in the piece. */
static uint64_t piece_offset(const struct record_span *span, size_t raw_at)
{
    if (!span->raw || raw_at == span->joint_at) return span->joint_offset;
    return bam_piece_offset(&span->piece, raw_at);
}

/* Finds the whole records of a piece of BAM. */
static void cut_records(struct span_reader *sr, struct record_span *span)
{
    const struct last_template kept = sr->kept;
    size_t n_bytes = span->piece.raw_bytes;
    uint8_t *raw = span->memory + GAP_BYTES;
    if (sr->tail_bytes == kept.at) span->joint_offset = bam_piece_offset(&span->piece, 0);
    if (tail_goes_on(sr, n_bytes)) {
        keep_tail(sr, raw, n_bytes);
        return;
    }
    span->raw = raw = prepend_tail(sr, span, raw, n_bytes);
    struct bam_walk walk = {.at = span->from + kept.at, .end = raw + n_bytes};
    span->joint_at = (size_t)(walk.at - raw);
    span->n_records = kept.n_records + speculative_scan_go(&span->guess, raw, &walk);
    span->to = walk.at;
    span->is_damaged = sr->is_ended = walk.is_damaged;
    span->claimed_bytes = walk.claimed_bytes;
    sr->end_offset = piece_offset(span, (size_t)(walk.at - raw));
    sr->kept = (struct last_template){0, 0};
    if (sr->most_template_bytes > 0) leave_template(sr, span);
    if (span->n_records > 0) span->to_offset = piece_offset(span, (size_t)(span->to - raw));
    leave_tail(sr, span, walk.end);
}

static void cut_lines(struct span_reader *sr, struct record_span *span)
{
    const struct sam_chunk *lines = &span->piece.lines;
    sr->n_dropped += lines->n_dropped;
    span->n_dropped = sr->n_dropped;
    sr->is_ended = lines->problem != NULL;
    if (lines->n_records == 0) {        /* `raw` may be NULL */
        if (sr->is_ended) take_kept(sr, span);
        return;
    }
    size_t n_bytes = lines->raw_bytes - lines->gap_bytes;
    span->to = prepend_tail(sr, span, lines->raw + lines->gap_bytes, n_bytes) + n_bytes;
    span->n_records = sr->kept.n_records + lines->n_records;
    const uint8_t *end = span->to;
    sr->kept = (struct last_template){0, 0};
    if (sr->most_template_bytes > 0) leave_template(sr, span);
    leave_tail(sr, span, end);
}

void span_reader_cut(struct span_reader *sr, struct record_span *span)
{
    span->first_record = sr->n_records;
    span->joint_offset = span->to_offset = sr->end_offset;
    if (sr->is_ended)
        clear_lines(&span->piece.lines);
    else if (sr->is_text)
        cut_lines(sr, span);
    else
        cut_records(sr, span);
    sr->n_records += span->n_records;
}

void span_reader_flush(struct span_reader *sr, struct record_span *span)
{
    span->first_record = sr->n_records;
    span->n_dropped = sr->n_dropped;
    span->joint_offset = span->to_offset = sr->end_offset;
    take_kept(sr, span);
    sr->n_records += span->n_records;
}

/* ---- the end ---- */

int span_reader_end(const struct span_reader *sr)
{
    if (sr->tail_bytes == sr->kept.at) return 0;
    diag_error("'%s' is truncated: it ends within record %" PRIu64, sr->name,
               sr->n_records + sr->kept.n_records + 1);
    return -1;
}

/* Reports a record with an impossible size, or another file in its place. */
static void refuse_size(const char *input, uint64_t number, size_t claimed_bytes)
{
    char problem[64];
    if (bam_size_is_magic(claimed_bytes)) {
        input_error_joined(input, "BAM", "record", number - 1);
        return;
    }
    (void)snprintf(problem, sizeof problem, "it claims a size of %zu bytes", claimed_bytes);
    input_error_record(input, number, NULL, problem);
}

/* Checks the lines of a chunk, after n_before records that the caller has taken. Returns 0 if all
   are valid, after a warning if the file ends within the last one; else -1 after a message. */
static int check_lines(const char *input, uint64_t n_before, const struct sam_chunk *lines)
{
    char text[SAM_PROBLEM_BYTES + SAM_LINE_START_BYTES + 32];
    uint64_t number = n_before + 1;
    const char *name = lines->read_name;
    if (!lines->problem) {
        if (lines->is_cut) input_warn_cut(input, name);
        return 0;
    }
    (void)snprintf(text, sizeof text, "%s; line %" PRIu64 ": '%s'", lines->problem,
                   lines->first_line + n_before, lines->line_start);
    if (!lines->is_cut)
        input_error_record(input, number, name, text);
    else if (*name)
        diag_error("'%s' is truncated: it ends within record %" PRIu64 " (read '%s'): %s", input,
                   number, name, text);
    else
        diag_error("'%s' is truncated: it ends within record %" PRIu64 ": %s", input, number, text);
    return -1;
}

int record_span_check(const struct record_span *span, const char *input)
{
    uint64_t n_records = span->first_record + span->n_records + span->n_dropped;
    if (span->is_damaged)
        refuse_size(input, n_records + 1, span->claimed_bytes);
    else if (check_lines(input, n_records, &span->piece.lines) == 0)
        return 0;
    return -1;
}

void record_span_rename(struct record_span *span, const struct id_renames *renames, int32_t n_refs,
                        bool has_offsets)
{
    struct bam_records records = {span->from, span->to};
    const uint8_t *rec;
    size_t most_bytes = 0;
    bool changes = false;
    while (records.at < records.to && !bam_record_check(records.at, n_refs)) {
        rec = bam_records_next(&records);
        changes = changes || id_renames_touch(renames, rec);
        most_bytes += id_renames_rewrite_bound(renames, rec);
    }
    if (records.at < records.to || !changes) return;
    uint8_t *memory = xmalloc(most_bytes), *out = memory;
    struct span_place *place = NULL;
    if (has_offsets && span->raw)
        place = span->places = xcalloc(span->n_records, sizeof *span->places);
    records.at = span->from;
    while ((rec = bam_records_next(&records))) {
        if (place)
            *place++ = (struct span_place){(size_t)(out - memory), (size_t)(rec - span->raw)};
        out += id_renames_rewrite(renames, rec, out);
    }
    free(record_span_take_memory(span));
    span->memory = span->from = memory;
    span->memory_bytes = most_bytes;
    span->to = out;
}

size_t record_span_place(const struct record_span *span, size_t i)
{
    struct bam_records records = {span->from, span->to};
    if (i == span->n_records) return (size_t)(span->to - span->from);
    while (i-- > 0) (void)bam_records_next(&records);
    return (size_t)(records.at - span->from);
}

/* The offset in the piece of a record whose IDs were changed. */
static size_t raw_place(const struct record_span *span, const uint8_t *at)
{
    size_t low = 0, high = span->n_records, wanted = (size_t)(at - span->from);
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (span->places[middle].at > wanted)
            high = middle;
        else
            low = middle;
    }
    return span->places[low].raw_at;
}

uint64_t record_span_offset(const struct record_span *span, const uint8_t *at)
{
    if (!span->raw || at == span->to) return span->to_offset;
    return piece_offset(span, span->places ? raw_place(span, at) : (size_t)(at - span->raw));
}
