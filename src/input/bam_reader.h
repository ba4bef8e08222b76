/*
 * bam_reader.h -- one input: whatever htslib opens, as a stream of raw BAM bytes in pieces.
 *
 * Order of calls:
 *
 *     reader = bam_reader_open(path, options, pool);
 *     bam_reader_rename, bam_reader_seek               if needed, in this order
 *     while (bam_reader_next(...) == BAM_READER_PIECE)
 *         workers inflate or parse the piece (bam_piece.h)
 *     bam_reader_close(reader);
 *
 * bam_reader.c opens the file and chooses the source that reads it (reader_source.h).
 *
 * Threads: bam_reader_* by one thread. Errors: -1 or NULL after a message that names the file.
 */
#ifndef ROCKSORT_INPUT_BAM_READER_H
#define ROCKSORT_INPUT_BAM_READER_H

#include "input/reader_source.h"

#include <htslib/thread_pool.h>

struct bam_reader;

/*
 * Opens `path` ("-": standard input), with htslib's options for the format, and reads its header.
 * Path and pool outlive the reader. Without a pool (NULL) htslib decodes in the calling thread.
 */
struct bam_reader *bam_reader_open(const char *path, const htsFormat *options,
                                   htsThreadPool *pool);

/* The same for a file that was open before. Its header is not checked again: the caller compares it
   with what it was. */
struct bam_reader *bam_reader_open_again(const char *path, const htsFormat *options,
                                         htsThreadPool *pool);

/* Returns 0 if the reference that options name for CRAM, if any, can be read, else -1 after a
   message. */
int bam_reader_check_reference(const htsFormat *options);

/* Before the first piece: has the records' read groups and programs renamed. The renames outlive
   the reader. */
int bam_reader_rename(struct bam_reader *reader, const struct id_renames *renames,
                      htsThreadPool *pool);

/*
 * True if reading can begin at any record of a file: of BGZF-compressed BAM. bam_reader_seek,
 * before the first piece, has it begin at a BGZF virtual offset at which a record begins; n_records
 * are before it.
 */
bool bam_reader_can_seek(const struct bam_reader *reader);
int bam_reader_seek(struct bam_reader *reader, uint64_t offset, uint64_t n_records);

/* Owned by the reader; the caller may change it, for instance by adding @PG lines. */
sam_hdr_t *bam_reader_header(struct bam_reader *reader);

/* True if pieces are lines to be parsed; fixed from the start. */
bool bam_reader_is_text(const struct bam_reader *reader);

/* What the file is. Owned by the reader. */
const htsFormat *bam_reader_format(const struct bam_reader *reader);

/* The name of the input in messages: its path, or a constant. */
const char *bam_reader_name(const struct bam_reader *reader);

/*
 * Fetches the next piece, of about piece_bytes and at most room, for the place `raw`. Returns one
 * of the codes of reader_source.h. The bytes are at `raw` then, or once bam_piece_inflate put them
 * there. For SAM place and room count nothing: the lines are parsed first.
 */
int bam_reader_next(struct bam_reader *reader, struct bam_piece *piece, uint8_t *raw,
                    size_t piece_bytes, size_t room);

/* Room without which bam_reader_next cannot go on. */
size_t bam_reader_room_needed(const struct bam_reader *reader);

/* How far the file has been read, in bytes of it; 0: unknown. */
uint64_t bam_reader_offset(const struct bam_reader *reader);

/* After an error: true if the system could not read the file, which then may be whole. */
bool bam_reader_io_failed(const struct bam_reader *reader);

/* NULL is accepted. */
void bam_reader_close(struct bam_reader *reader);

#endif
