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
 *
 * Records. One record is read ahead, because only its size tells whether it fits into the piece.
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

struct bgzf_source {
    struct reader_source base;  /* must be the first member */
    uint64_t file_offset;       /* of the next block, or of the next bytes to be read */
    bool last_block_empty;
    uint8_t *carried;           /* bytes from file_offset on that were read already */
    size_t n_carried, carried_room;
    size_t span_bytes;          /* of the current piece: limits reading ahead */
    bool read_failed;           /* reading failed after those bytes */
    int read_errno;
};

enum { READ_BYTES = 64 << 10 };

/* ---- pieces ---- */

int bam_piece_inflate(const struct bam_piece *piece, struct bgzf_coder *coder, uint8_t *raw)
{
    const uint8_t *block = piece->compressed, *end = block + piece->compressed_bytes;
    while (block < end) {
        size_t block_bytes = bgzf_block_bytes(block);
        if (bgzf_block_inflate(coder, block, block_bytes, raw) < 0) return -1;
        raw += bgzf_block_raw_bytes(block, block_bytes);
        block += block_bytes;
    }
    return 0;
}

uint64_t bam_piece_offset(const struct bam_piece *piece, size_t raw_at)
{
    if (raw_at == piece->raw_bytes || piece->end_offset == INPUT_OFFSET_UNKNOWN)
        return piece->end_offset;
    if (piece->compressed_bytes == 0)
        return piece->file_offset << 16 | (piece->block_offset + (uint32_t)raw_at);
    const uint8_t *block = piece->compressed;
    for (;;) {
        size_t block_bytes = bgzf_block_bytes(block);
        uint32_t raw_bytes = bgzf_block_raw_bytes(block, block_bytes);
        if (raw_at < raw_bytes)
            return (piece->file_offset + (uint64_t)(block - piece->compressed)) << 16 | raw_at;
        raw_at -= raw_bytes;
        block += block_bytes;
    }
}

void bam_piece_release(struct bam_piece *piece)
{
    free(piece->compressed);
    sam_chunk_release(&piece->lines);
    *piece = (struct bam_piece){0};
}

/* ---- blocks ---- */

/* Reports a read that failed with errno. */
static int read_error(struct bgzf_source *s)
{
    s->base.io_failed = errno != 0;
    input_error_read(s->base.file->name, s->file_offset);
    return BAM_READER_ERROR;
}

/* Reads until the piece's buffer has n_bytes after its last block, or no more can be read. *n_read:
   the number of bytes there. */
static void read_on(struct bgzf_source *s, struct bam_piece *piece, size_t n_bytes, size_t *n_read)
{
    if (*n_read >= n_bytes || s->read_failed) return;
    hFILE *in = s->base.file->hts->fp.bgzf->fp;
    off_t before = htell(in);
    size_t at = piece->compressed_bytes + *n_read, n_more = n_bytes - *n_read;
    size_t n_ahead = at < s->span_bytes ? s->span_bytes - at : 0;
    if (n_ahead > READ_BYTES) n_ahead = READ_BYTES;
    if (n_more < n_ahead) n_more = n_ahead;
    xgrow(&piece->compressed, &piece->compressed_room, at + n_more, 0, 1);
    errno = 0;
    if (hread(in, piece->compressed + at, n_more) < 0) {
        s->read_failed = true;
        s->read_errno = errno;
    }
    *n_read += (size_t)(htell(in) - before);    /* also before an error */
}

/* Prints why these bytes are no block. */
static void refuse_block(const struct bgzf_source *s, const uint8_t bytes[BGZF_HEADER_BYTES])
{
    const char *name = s->base.file->name;
    const char *format = memcmp(bytes, "BAM\1", 4) == 0      ? "BAM"
                         : memcmp(bytes, "CRAM", 4) == 0     ? "CRAM"
                         : bytes[0] == '@' && bytes[3] == '\t' ? "SAM" : NULL;
    if (format)
        input_error_joined(name, format, "byte", s->file_offset);
    else
        diag_error("'%s' is damaged: no BGZF block at byte %" PRIu64, name, s->file_offset);
}

/* Finds the next block after those of the piece, and its size. *n_read as in read_on. Returns a
   code of reader_source.h. */
