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

enum reader_open {
    READER_FIRST,               /* checks the header, and warns */
    READER_AGAIN,               /* does not check the header: the caller must compare it */
    READER_AGAIN_QUIETLY,       /* the same, without warnings */
};

/* Opens `path` ("-": standard input), with htslib's options for the format, and reads its header.
   Path and pool must outlive the reader. pool NULL: htslib decodes in the calling thread. */
struct bam_reader *bam_reader_open(const char *path, const htsFormat *options,
                                   htsThreadPool *pool, enum reader_open how);

/* If the options name a reference for CRAM, checks that it is readable FASTA that htslib can use.
   Returns 0, or -1 after a message. */
int bam_reader_check_reference(const htsFormat *options);

/* Before the first piece, if reader->can_seek: makes reading begin at `offset`, a BGZF virtual
   offset at which a record begins. */
int bam_reader_seek(struct bam_reader *reader, uint64_t offset);

/* Frees the header and sets it to NULL, unless the reader needs it. With many references it may
   take more memory than the records. */
void bam_reader_drop_header(struct bam_reader *reader);

/* Accepts NULL. */
void bam_reader_close(struct bam_reader *reader);

#endif
