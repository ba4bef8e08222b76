/*
 * bam_reader.h -- reads one input, in any format that htslib opens, as pieces of raw BAM.
 *
 * Order of calls: open; seek, if needed; next, until it returns no piece, while workers inflate or
 * parse the pieces (reader_source.h); close.
 *
 * Threads: one at a time. Errors: -1 or NULL after a message that names the file.
 */
#ifndef ROCKSORT_INPUT_BAM_READER_H
#define ROCKSORT_INPUT_BAM_READER_H

#include "input/reader_source.h"

#include <htslib/thread_pool.h>

/* Read-only for the caller, except the header, to which it may add @PG lines. */
struct bam_reader {
    struct reader_file file;
    struct reader_source *source;
};

/* Opens `path` ("-": standard input), with htslib's options for the format, and reads its header.
   Path and pool must outlive the reader. pool NULL: htslib decodes in the calling thread. */
struct bam_reader *bam_reader_open(const char *path, const htsFormat *options,
                                   htsThreadPool *pool);

/* The same for a file that was open before. Does not check the header: the caller must compare it
   with the earlier one. is_quiet: does not repeat warnings. */
struct bam_reader *bam_reader_open_again(const char *path, const htsFormat *options,
                                         htsThreadPool *pool, bool is_quiet);

/* If the options name a reference for CRAM, checks that it is readable FASTA that htslib can use.
   Returns 0, or -1 after a message. */
int bam_reader_check_reference(const htsFormat *options);

/* True if reading can begin at any record, as in a BGZF-compressed BAM file. */
bool bam_reader_can_seek(const struct bam_reader *reader);

/* To be called before the first piece: makes reading begin at `offset`, a BGZF virtual offset at
   which a record begins. n_records records come before it. */
int bam_reader_seek(struct bam_reader *reader, uint64_t offset, uint64_t n_records);

/* Frees the header and sets it to NULL, unless the reader needs it. With many references it may
   take more memory than the records. */
void bam_reader_drop_header(struct bam_reader *reader);

/* Fetches the next piece, of about span_bytes and at most `room`. Returns one of the codes of
   reader_source.h. The raw bytes are at `raw` on return, or bam_piece_inflate puts them there.
   `raw` and `room` are not used for SAM. */
int bam_reader_next(struct bam_reader *reader, struct bam_piece *piece, uint8_t *raw,
                    size_t span_bytes, size_t room);

/* The minimum of `room` that bam_reader_next needs now. */
size_t bam_reader_room_needed(const struct bam_reader *reader);

/* How many bytes of the file have been read; 0: unknown. */
uint64_t bam_reader_offset(const struct bam_reader *reader);

/* At the end of the input: true, after a warning, if it may be truncated: it has no EOF marker, or
   SAM without a final newline. */
bool bam_reader_is_cut(const struct bam_reader *reader);

/* NULL is accepted. */
void bam_reader_close(struct bam_reader *reader);

#endif