static int read_block(struct bgzf_source *s, struct bam_piece *piece, size_t *n_read,
                      size_t *block_bytes)
{
    const char *name = s->base.file->name;
    read_on(s, piece, BGZF_HEADER_BYTES, n_read);
    if (*n_read >= BGZF_HEADER_BYTES) {
        *block_bytes = bgzf_block_bytes(piece->compressed + piece->compressed_bytes);
        if (*block_bytes == 0) {
            refuse_block(s, piece->compressed + piece->compressed_bytes);
            return BAM_READER_ERROR;
        }
        read_on(s, piece, *block_bytes, n_read);
        if (*n_read >= *block_bytes) return BAM_READER_PIECE;
    }
    if (s->read_failed) {
        errno = s->read_errno;
        return read_error(s);
    }
    if (*n_read == 0) return BAM_READER_END;
    diag_error("'%s' is truncated: it ends within the BGZF block at byte %" PRIu64, name,
               s->file_offset);
    return BAM_READER_ERROR;
}

/* Appends the next block to the piece. *n_read as in read_on. Returns a code of reader_source.h. */
static int append_block(struct bgzf_source *s, struct bam_piece *piece, size_t *n_read)
{
    size_t block_bytes;
    int r = read_block(s, piece, n_read, &block_bytes);
    if (r != BAM_READER_PIECE) return r;
    const uint8_t *block = piece->compressed + piece->compressed_bytes;
    uint32_t raw_bytes = bgzf_block_raw_bytes(block, block_bytes);
    if (raw_bytes > BGZF_MAX_BYTES) {
        diag_error("'%s' is damaged: the BGZF block at byte %" PRIu64 " claims %u bytes",
                   s->base.file->name, s->file_offset, raw_bytes);
        return BAM_READER_ERROR;
    }
    s->last_block_empty = raw_bytes == 0;
    *n_read -= block_bytes;
    piece->compressed_bytes += block_bytes;
    piece->raw_bytes += raw_bytes;
    s->file_offset += block_bytes;
    return BAM_READER_PIECE;
}

/* Makes a piece of the rest of the block that htslib has inflated already. */
static int take_inflated(struct bgzf_source *s, struct bam_piece *piece, uint8_t *raw)
{
    BGZF *bgzf = s->base.file->hts->fp.bgzf;
    piece->file_offset = (uint64_t)bgzf->block_address;
    piece->block_offset = (uint32_t)bgzf->block_offset;
    ssize_t n = bgzf_read(bgzf, raw, (size_t)(bgzf->block_length - bgzf->block_offset));
    if (n < 0) return read_error(s);
    piece->raw_bytes = (size_t)n;
    piece->end_offset = (uint64_t)htell(bgzf->fp) << 16;
    return BAM_READER_PIECE;
}

static int next_blocks(struct reader_source *source, struct bam_piece *piece, uint8_t *raw,
                       size_t span_bytes, size_t room)
{
    struct bgzf_source *s = (struct bgzf_source *)source;
    const BGZF *bgzf = source->file->hts->fp.bgzf;
    if (room < BGZF_MAX_BYTES) return BAM_READER_NO_ROOM;
    if (bgzf->block_offset < bgzf->block_length) return take_inflated(s, piece, raw);
    if (s->file_offset == 0) s->file_offset = (uint64_t)htell(bgzf->fp);
    if (span_bytes > room) span_bytes = room;
    s->span_bytes = span_bytes;
    piece->file_offset = s->file_offset;
    piece->block_offset = 0;
    size_t n_read = s->n_carried;       /* beyond the previous piece */
    xgrow(&piece->compressed, &piece->compressed_room, n_read, 0, 1);
    (void)copy_bytes(piece->compressed, s->carried, n_read);
    int r;
    do {
        r = append_block(s, piece, &n_read);
    } while (r == BAM_READER_PIECE && piece->raw_bytes + BGZF_MAX_BYTES <= span_bytes &&
             piece->compressed_bytes < span_bytes);
    source->failed = r == BAM_READER_ERROR;
    xgrow(&s->carried, &s->carried_room, n_read, 0, 1);
    (void)copy_bytes(s->carried, piece->compressed + piece->compressed_bytes, n_read);
    s->n_carried = n_read;
    if (piece->compressed_bytes > 0) {
        piece->end_offset = s->file_offset << 16;
        return BAM_READER_PIECE;
    }
    if (r == BAM_READER_END && source->file->end_is_unseen && !s->last_block_empty) {
        source->is_cut = true;
        input_warn_no_eof_marker(source->file->name);
    }
    return r;
}

static int seek_block(struct reader_source *source, uint64_t offset, uint64_t n_records)
{
    BGZF *bgzf = source->file->hts->fp.bgzf;
    (void)n_records;
    if (bgzf_seek(bgzf, (int64_t)offset, SEEK_SET) < 0) return -1;
    /* The rest of this block becomes the first piece. */
    return (offset & 0xffff) != 0 ? bgzf_read_block(bgzf) : 0;
}

