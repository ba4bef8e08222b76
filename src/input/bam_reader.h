/*
 * bam_reader.h -- input: whatever htslib opens, as a stream of raw BAM bytes.
 *
 * The stream comes in pieces, each of which continues where the previous one ended. What workers do
 * with a piece depends on the input:
 *   - BGZF-compressed BAM comes as whole compressed blocks whose uncompressed size is known, to be
 *     inflated right where the records are to lie; records may lie across pieces;
 *   - SAM comes as whole lines, to be parsed into a buffer of the piece;
 *   - everything else (CRAM, FASTQ, gzipped and plain BAM) is in place already: htslib decodes it,
 *     CRAM in the shared thread pool.
 *
 * Threads: bam_reader_* by one thread; bam_piece_inflate and sam_chunk_parse by any, each piece by
 * one.
 * Errors: -1 after a message that names the file.
 */
#ifndef ROCKSORT_INPUT_BAM_READER_H
#define ROCKSORT_INPUT_BAM_READER_H

#include "bam/bgzf_block.h"
#include "bam/input_position.h"
#include "input/sam_text.h"

#include <htslib/sam.h>
#include <htslib/thread_pool.h>

struct bam_reader;

struct bam_piece {              /* starts as {0} */
    uint8_t *compressed;        /* BGZF blocks to be inflated, owned by the piece */
    size_t compressed_bytes;    /* 0: the raw bytes are in place already */
    size_t compressed_room;
    size_t raw_bytes;
    uint64_t file_offset;       /* of the BGZF block that the raw bytes begin in */
    uint32_t block_offset;      /* ... where in it; 0 for compressed pieces */
    uint64_t end_offset;        /* BGZF virtual offset behind the piece; unknown of most sources */
    struct sam_chunk lines;     /* SAM only */
};

enum {
    BAM_READER_END = 0,
    BAM_READER_PIECE = 1,
    BAM_READER_ERROR = -1,
    BAM_READER_NO_ROOM = -2,    /* the next bytes need more room: bam_reader_room_needed */
};

/*
 * Opens `path` ("-": standard input), with htslib's options for the format, and reads its header.
 * Path and pool outlive the reader. Without a pool (NULL) htslib decodes in the calling thread.
 */
struct bam_reader *bam_reader_open(const char *path, const htsFormat *options,
                                   htsThreadPool *pool);

/* Returns 0 if the reference that options name for CRAM, if any, can be read, else -1 after a
   message. */
int bam_reader_check_reference(const htsFormat *options);

/* Before the first piece: has the records' read groups and programs renamed, those of the union's
   input of that number. The union outlives the reader. Returns 0, or -1 after a message. */
int bam_reader_rename(struct bam_reader *reader, const struct header_union *names, size_t input,
                      htsThreadPool *pool);

/* Owned by the reader; the caller may change it, for instance by adding @PG lines. */
sam_hdr_t *bam_reader_header(struct bam_reader *reader);

/* True if pieces are lines to be parsed; fixed from the start. */
bool bam_reader_is_text(const struct bam_reader *reader);

/* What the file is. Owned by the reader. */
const htsFormat *bam_reader_format(const struct bam_reader *reader);

/* How the input names itself in messages. */
const char *bam_reader_name(const struct bam_reader *reader);

/*
 * Fetches the next piece, of about piece_bytes and at most room, for the place `raw`. Returns one
 * of the codes above. The bytes are at `raw` then, or once bam_piece_inflate put them there. SAM
 * knows neither place nor room: its lines are parsed first.
 */
int bam_reader_next(struct bam_reader *reader, struct bam_piece *piece, uint8_t *raw,
                    size_t piece_bytes, size_t room);

/*
 * True if reading can begin at any record of a file: of BGZF-compressed BAM. bam_reader_seek,
 * before the first piece and after bam_reader_rename, has it begin at a BGZF virtual offset at
 * which a record begins; records are counted from n_records on. Returns 0, or -1 after a message.
 */
bool bam_reader_can_seek(const struct bam_reader *reader);
int bam_reader_seek(struct bam_reader *reader, uint64_t offset, uint64_t n_records);

/* How far the file has been read, in bytes of it; 0: unknown. */
uint64_t bam_reader_offset(const struct bam_reader *reader);

/* After an error: true if the system could not read the file, which then may be whole. */
bool bam_reader_io_failed(const struct bam_reader *reader);

/* Room without which bam_reader_next cannot go on. */
size_t bam_reader_room_needed(const struct bam_reader *reader);

/* Returns 0, or -1 without a message if a block is damaged. */
int bam_piece_inflate(struct bam_piece *piece, struct bgzf_coder *coder, uint8_t *raw);

/* The BGZF virtual offset of a raw byte of the piece, or of the end, INPUT_OFFSET_UNKNOWN unless
   the reader can seek. A piece whose records were read one by one knows only its end. */
uint64_t bam_piece_offset(const struct bam_piece *piece, size_t raw_at);
void bam_piece_release(struct bam_piece *piece);

/* NULL is accepted. */
void bam_reader_close(struct bam_reader *reader);

#endif
