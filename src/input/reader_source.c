/*
 * reader_source.c -- see reader_source.h.
 *
 * BAM. htslib opens the file and reads the header. After that this source takes the compressed
 * blocks from htslib's hFILE as they are. The footer of a block gives its inflated size, so the
 * place of every byte is known before anything is inflated. htslib has already inflated the block
 * in which the header ends: the rest of this block is the first piece.
 *
 * Reads are so large that hFILE lets the kernel write directly into the piece; reading block by
 * block would copy through hFILE's buffer. Bytes read beyond the last block of a piece are carried
 * to the next one.
 */
#include "input/reader_source.h"

#include "bam/bam_convert.h"
#include "bam/bam_fields.h"
#include "input/input_error.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <htslib/bgzf.h>
#include <htslib/cram.h>
#include <htslib/hfile.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { READ_BYTES = 64 << 10 };

/* ---- blocks ---- */

/* Reports a read that failed with errno. */
static int read_error(struct bam_reader *reader)
{
    reader->io_failed = errno != 0;
    input_error_read(reader->name, reader->file_offset);
    return BAM_READER_ERROR;
}

/* Reads until the piece has n_bytes after its last block, or no more can be read. reader->n_ahead
   is the number of bytes there. */
static void read_on(struct bam_reader *reader, struct record_span *span, size_t n_bytes)
{
    if (reader->n_ahead >= n_bytes || reader->read_failed) return;
    hFILE *in = reader->hts->fp.bgzf->fp;
    off_t before = htell(in);
    size_t at = span->packed_bytes + reader->n_ahead, n_more = n_bytes - reader->n_ahead;
    size_t n_wanted = at < reader->span_bytes ? reader->span_bytes - at : 0;
    if (n_wanted > READ_BYTES) n_wanted = READ_BYTES;
    if (n_more < n_wanted) n_more = n_wanted;
    xgrow(&span->packed, &span->packed_room, at + n_more, 0, 1);
    errno = 0;
    if (hread(in, span->packed + at, n_more) < 0) {
        reader->read_failed = true;
        reader->read_errno = errno;
    }
    reader->n_ahead += (size_t)(htell(in) - before);    /* also before an error */
}

/* Prints why these bytes are not a block. */
static int refuse_block(const struct bam_reader *reader, const uint8_t bytes[BGZF_HEADER_BYTES])
{
    const char *format = memcmp(bytes, "BAM\1", 4) == 0      ? "BAM"
                         : memcmp(bytes, "CRAM", 4) == 0     ? "CRAM"
                         : bytes[0] == '@' && bytes[3] == '\t' ? "SAM" : NULL;
    if (format)
        input_error_joined(reader->name, format, "byte", reader->file_offset);
    else
        diag_error("'%s' is damaged: no BGZF block at byte %" PRIu64, reader->name,
                   reader->file_offset);
    return BAM_READER_ERROR;
}

/* Reads the next block after those of the piece, and finds its size. Returns a code of
   reader_source.h. */
static int read_block(struct bam_reader *reader, struct record_span *span, size_t *block_bytes)
{
    read_on(reader, span, BGZF_HEADER_BYTES);
    if (reader->n_ahead >= BGZF_HEADER_BYTES) {
        const uint8_t *block = span->packed + span->packed_bytes;
        *block_bytes = bgzf_block_bytes(block);
        if (*block_bytes == 0) return refuse_block(reader, block);
        read_on(reader, span, *block_bytes);
        if (reader->n_ahead >= *block_bytes) return BAM_READER_PIECE;
    }
    if (reader->read_failed) {
        errno = reader->read_errno;
        return read_error(reader);
    }
    if (reader->n_ahead == 0) return BAM_READER_END;
    diag_error("'%s' is truncated: it ends within the BGZF block at byte %" PRIu64, reader->name,
               reader->file_offset);
    return BAM_READER_ERROR;
}

/* Appends the next block to the piece. Returns a code of reader_source.h. */
static int append_block(struct bam_reader *reader, struct record_span *span)
{
    size_t block_bytes;
    int r = read_block(reader, span, &block_bytes);
    if (r != BAM_READER_PIECE) return r;
    uint32_t raw_bytes = bgzf_block_raw_bytes(span->packed + span->packed_bytes, block_bytes);
    if (raw_bytes > BGZF_MAX_BYTES) {
        diag_error("'%s' is damaged: the BGZF block at byte %" PRIu64 " claims %u bytes",
                   reader->name, reader->file_offset, raw_bytes);
        return BAM_READER_ERROR;
    }
    reader->last_block_empty = raw_bytes == 0;
    reader->n_ahead -= block_bytes;
    span->packed_bytes += block_bytes;
    span->raw_bytes += raw_bytes;
    reader->file_offset += block_bytes;
    return BAM_READER_PIECE;
}

