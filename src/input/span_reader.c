/* span_reader.c -- see span_reader.h. */
#include "input/span_reader.h"

#include "bam/bam_check.h"
#include "input/input_error.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void span_reader_begin(struct bam_reader *reader, size_t span_bytes, size_t most_template_bytes,
                       uint64_t n_records)
{
    reader->span_bytes = span_bytes;
    reader->most_template_bytes = most_template_bytes;
    reader->n_records = n_records;
    reader->end_offset = INPUT_OFFSET_UNKNOWN;
}

/* ---- reading ---- */

int span_reader_read(struct bam_reader *reader, struct record_span *span)
{
    size_t room = reader->span_bytes > BGZF_MAX_BYTES ? reader->span_bytes : BGZF_MAX_BYTES;
    if (reader->failed) return BAM_READER_ERROR;
    if (!reader->is_text && span->memory_bytes < GAP_BYTES + room) {
        free(record_span_take_memory(span));
        xgrow(&span->memory, &span->memory_bytes, GAP_BYTES + room, 0, 1);
    }
    span->is_text = reader->is_text;
    span->end_offset = INPUT_OFFSET_UNKNOWN;
    return reader->next(reader, span);
}

static void shrink_packed(struct record_span *span, size_t keep_bytes)
{
    if (span->packed_room <= keep_bytes) return;
    free(span->packed);
    span->packed = NULL;
    span->packed_room = 0;
}

int span_reader_fill(struct bam_reader *reader, struct record_span *span,
                     struct bgzf_coder *coder, bam1_t *record)
{
    if (span->is_text) {
        sam_chunk_parse(reader, span, record);
        shrink_packed(span, reader->span_bytes);
        return 0;
    }
    if (span->packed_bytes == 0) return 0;      /* raw already */
    const uint8_t *block = span->packed, *end = block + span->packed_bytes;
    uint8_t *raw = span->memory + GAP_BYTES;
    while (block < end) {
        size_t block_bytes = bgzf_block_bytes(block);
        if (bgzf_block_inflate(coder, block, block_bytes, raw) < 0) {
            diag_error("'%s' is damaged: a BGZF block after byte %" PRIu64 " cannot be inflated or "
                       "fails its checksum", reader->name, span->file_offset);
            return -1;
        }
        raw += bgzf_block_raw_bytes(block, block_bytes);
        block += block_bytes;
    }
    speculative_scan_make(&span->guess, span->memory + GAP_BYTES, span->raw_bytes);
    return 0;
}

size_t record_span_memory_bytes(const struct record_span *span)
{
    size_t expected = span->is_text ? span->packed_room : 0;
    return span->packed_room + (span->memory_bytes > expected ? span->memory_bytes : expected);
}

uint8_t *record_span_take_memory(struct record_span *span)
{
    uint8_t *memory = span->memory;
    span->memory = NULL;
    span->memory_bytes = 0;
    return memory;
}

void record_span_shrink(struct record_span *span, size_t keep_bytes)
{
    shrink_packed(span, keep_bytes);
    if (span->memory_bytes > keep_bytes) free(record_span_take_memory(span));
}

void record_span_reuse(struct record_span *span)
{
    free(span->raw_places);
    *span = (struct record_span){.packed = span->packed, .packed_room = span->packed_room,
                                 .memory = span->memory, .memory_bytes = span->memory_bytes};
}

void record_span_release(struct record_span *span)
{
    free(span->packed);
    free(span->memory);
    free(span->raw_places);
    *span = (struct record_span){0};
}

/* ---- the tail ---- */

