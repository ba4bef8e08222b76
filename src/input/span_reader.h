/*
 * span_reader.h -- reads one input as spans of whole records.
 *
 * A span (reader_source.h) is made from a piece of the input, which is read, then inflated or
 * parsed, and then cut: cutting finds the whole records. A record that begins in one piece and ends
 * in a later one belongs to the span in which it ends: its beginning, the *tail*, is copied before
 * the bytes of that piece. A record that is longer than a piece is collected in the tail, which
 * becomes the memory of the span.
 *
 * If most_template_bytes is not 0, spans end where templates end: the records of the last template
 * of a piece also belong to the tail. A template that becomes larger than that is not kept: its
 * records are at the end of a span and at the beginning of the next ones.
 *
 * Order of calls: bam_reader_open; span_reader_begin; for each span span_reader_read,
 * span_reader_fill and span_reader_cut; when no other piece follows span_reader_end and, for
 * templates, span_reader_flush.
 *
 * Threads: one reads; any may fill, each span one at a time; one at a time cuts, in the order in
 * which the pieces were read. Errors: -1 after a message; record_span_check reports a bad record,
 * when the records before it have been taken.
 */
#ifndef ROCKSORT_INPUT_SPAN_READER_H
#define ROCKSORT_INPUT_SPAN_READER_H

#include "input/bam_reader.h"
#include "input/id_renames.h"

/* Begins an input whose first n_records were read before. Pieces get about span_bytes,
   uncompressed. */
void span_reader_begin(struct bam_reader *reader, size_t span_bytes, size_t most_template_bytes,
                       uint64_t n_records);

/* Reads a piece into an unused span. Returns a code of reader_source.h. */
int span_reader_read(struct bam_reader *reader, struct record_span *span);

/* Inflates or parses a piece. `record` is scratch space for text. Returns 0, or -1. */
int span_reader_fill(struct bam_reader *reader, struct record_span *span,
                     struct bgzf_coder *coder, bam1_t *record);

/* Finds the whole records of a span. After a damaged record, all spans are empty. */
void span_reader_cut(struct bam_reader *reader, struct record_span *span);

/* Memory of the tail if it is a long record; else 0. */
size_t span_reader_tail_bytes(const struct bam_reader *reader);

/* At the end of the input: returns 0, or -1 if it ends within a record. */
int span_reader_end(const struct bam_reader *reader);

/* Makes a span of the last template, which may have no records. No piece follows. */
void span_reader_flush(struct bam_reader *reader, struct record_span *span);

/* ---- spans ---- */

/* True if what follows the records of the span is bad. */
static inline bool record_span_has_problem(const struct record_span *span)
{
    return span->is_damaged || span->lines.problem;
}

/* Prints what is bad. Returns 0, or -1 if something is. May warn. */
int record_span_check(const struct record_span *span, const char *input);

/* Changes IDs in records to those of the united header, which has n_refs references. Changes
   nothing if a record is damaged, which the caller will refuse. */
void record_span_rename(struct record_span *span, const struct id_renames *renames, int32_t n_refs);

/* The offset from `from` of record i; n_records: of the end. */
size_t record_span_place(const struct record_span *span, size_t i);

/* The BGZF virtual offset of the place `at` in the span, where its record i begins (with
   most_template_bytes: a template) or the last one ends. The records may have been changed.
   INPUT_OFFSET_UNKNOWN unless the reader can seek. */
uint64_t record_span_offset(const struct record_span *span, const uint8_t *at, size_t i);

/* Gives the memory of the records to the caller, who frees it. */
uint8_t *record_span_take_memory(struct record_span *span);

/* The memory of a span; for lines that are not parsed yet, with an estimate for their records. */
size_t record_span_memory_bytes(const struct record_span *span);

/* Frees buffers of more than keep_bytes, and the records. */
void record_span_shrink(struct record_span *span, size_t keep_bytes);

/* Makes a span ready to be read again. */
void record_span_reuse(struct record_span *span);

void record_span_release(struct record_span *span);

#endif
