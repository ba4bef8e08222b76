/*
 * span_reader.h -- reads one input as spans of whole records.
 *
 * A span is made from a piece of the input (reader_source.h), which is read, then inflated or
 * parsed, and then cut: cutting finds the whole records. A record that begins in one piece and ends
 * in a later one belongs to the span in which it ends: its beginning, the *tail*, is copied before
 * the bytes of that piece. A record that is longer than a piece is collected in the tail, which
 * becomes the memory of the span.
 *
 * If most_template_bytes is not 0, spans end where templates end: the records of the last template of a
 * piece also belong to the tail. A template that becomes larger than most_template_bytes is not
 * kept: its records are at the end of a span and at the beginning of the next ones.
 *
 * Order of calls: span_reader_begin; for each span span_reader_read, span_reader_fill and
 * span_reader_cut; span_reader_end when no other piece follows; span_reader_flush, for templates.
 *
 * Threads: one reads; any may fill, each span one at a time; one at a time cuts, in the order in
 * which the pieces were read. Ownership: spans and readers own their memory and start as {0}.
 * Errors: -1 after a message; record_span_check reports a bad record, when the records before it
 * have been taken.
 */
#ifndef ROCKSORT_INPUT_SPAN_READER_H
#define ROCKSORT_INPUT_SPAN_READER_H

#include "bam/bam_check.h"
#include "fixmate/template_cut.h"
#include "input/bam_reader.h"
#include "input/id_renames.h"

struct span_place {             /* of a record */
    size_t at;                  /* offset from `from` */
    size_t raw_at;              /* offset in the piece, before IDs were changed */
};

struct record_span {
    uint8_t *from;              /* records, one after another */
    const uint8_t *to;
    size_t n_records;           /* may be 0 */
    uint64_t first_record;      /* number of the first one in the input, from 0 */
    uint64_t n_dropped;         /* lines that a filter dropped so far, with this span */
    size_t n_continuing;        /* its first records: they continue a large template */
    size_t n_continued;         /* its last records: the next span may continue their template */
    /* for span_reader.c */
    struct bam_piece piece;
    uint8_t *memory;            /* BAM: a gap, and the raw bytes; text: only if the records are not
                                   in piece.lines */
    size_t memory_bytes;
    const uint8_t *raw;         /* where the bytes of the piece begin; set by cutting */
    size_t joint_at;            /* offset in the piece where the records of the tail end, which may
                                   be negative: modulo 2^64 */
    uint64_t joint_offset, to_offset;   /* virtual offsets of this place and of `to` */
    struct span_place *places;  /* of records whose IDs changed; NULL: none */
    struct speculative_scan guess;
    bool is_damaged;            /* the next record has an impossible size */
    size_t claimed_bytes;       /* this size */
};

struct span_reader {            /* only span_reader.c writes it */
    /* fixed after span_reader_begin */
    struct bam_reader *reader;
    const char *name;           /* of the input in messages */
    bool is_text;
    size_t span_bytes;
    size_t most_template_bytes; /* 0: spans may end within a template */
    /* by the thread that cuts */
    uint64_t n_records;         /* in all spans so far */
    uint64_t n_dropped;         /* lines that a filter dropped so far */
    uint64_t end_offset;        /* where the last whole record ends */
    bool is_ended;              /* after a bad record: the rest is not used */
    uint8_t *tail;              /* whole records of one template, and the beginning of the next
                                   record */
    size_t tail_bytes, tail_room;
    struct last_template kept;  /* the whole records: they end at `at` in the tail */
    uint8_t *open;              /* a record with nothing but the name of a large template that may
                                   go on; NULL: none */
};

/* Begins an input whose first n_records were read before. Pieces get about span_bytes,
   uncompressed. */
void span_reader_begin(struct span_reader *sr, struct bam_reader *reader, size_t span_bytes,
                       size_t most_template_bytes, uint64_t n_records);
void span_reader_release(struct span_reader *sr);

/* Reads a piece into a span. Returns a code of the reader. */
int span_reader_read(const struct span_reader *sr, struct record_span *span);

/* Inflates or parses a piece, unless it is raw already (record_span_is_raw). `record` is scratch
   space for text. Returns 0, or -1. */
int span_reader_fill(const struct span_reader *sr, struct record_span *span,
                     struct bgzf_coder *coder, bam1_t *record);

/* Finds the whole records of a span. After a damaged record, all spans are empty. */
void span_reader_cut(struct span_reader *sr, struct record_span *span);

/* Memory of the tail if it is a long record; else 0. */
size_t span_reader_tail_bytes(const struct span_reader *sr);

/* To be called at the end of the input: returns 0, or -1 if it ends within a record. */
int span_reader_end(const struct span_reader *sr);

/* Makes a span of the last template, which may have no records. No piece follows. */
void span_reader_flush(struct span_reader *sr, struct record_span *span);

/* ---- spans ---- */

static inline bool record_span_is_raw(const struct record_span *span)
{
    return span->piece.compressed_bytes == 0 && span->piece.raw_bytes > 0;
}

/* True if what follows the records of the span is bad. */
static inline bool record_span_has_problem(const struct record_span *span)
{
    return span->is_damaged || span->piece.lines.problem;
}

/* Prints what is bad. Returns 0, or -1 if something is. May warn. */
int record_span_check(const struct record_span *span, const char *input);

/* Changes IDs in records to those of the united header, which has n_refs references. has_offsets:
   record_span_offset will be called. Changes nothing if a record is damaged, which the caller will
   refuse. */
void record_span_rename(struct record_span *span, const struct id_renames *renames, int32_t n_refs,
                        bool has_offsets);

/* The offset from `from` of record i; n_records: of the end. */
size_t record_span_place(const struct record_span *span, size_t i);

/* The BGZF virtual offset of the place `at` in the span, where a record (with most_template_bytes: a
   template) begins or the last one ends. INPUT_OFFSET_UNKNOWN unless the reader can seek. */
uint64_t record_span_offset(const struct record_span *span, const uint8_t *at);

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