static int next_bytes(struct reader_source *source, struct bam_piece *piece, uint8_t *raw,
                      size_t span_bytes, size_t room)
{
    struct bgzf_source *s = (struct bgzf_source *)source;
    if (room < BGZF_MAX_BYTES) return BAM_READER_NO_ROOM;
    errno = 0;
    BGZF *bgzf = source->file->hts->fp.bgzf;
    ssize_t n = bgzf_read(bgzf, raw, span_bytes < room ? span_bytes : room);
    s->file_offset = (uint64_t)htell(bgzf->fp);         /* of compressed bytes for gzip */
    if (n < 0) return read_error(s);
    piece->raw_bytes = (size_t)n;
    return n == 0 ? BAM_READER_END : BAM_READER_PIECE;
}

static uint64_t file_offset(const struct reader_source *source)
{
    return ((const struct bgzf_source *)source)->file_offset;
}

static void close_source(struct reader_source *source)
{
    free(((struct bgzf_source *)source)->carried);
    free(source);
}

static struct reader_source *open_kind(const struct source_kind *kind,
                                       const struct reader_file *file)
{
    struct bgzf_source *s = xcalloc(1, sizeof *s);
    s->base = (struct reader_source){.kind = kind, .file = file};
    return &s->base;
}

struct reader_source *bgzf_source_open(const struct reader_file *file)
{
    static const struct source_kind kind = {
        .next = next_blocks, .seek = seek_block, .offset = file_offset, .close = close_source};
    return open_kind(&kind, file);
}

struct reader_source *bgzf_source_open_plain(const struct reader_file *file)
{
    static const struct source_kind kind = {
        .next = next_bytes, .offset = file_offset, .close = close_source};
    return open_kind(&kind, file);
}

/* ---- input that htslib decodes ---- */

struct record_source {
    struct reader_source base;  /* must be the first member */
    bam1_t *record;             /* as htslib decodes it */
    uint8_t *raw;               /* the record that was read last */
    size_t raw_room;
    bool is_waiting;            /* `raw` was not handed out yet */
    bool has_ended;             /* htslib must not be called again */
    int64_t inflated_bytes;     /* of FASTQ or FASTA, before the last record */
    uint64_t n_records;         /* read so far */
};

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
static int error_after_record(const struct record_source *s)
{
    if (is_second_cram(s->base.file->hts)) {
        input_error_joined(s->base.file->name, "CRAM", "record", s->n_records);
        return BAM_READER_ERROR;
    }
    diag_error("cannot read '%s' after record %" PRIu64 ": it is truncated or damaged",
               s->base.file->name, s->n_records);
    return BAM_READER_ERROR;
}

/* ---- the end of FASTQ and FASTA ---- */

static bool is_sequences(const samFile *file)
{
    return file->format.format == fastq_format || file->format.format == fasta_format;
}

/* Stores how far htslib has inflated FASTQ or FASTA before it reads a record. */
static void look_ahead(struct record_source *s)
{
    const samFile *hts = s->base.file->hts;
    if (!is_sequences(hts) || hts->format.compression == no_compression) return;
    BGZF *bgzf = hts->fp.bgzf;
    if (bgzf_peek(bgzf) < 0) return;    /* inflates the next block if the current one is used up */
    s->inflated_bytes = bgzf_utell(bgzf) + bgzf->block_length - bgzf->block_offset;
}

/* Reads the size of the text from the end of a compressed file, modulo 2^32. Correct for a gzip
   file of one member, and for BGZF if at most one block follows those that look_ahead saw. Returns
   false if the file is not seekable. */
static bool find_text_bytes(const struct record_source *s, uint32_t *n_bytes)
{
    const samFile *hts = s->base.file->hts;
    bool is_bgzf = hts->format.compression == bgzf;
    hFILE *file = hts->fp.bgzf->fp;
    uint8_t size[4];            /* of the last non-empty block, or of the member */
    off_t at = (off_t)sizeof size + (is_bgzf ? BGZF_END_BYTES : 0);
    if (hseek(file, -at, SEEK_END) < 0 || hread(file, size, sizeof size) != sizeof size) {
        hclearerr(file);        /* else closing fails and htslib leaks memory */
        return false;
    }
    *n_bytes = get_u32(size) + (is_bgzf ? (uint32_t)s->inflated_bytes : 0);
    return true;
}