size_t span_reader_tail_bytes(const struct bam_reader *reader)
{
    return reader->tail_bytes > GAP_BYTES ? reader->tail_bytes : 0;
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
static void keep_tail(struct bam_reader *reader, const uint8_t *bytes, size_t n_bytes)
{
    size_t n_before = reader->tail_bytes, n = n_before + n_bytes;
    size_t at = reader->kept.at, more = at / 2;
    if (n_bytes == 0) return;
    const uint8_t *rec = at < n_before ? reader->tail + at : bytes + (at - n_before);
    if (n > GAP_BYTES && (at < n_before ? n_before : n) - at >= 4)
        more += tail_to_come(rec, n - at, reader->span_bytes);
    xgrow(&reader->tail, &reader->tail_room, n, more, 1);
    memcpy(reader->tail + n_before, bytes, n_bytes);
    reader->tail_bytes = n;
}

/* Puts the tail before n_bytes at `bytes`, which has a gap before it. Returns the place of these
   bytes. */
static uint8_t *prepend_tail(struct bam_reader *reader, struct record_span *span, uint8_t *bytes,
                             size_t n_bytes)
{
    size_t n_tail = reader->tail_bytes;
    if (n_tail > GAP_BYTES) {
        keep_tail(reader, bytes, n_bytes);
        free(span->memory);
        span->from = span->memory = reader->tail;
        span->memory_bytes = reader->tail_room;
        reader->tail = NULL;
        reader->tail_room = 0;
    } else {
        span->from = bytes - n_tail;
        if (n_tail > 0) memcpy(span->from, reader->tail, n_tail);
    }
    reader->tail_bytes = 0;
    return span->from + n_tail;
}

/* True if the record in the tail does not end in the next n_bytes. False if the tail is too short
   to decide whether it begins another file: bam_walk_next checks again. */
static bool tail_goes_on(const struct bam_reader *reader, size_t n_bytes)
{
    enum { DECIDED_BYTES = 16 };        /* bam_begins_file */
    size_t n_tail = reader->tail_bytes - reader->kept.at;
    size_t record_bytes = n_tail >= 4 ? bam_record_bytes(reader->tail + reader->kept.at) : 0;
    return (n_tail >= DECIDED_BYTES || !bam_size_is_magic(record_bytes)) &&
           record_bytes > n_tail + n_bytes && record_bytes <= INT32_MAX;
}

/* ---- cutting ---- */

/* Makes a span of the records of the tail. */
static void take_kept(struct bam_reader *reader, struct record_span *span)
{
    span->n_records = reader->kept.n_records;
    if (span->n_records == 0) return;
    free(span->memory);
    span->from = span->memory = reader->tail;
    span->memory_bytes = reader->tail_room;
    span->to = span->from + reader->kept.at;
    reader->kept = (struct last_template){0, 0};
    reader->tail = NULL;
    reader->tail_bytes = reader->tail_room = 0;
}

/* Counts the records of a span that continue the large template. */
static void continue_open(struct bam_reader *reader, struct record_span *span)
{
    struct bam_records records = {span->from, span->to};
    while (records.at < records.to && template_same_name(reader->open, records.at)) {
        (void)bam_records_next(&records);
        span->n_continuing++;
    }
    if (records.at == records.to) return;
    free(reader->open);
    reader->open = NULL;
}

/* Leaves the records of the last template to the next span, which may continue it, unless it is
   too large or no usable record follows. */
static void leave_template(struct bam_reader *reader, struct record_span *span)
{
    const struct last_template kept = reader->kept;
    reader->kept = (struct last_template){0, 0};
    if (reader->open) continue_open(reader, span);
    if (reader->most_template_bytes == 0 || reader->open || reader->is_ended ||
        span->n_records == 0)
        return;
    /* Those kept before are one template: looking at them for each piece would be quadratic. */
    const uint8_t *added = span->from + kept.at;
    struct last_template last = template_find_last(added, span->to);
    last.at += kept.at;
    if (last.at == kept.at && kept.n_records > 0 &&
        (added == span->to || template_same_name(span->from, added)))
        last = (struct last_template){0, kept.n_records + last.n_records};
    size_t n_bytes = (size_t)(span->to - span->from) - last.at;
    if (template_memory_bytes(n_bytes, last.n_records) > reader->most_template_bytes) {
        span->n_continued = last.n_records;
        reader->open = template_copy_name(span->from + last.at);
        return;
    }
    span->to = span->from + last.at;
    span->n_records -= last.n_records;
    reader->kept = (struct last_template){n_bytes, last.n_records};
}

/* Keeps what the next span begins with: from span->to to `end`. */
static void leave_tail(struct bam_reader *reader, struct record_span *span, const uint8_t *end)
{
    bool is_moved = span->memory && span->from == span->memory;
    size_t n_bytes = (size_t)(end - span->to);
    if (span->n_records > 0 || !is_moved) {
        keep_tail(reader, span->to, n_bytes);
        return;
    }
    /* The template continues: this saves copying it to a span and back. */
    reader->tail = span->memory;
    reader->tail_bytes = n_bytes;
    reader->tail_room = span->memory_bytes;
    span->memory = NULL;
    span->memory_bytes = 0;
}

/* The BGZF virtual offset of a raw byte of the piece, or of its end (raw_at is raw_bytes). */
static uint64_t piece_offset(const struct record_span *span, size_t raw_at)
{
    if (raw_at == span->raw_bytes || span->end_offset == INPUT_OFFSET_UNKNOWN)
        return span->end_offset;
    if (span->packed_bytes == 0)
        return span->file_offset << 16 | (span->block_offset + (uint32_t)raw_at);
    const uint8_t *block = span->packed;
    for (;;) {
        size_t block_bytes = bgzf_block_bytes(block);
        uint32_t raw_bytes = bgzf_block_raw_bytes(block, block_bytes);
        if (raw_at < raw_bytes)
            return (span->file_offset + (uint64_t)(block - span->packed)) << 16 | raw_at;
        raw_at -= raw_bytes;
        block += block_bytes;
    }
}

/* The same for a place that may be the joint. */
static uint64_t span_offset(const struct record_span *span, size_t raw_at)
{
    return raw_at == span->joint_at ? span->joint_offset : piece_offset(span, raw_at);
}

/* Finds the whole records of a piece of BAM. */
static void cut_records(struct bam_reader *reader, struct record_span *span)
{
    const struct last_template kept = reader->kept;
    size_t n_bytes = span->raw_bytes;
    uint8_t *raw = span->memory + GAP_BYTES;
    if (reader->tail_bytes == kept.at) span->joint_offset = piece_offset(span, 0);
    if (tail_goes_on(reader, n_bytes)) {
        keep_tail(reader, raw, n_bytes);
        return;
    }
    span->raw = raw = prepend_tail(reader, span, raw, n_bytes);
    struct bam_walk walk = {.at = span->from + kept.at, .end = raw + n_bytes};
    span->joint_at = (size_t)(walk.at - raw);
    span->n_records = kept.n_records + speculative_scan_go(&span->guess, raw, &walk);
    span->to = walk.at;
    span->is_damaged = reader->is_ended = walk.is_damaged;
    span->claimed_bytes = walk.claimed_bytes;
    reader->end_offset = span_offset(span, (size_t)(walk.at - raw));
    leave_template(reader, span);
    if (span->n_records > 0) span->to_offset = span_offset(span, (size_t)(span->to - raw));
    leave_tail(reader, span, walk.end);
}

/* Adds the tail to the records of a piece of SAM. */
static void cut_lines(struct bam_reader *reader, struct record_span *span)
{
    reader->n_dropped += span->lines.n_dropped;
    span->n_dropped = reader->n_dropped;
    reader->is_ended = span->lines.problem != NULL;
    if (span->n_records == 0) {         /* the span may have no memory */
        if (reader->is_ended) take_kept(reader, span);
        return;
    }
    const uint8_t *end = prepend_tail(reader, span, span->from, span->raw_bytes) + span->raw_bytes;
    span->to = end;
    span->n_records += reader->kept.n_records;
    leave_template(reader, span);
    leave_tail(reader, span, end);
}

void span_reader_cut(struct bam_reader *reader, struct record_span *span)
{
    if (reader->is_ended) record_span_reuse(span);
    span->first_record = reader->n_records;
    span->joint_offset = span->to_offset = reader->end_offset;
    if (!reader->is_ended) (span->is_text ? cut_lines : cut_records)(reader, span);
    reader->n_records += span->n_records;
}

void span_reader_flush(struct bam_reader *reader, struct record_span *span)
{
    span->first_record = reader->n_records;
    span->n_dropped = reader->n_dropped;
    span->joint_offset = span->to_offset = reader->end_offset;
    take_kept(reader, span);
    reader->n_records += span->n_records;
}

/* ---- the end ---- */

int span_reader_end(const struct bam_reader *reader)
{
    if (reader->tail_bytes == reader->kept.at) return 0;
    diag_error("'%s' is truncated: it ends within record %" PRIu64, reader->name,
               reader->n_records + reader->kept.n_records + 1);
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
static int check_lines(const char *input, uint64_t n_before, const struct sam_lines *lines)
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
    else
        diag_error("'%s' is truncated: it ends within record %" PRIu64 "%s%s%s: %s", input, number,
                   *name ? " (read '" : "", name, *name ? "')" : "", text);
    return -1;
}

int record_span_check(const struct record_span *span, const char *input)
{
    uint64_t n_records = span->first_record + span->n_records + span->n_dropped;
    if (span->is_damaged)
        refuse_size(input, n_records + 1, span->claimed_bytes);
    else if (check_lines(input, n_records, &span->lines) == 0)
        return 0;
    return -1;
}

void record_span_rename(struct record_span *span, const struct id_renames *renames, int32_t n_refs)
{
    struct bam_records records = {span->from, span->to};
    const uint8_t *rec;
    size_t most_bytes = (size_t)(span->to - span->from) + span->n_records * renames->growth;
    bool changes = false;
    while (records.at < records.to && !bam_record_check(records.at, n_refs)) {
        rec = bam_records_next(&records);
        changes = changes || id_renames_touch(renames, rec);
    }
    if (records.at < records.to || !changes) return;
    uint8_t *memory = xmalloc(most_bytes), *out = memory;
    size_t *place = span->raw_places = xcalloc(span->n_records, sizeof *place);
    records.at = span->from;
    while ((rec = bam_records_next(&records))) {
        if (span->raw) *place++ = (size_t)(rec - span->raw);
        out += id_renames_rewrite(renames, rec, out);
    }
    free(span->memory);
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

uint64_t record_span_offset(const struct record_span *span, const uint8_t *at, size_t i)
{
    if (!span->raw || at == span->to) return span->to_offset;
    return span_offset(span, span->raw_places ? span->raw_places[i] : (size_t)(at - span->raw));
}
