/*
 * bam_reader.h -- opens one input, in any format that htslib opens.
 *
 * Order of calls: open; seek, if needed; the functions of span_reader.h; close.
 *
 * Threads: one at a time. Errors: -1 or NULL after a message that names the file.
 */
#ifndef ROCKSORT_INPUT_BAM_READER_H
#define ROCKSORT_INPUT_BAM_READER_H

#include "input/reader_source.h"

#include <htslib/thread_pool.h>

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

/* To be called before the first piece, if reader->can_seek: makes reading begin at `offset`, a BGZF
   virtual offset at which a record begins. */
int bam_reader_seek(struct bam_reader *reader, uint64_t offset);

/* Frees the header and sets it to NULL, unless the reader needs it. With many references it may
   take more memory than the records. */
void bam_reader_drop_header(struct bam_reader *reader);

/* At the end of the input: true, after a warning, if it may be truncated: it has no EOF marker, or
   SAM without a final newline. */
bool bam_reader_is_cut(const struct bam_reader *reader);

/* NULL is accepted. */
void bam_reader_close(struct bam_reader *reader);

#endif