/* True if compressed text, which htslib has read completely, lacks a final newline: then htslib
   counts one byte more than the text has. If the last block was inflated before the last record,
   that count is exact; but a later block may have contained only the newline. */
static bool compressed_lacks_newline(const struct record_source *s)
{
    int64_t n_counted = bgzf_utell(s->base.file->hts->fp.bgzf);
    uint32_t n_bytes;
    if (n_counted <= s->inflated_bytes) return false;
    if (find_text_bytes(s, &n_bytes) && (uint32_t)n_counted - n_bytes <= 1)
        return (uint32_t)n_counted != n_bytes;
    return n_counted == s->inflated_bytes + 1;
}

/* The same for all FASTQ and FASTA. An uncompressed pipe cannot be checked. */
static bool lacks_newline(const struct record_source *s)
{
    const samFile *hts = s->base.file->hts;
    char last;
    if (!is_sequences(hts)) return false;
    if (hts->format.compression != no_compression) return compressed_lacks_newline(s);
    return hseek(hts->fp.hfile, -1, SEEK_END) >= 0 && hread(hts->fp.hfile, &last, 1) == 1 &&
           last != '\n';
}

/* ---- records ---- */

/* Ends the source. A filter may have dropped the last record of the file. */
static int end_records(struct record_source *s)
{
    const struct reader_file *file = s->base.file;
    s->has_ended = true;
    s->base.is_cut = lacks_newline(s);
    if (s->base.is_cut && !file->is_quiet && s->record->l_data > 0)
        input_warn_cut(file->name, bam_get_qname(s->record));
    return BAM_READER_END;
}

/* Lets htslib decode a record, and packs it into `raw`. */
static int decode_next(struct record_source *s)
{
    const struct reader_file *file = s->base.file;
    if (s->has_ended) return BAM_READER_END;
    look_ahead(s);
    int r = sam_read1(file->hts, file->header, s->record);
    /* After an unreadable container htslib 1.16 returns "end" first, and an error if called
       again. */
    if (r == -1 && file->hts->format.format == cram)
        r = sam_read1(file->hts, file->header, s->record);
    if (r < -1 || (r == -1 && record_source_bgzf_failed(file->hts))) return error_after_record(s);
    if (r == -1) return end_records(s);
    const char *problem =
        bam_record_put(s->record, file->long_positions, &s->raw, &s->raw_room, 0);
    if (!problem) return BAM_READER_PIECE;
    input_error_record(file->name, s->n_records + 1, bam_get_qname(s->record), problem);
    return BAM_READER_ERROR;
}

/* Reads a record unless one is waiting. Returns a code of reader_source.h. */
static int fetch_record(struct record_source *s)
{
    if (s->is_waiting) return BAM_READER_PIECE;
    int r = decode_next(s);
    if (r != BAM_READER_PIECE) return r;
    s->n_records++;
    s->is_waiting = true;
    return r;
}

static int next_records(struct reader_source *source, struct bam_piece *piece, uint8_t *raw,
                        size_t span_bytes, size_t room)
{
    struct record_source *s = (struct record_source *)source;
    do {
        int r = fetch_record(s);
        source->failed = r == BAM_READER_ERROR;
        if (r != BAM_READER_PIECE) return piece->raw_bytes ? BAM_READER_PIECE : r;
        size_t n_bytes = bam_record_bytes(s->raw);
        if (n_bytes > room - piece->raw_bytes)
            return piece->raw_bytes ? BAM_READER_PIECE : BAM_READER_NO_ROOM;
        memcpy(raw + piece->raw_bytes, s->raw, n_bytes);
        piece->raw_bytes += n_bytes;
        s->is_waiting = false;
    } while (piece->raw_bytes < span_bytes);
    return BAM_READER_PIECE;
}

static size_t room_needed(const struct reader_source *source)
{
    const struct record_source *s = (const struct record_source *)source;
    return s->is_waiting ? bam_record_bytes(s->raw) : BGZF_MAX_BYTES;
}

static void close_records(struct reader_source *source)
{
    struct record_source *s = (struct record_source *)source;
    bam_destroy1(s->record);
    free(s->raw);
    free(s);
}

struct reader_source *record_source_open(const struct reader_file *file)
{
    static const struct source_kind kind = {.needs_header = true, .next = next_records,
                                            .room_needed = room_needed, .close = close_records};
    struct record_source *s = xcalloc(1, sizeof *s);
    s->base = (struct reader_source){.kind = &kind, .file = file};
    s->record = bam_init1();
    xalloc_require(s->record != NULL);
    return &s->base;
}