/* Makes a piece of the rest of the block that htslib has inflated already. */
static int take_inflated(struct bam_reader *reader, struct record_span *span)
{
    BGZF *bgzf = reader->hts->fp.bgzf;
    span->file_offset = (uint64_t)bgzf->block_address;
    span->block_offset = (uint32_t)bgzf->block_offset;
    ssize_t n = bgzf_read(bgzf, span->memory + GAP_BYTES,
                          (size_t)(bgzf->block_length - bgzf->block_offset));
    if (n < 0) return read_error(reader);
    span->raw_bytes = (size_t)n;
    span->end_offset = (uint64_t)htell(bgzf->fp) << 16;
    return BAM_READER_PIECE;
}

int bgzf_source_next(struct bam_reader *reader, struct record_span *span)
{
    const BGZF *bgzf = reader->hts->fp.bgzf;
    if (bgzf->block_offset < bgzf->block_length) return take_inflated(reader, span);
    if (reader->file_offset == 0) reader->file_offset = (uint64_t)htell(bgzf->fp);
    span->file_offset = reader->file_offset;
    xgrow(&span->packed, &span->packed_room, reader->n_ahead, 0, 1);
    (void)copy_bytes(span->packed, reader->ahead, reader->n_ahead);
    int r;
    do {
        r = append_block(reader, span);
    } while (r == BAM_READER_PIECE && span->raw_bytes + BGZF_MAX_BYTES <= reader->span_bytes &&
             span->packed_bytes < reader->span_bytes);
    reader->failed = r == BAM_READER_ERROR;
    xgrow(&reader->ahead, &reader->ahead_room, reader->n_ahead, 0, 1);
    (void)copy_bytes(reader->ahead, span->packed + span->packed_bytes, reader->n_ahead);
    if (span->packed_bytes > 0) {
        span->end_offset = reader->file_offset << 16;
        return BAM_READER_PIECE;
    }
    if (r == BAM_READER_END && reader->end_is_unseen && !reader->last_block_empty) {
        reader->is_cut = true;
        input_warn_no_eof_marker(reader->name);
    }
    return r;
}

int plain_source_next(struct bam_reader *reader, struct record_span *span)
{
    errno = 0;
    BGZF *bgzf = reader->hts->fp.bgzf;
    ssize_t n = bgzf_read(bgzf, span->memory + GAP_BYTES, reader->span_bytes);
    reader->file_offset = (uint64_t)htell(bgzf->fp);    /* of compressed bytes for gzip */
    if (n < 0) return read_error(reader);
    span->raw_bytes = (size_t)n;
    return n == 0 ? BAM_READER_END : BAM_READER_PIECE;
}

/* ---- input that htslib decodes ---- */

bool record_source_bgzf_failed(const samFile *file)
{
    const htsFormat *format = &file->format;
    bool has_bgzf = format->format == bam || (format->format != cram && file->is_bgzf);
    return has_bgzf && file->fp.bgzf->errcode != 0;
}

/* True if a second CRAM begins where htslib has failed, because it read the magic and the file ID
   as the header of a container. */
static bool is_second_cram(const samFile *file)
{
    enum { OWN_MAGIC_BYTES = 26, MOST_HEADER_BYTES = 1024 };
    char bytes[MOST_HEADER_BYTES];
    if (file->format.format != cram) return false;
    hFILE *in = cram_fd_get_fp(file->fp.cram);
    off_t at = htell(in) - MOST_HEADER_BYTES;
    if (hseek(in, at > OWN_MAGIC_BYTES ? at : OWN_MAGIC_BYTES, SEEK_SET) < 0) return false;
    ssize_t n = hread(in, bytes, sizeof bytes);
    for (ssize_t i = 0; i + 4 <= n; i++)
        if (memcmp(bytes + i, "CRAM", 4) == 0) return true;
    return false;
}

/* Prints "after record N": htslib decodes ahead and reports an error before it returns the last
   valid records, so the number of the bad record is not known. */
static int error_after_record(const struct bam_reader *reader)
{
    if (is_second_cram(reader->hts))
        input_error_joined(reader->name, "CRAM", "record", reader->n_decoded);
    else
        diag_error("cannot read '%s' after record %" PRIu64 ": it is truncated or damaged",
                   reader->name, reader->n_decoded);
    return BAM_READER_ERROR;
}

/* ---- the end of FASTQ and FASTA ---- */

static bool is_sequences(const samFile *file)
{
    return file->format.format == fastq_format || file->format.format == fasta_format;
}

