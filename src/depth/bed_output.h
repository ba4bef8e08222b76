/*
 * bed_output.h -- writes BED files that are compressed with BGZF, with a CSI index.
 *
 * A bed_text collects lines and where they are; a worker may fill and pack one (compress it), and
 * bed_output_text appends it to a file. bed_output->loose is the text to which the thread that
 * combines the parts adds single lines.
 *
 * To add a line: bed_text_begin_line, then append to text->raw, then bed_text_end_line.
 *
 * Structs start as {0}. Threads: each struct has one owner at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_DEPTH_BED_OUTPUT_H
#define ROCKSORT_DEPTH_BED_OUTPUT_H

#include "bam/bgzf_block.h"
#include "bam/count_kind.h"
#include "depth/csi_writer.h"
#include "util/decimal.h"

struct bed_place {              /* lines of one bin */
    int32_t tid;
    int64_t begin, end;
    uint64_t at[2];             /* begin and end: bytes of the text; virtual offsets, once packed */
};

struct bed_text {
    struct byte_buffer raw, packed;
    struct bed_place *places;
    size_t n_places, places_room;
    size_t line;                /* where the last line begins */
};

enum { BED_TEXT_FULL = 60000 };         /* a text of this size fills a BGZF block */

/* Appends a number in decimal digits. */
static inline void bed_text_number(struct byte_buffer *raw, uint64_t value)
{
    uint8_t *at = byte_buffer_reserve(raw, DECIMAL_MOST_BYTES);
    raw->n_bytes += (size_t)(put_decimal(at, value) - at);
}

/* Begins a line with a name, a tab, begin, a tab and end. */
void bed_text_begin_line(struct bed_text *text, const char *name, int64_t begin, int64_t end);

/* Ends the line with a newline. */
void bed_text_end_line(struct bed_text *text, int32_t tid, int64_t begin, int64_t end);

/* Compresses the text, at level 1. Returns 0, or -1 after a message. */
int bed_text_pack(struct bed_text *text, struct bgzf_coder *coder);

void bed_text_release(struct bed_text *text);

struct bed_output {
    struct count_sink *sink;    /* NULL: the file is not wanted */
    struct bgzf_coder coder;
    struct csi_writer csi;
    struct bed_text loose;
};

void bed_output_init(struct bed_output *out, struct count_sink *sink, const sam_hdr_t *header);

/* Writes the loose lines, or only if they fill a block. */
int bed_output_flush(struct bed_output *out, bool all);

/* Writes the loose lines, then a packed text. */
int bed_output_text(struct bed_output *out, const struct bed_text *text);

/* Writes the loose lines and the end of the file. */
int bed_output_finish(struct bed_output *out);

void bed_output_release(struct bed_output *out);

#endif
