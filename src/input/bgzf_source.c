/*
 * bgzf_source.c -- see bgzf_source.h.
 *
 * htslib opens the file and reads the header. After that this source takes the compressed blocks
 * from htslib's hFILE as they are. The footer of a block gives its inflated size, so the place of
 * every byte is known before anything is inflated. htslib has already inflated the block in which
 * the header ends: the rest of this block is the first piece.
 *
 * So much is read at a time that hFILE lets the kernel write it into the piece itself. Read block
 * by block, all went through hFILE's buffer. What is read beyond the last block of a piece is
 * carried to the next one.
 */
#include "input/bgzf_source.h"

#include "input/input_error.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <htslib/bgzf.h>
#include <htslib/hfile.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bgzf_source {
    struct reader_source base;  /* must be the first member */
    uint64_t file_offset;       /* of the next block, or of the next bytes to be read */
    bool last_block_empty;
    uint8_t *carried;           /* bytes from there on that were read already */
    size_t n_carried, carried_room;
    size_t piece_bytes;         /* of the piece at hand: no more is read ahead */
    bool read_failed;           /* after those bytes */
    int read_errno;
};

enum { READ_BYTES = 64 << 10 };

static struct bgzf_source *of(struct reader_source *source)
{
    return (struct bgzf_source *)source;
}

/* Reports a read that failed with errno. */
static int read_error(struct bgzf_source *s)
{
    s->base.io_failed = errno != 0;
    input_error_read(s->base.file->name, s->file_offset);
    return BAM_READER_ERROR;
}

/* Reads on until the piece's buffer has n_bytes after its last block, or no more can be read.
   *n_read: how many it has. */
static void read_on(struct bgzf_source *s, struct bam_piece *piece, size_t n_bytes, size_t *n_read)
{
    if (*n_read >= n_bytes || s->read_failed) return;
    hFILE *in = s->base.file->hts->fp.bgzf->fp;
    off_t before = htell(in);
    size_t at = piece->compressed_bytes + *n_read, n_more = n_bytes - *n_read;
    size_t n_ahead = at < s->piece_bytes ? s->piece_bytes - at : 0;
    if (n_ahead > READ_BYTES) n_ahead = READ_BYTES;
    if (n_more < n_ahead) n_more = n_ahead;
    xgrow(&piece->compressed, &piece->compressed_room, at + n_more, 0, 1);
    errno = 0;
    if (hread(in, piece->compressed + at, n_more) < 0) {
        s->read_failed = true;
        s->read_errno = errno;
    }
    *n_read += (size_t)(htell(in) - before);    /* before an error, too */
}

/* Prints why no block begins with these bytes. */
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

/* Puts the bytes that were read beyond the piece before into this one. Returns how many. */
static size_t take_carried(struct bgzf_source *s, struct bam_piece *piece)
{
    size_t n = s->n_carried;
    xgrow(&piece->compressed, &piece->compressed_room, n, 0, 1);
    if (n > 0) memcpy(piece->compressed, s->carried, n);
    s->n_carried = 0;
    return n;
}

/* Keeps n bytes after the last block of the piece for the next one. */
static void carry(struct bgzf_source *s, const struct bam_piece *piece, size_t n)
{
    xgrow(&s->carried, &s->carried_room, n, 0, 1);
    if (n > 0) memcpy(s->carried, piece->compressed + piece->compressed_bytes, n);
    s->n_carried = n;
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
                       size_t piece_bytes, size_t room)
{
    struct bgzf_source *s = of(source);
    const BGZF *bgzf = source->file->hts->fp.bgzf;
    if (room < BGZF_MAX_BYTES) return BAM_READER_NO_ROOM;
    if (bgzf->block_offset < bgzf->block_length) return take_inflated(s, piece, raw);
    if (s->file_offset == 0) s->file_offset = (uint64_t)htell(bgzf->fp);
    if (piece_bytes > room) piece_bytes = room;
    s->piece_bytes = piece_bytes;
    piece->file_offset = s->file_offset;
    piece->block_offset = 0;
    size_t n_read = take_carried(s, piece);
    int r;
    do {
        r = append_block(s, piece, &n_read);
    } while (r == BAM_READER_PIECE && piece->raw_bytes + BGZF_MAX_BYTES <= piece_bytes &&
             piece->compressed_bytes < piece_bytes);
    source->failed = r == BAM_READER_ERROR;
    carry(s, piece, n_read);
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
                      size_t piece_bytes, size_t room)
{
    struct bgzf_source *s = of(source);
    if (room < BGZF_MAX_BYTES) return BAM_READER_NO_ROOM;
    errno = 0;
    BGZF *bgzf = source->file->hts->fp.bgzf;
    ssize_t n = bgzf_read(bgzf, raw, piece_bytes < room ? piece_bytes : room);
    s->file_offset = (uint64_t)htell(bgzf->fp);         /* of compressed bytes, if it is gzip */
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
    free(of(source)->carried);
    free(of(source));
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