/* Stores how far htslib has inflated FASTQ or FASTA before it reads a record. */
static void look_ahead(struct bam_reader *reader)
{
    const samFile *hts = reader->hts;
    if (!is_sequences(hts) || hts->format.compression == no_compression) return;
    BGZF *bgzf = hts->fp.bgzf;
    if (bgzf_peek(bgzf) < 0) return;    /* inflates the next block if the current one is used up */
    reader->inflated_bytes = bgzf_utell(bgzf) + bgzf->block_length - bgzf->block_offset;
}

/* Reads the size of the text from the end of a compressed file, modulo 2^32. Correct for a gzip
   file of one member, and for BGZF if at most one block follows those that look_ahead saw. Returns
   false if the file is not seekable. */
static bool find_text_bytes(const struct bam_reader *reader, uint32_t *n_bytes)
{
    const samFile *hts = reader->hts;
    bool is_bgzf = hts->format.compression == bgzf;
    hFILE *file = hts->fp.bgzf->fp;
    uint8_t size[4];            /* of the last non-empty block, or of the member */
    off_t at = (off_t)sizeof size + (is_bgzf ? BGZF_END_BYTES : 0);
    if (hseek(file, -at, SEEK_END) < 0 || hread(file, size, sizeof size) != sizeof size) {
        hclearerr(file);        /* else closing fails and htslib leaks memory */
        return false;
    }
    *n_bytes = get_u32(size) + (is_bgzf ? (uint32_t)reader->inflated_bytes : 0);
    return true;
}

/* True if compressed text, which htslib has read completely, lacks a final newline: then htslib
   counts one byte more than the text has. If the last block was inflated before the last record,
   that count is exact; but a later block may have contained only the newline. */
static bool compressed_lacks_newline(const struct bam_reader *reader)
{
    int64_t n_counted = bgzf_utell(reader->hts->fp.bgzf);
    uint32_t n_bytes;
    if (n_counted <= reader->inflated_bytes) return false;
    if (find_text_bytes(reader, &n_bytes) && (uint32_t)n_counted - n_bytes <= 1)
        return (uint32_t)n_counted != n_bytes;
    return n_counted == reader->inflated_bytes + 1;
}

/* The same for all FASTQ and FASTA. An uncompressed pipe cannot be checked. */
static bool lacks_newline(const struct bam_reader *reader)
{
    const samFile *hts = reader->hts;
    char last;
    if (!is_sequences(hts)) return false;
    if (hts->format.compression != no_compression) return compressed_lacks_newline(reader);
    return hseek(hts->fp.hfile, -1, SEEK_END) >= 0 && hread(hts->fp.hfile, &last, 1) == 1 &&
           last != '\n';
}

/* ---- records ---- */

/* Notes the end of the input. A filter may have dropped the last record of the file. */
static int end_records(struct bam_reader *reader)
{
    reader->has_ended = true;
    if (lacks_newline(reader)) {
        reader->is_cut = true;
        if (!reader->is_quiet && reader->record->l_data > 0)
            input_warn_cut(reader->name, bam_get_qname(reader->record));
    }
    return BAM_READER_END;
}

/* Lets htslib decode a record, and appends it to the piece. Returns a code of reader_source.h. */
static int append_record(struct bam_reader *reader, struct record_span *span)
{
    if (reader->has_ended) return BAM_READER_END;
    look_ahead(reader);
    int r = sam_read1(reader->hts, reader->header, reader->record);
    /* After an unreadable container htslib 1.16 returns "end" first, and an error if called
       again. */
    if (r == -1 && reader->hts->format.format == cram)
        r = sam_read1(reader->hts, reader->header, reader->record);
    if (r < -1 || (r == -1 && record_source_bgzf_failed(reader->hts)))
        return error_after_record(reader);
    if (r == -1) return end_records(reader);
    reader->n_decoded++;
    size_t at = GAP_BYTES + span->raw_bytes;
    const char *problem = bam_record_put(reader->record, reader->long_positions, &span->memory,
                                         &span->memory_bytes, at);
    if (problem) {
        input_error_record(reader->name, reader->n_decoded, bam_get_qname(reader->record), problem);
        return BAM_READER_ERROR;
    }
    span->raw_bytes += bam_record_bytes(span->memory + at);
    return BAM_READER_PIECE;
}

int record_source_next(struct bam_reader *reader, struct record_span *span)
{
    int r;
    do {
        r = append_record(reader, span);
    } while (r == BAM_READER_PIECE && span->raw_bytes + BGZF_MAX_BYTES <= reader->span_bytes);
    reader->failed = r == BAM_READER_ERROR;
    return span->raw_bytes > 0 ? BAM_READER_PIECE : r;
}
