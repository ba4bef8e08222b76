/*
 * reader_source.h -- the interface that bam_reader.c has to its sources. Each source reads one kind
 * of input:
 *
 *     bgzf_source.h    BAM, whole blocks of BGZF; also gzipped and uncompressed BAM
 *     sam_text.h       SAM, whole lines
 *     record_source.h  input that is read record by record: CRAM, FASTQ, filtered input
 *
 * The struct of each source begins with a struct reader_source. The reader opens the file, reads
 * its header, opens a source and calls the functions of the source's kind; the function close frees
 * the source. Threads: only the reader's.
 */
#ifndef ROCKSORT_INPUT_READER_SOURCE_H
#define ROCKSORT_INPUT_READER_SOURCE_H

#include "input/bam_piece.h"

enum {                          /* what fetching a piece returns */
    BAM_READER_END = 0,
    BAM_READER_PIECE = 1,
    BAM_READER_ERROR = -1,      /* after a message */
    BAM_READER_NO_ROOM = -2,    /* the next bytes need more room: bam_reader_room_needed */
};

/* The file that a source reads. The reader owns all of it. */
struct reader_file {
    const char *name;           /* in messages */
    samFile *hts;               /* its header has been read */
    sam_hdr_t *header;
    bool long_positions;        /* some reference is longer than 2^31 - 1 */
    bool is_cut;                /* it ends within its header, or has no EOF marker */
    bool is_quiet;              /* the user was warned when it was read before */
    bool end_is_unseen;         /* BAM from a pipe: nobody has looked for the EOF marker yet */
};

struct reader_source {
    const struct source_kind *kind;
    const struct reader_file *file;
    bool failed;                /* an error was printed; after the current piece no other comes */
    bool is_cut;                /* the file ends within its last line, or has no EOF marker */
    bool io_failed;             /* the system could not read the file */
};

struct source_kind {
    bool is_text;               /* pieces are lines of SAM, which workers parse */
    bool needs_header;          /* to read records, after it was opened */

    /* Like bam_reader_next, for a piece that is empty. */
    int (*next)(struct reader_source *source, struct bam_piece *piece, uint8_t *raw,
                size_t piece_bytes, size_t room);

    /* Like bam_reader_seek, without a message. NULL: the source cannot seek. */
    int (*seek)(struct reader_source *source, uint64_t offset, uint64_t n_records);

    /* Like bam_reader_offset. NULL: the offset is never known. */
    uint64_t (*offset)(const struct reader_source *source);

    /* Like bam_reader_room_needed. NULL: always BGZF_MAX_BYTES. */
    size_t (*room_needed)(const struct reader_source *source);

    void (*close)(struct reader_source *source);
};

#endif
