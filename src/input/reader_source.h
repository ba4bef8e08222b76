/*
 * reader_source.h -- the reader of one input, the spans that it fills, and the functions that fetch
 * the next piece of each kind of input. bam_reader.c opens a file and chooses the function;
 * span_reader.c calls it.
 *
 * Threads: one reads; a span is used by any thread, one at a time.
 */
#ifndef ROCKSORT_INPUT_READER_SOURCE_H
#define ROCKSORT_INPUT_READER_SOURCE_H

#include "bam/bam_check.h"
#include "bam/bgzf_block.h"
#include "bam/input_position.h"
#include "fixmate/template_cut.h"

#include <htslib/sam.h>
#include <pthread.h>

/* ---- spans ---- */

enum {
    GAP_BYTES = 4096,           /* before the raw bytes of a piece: room for the tail */
    SAM_PROBLEM_BYTES = 200,
    SAM_LINE_START_BYTES = 44,  /* of a line, for messages */
};

struct sam_lines {              /* of a piece of SAM */
    uint64_t first_line;        /* number, from 1, of the file's first record line */
    bool is_cut;                /* the file ends within the last line */
    /* results of sam_chunk_parse */
    size_t n_dropped;           /* by the filter, of the lines before the one with the problem */
    const char *problem;        /* what is wrong with the line after the records; NULL: nothing */
    char problem_text[SAM_PROBLEM_BYTES];       /* problem may point here */
    char read_name[256];        /* of the line with the problem, or of a last line that is cut;
                                   empty: not known */
    char line_start[SAM_LINE_START_BYTES];      /* of the same line */
};

/*
 * A piece of an input, and the whole records in it. A piece is read in one of three forms:
 *   - whole BGZF blocks, which a worker inflates;
 *   - whole lines of SAM, which a worker parses (sam_chunk_parse);
 *   - raw bytes that are in place already.
 * The raw bytes of a piece continue those of the piece before it. A record may begin in one piece
 * and end in the next, except in SAM, and where the records were read one by one.
 */
struct record_span {            /* starts as {0} */
    uint8_t *from;              /* records, one after another */
    const uint8_t *to;
    size_t n_records;           /* may be 0 */
    uint64_t first_record;      /* number of the first one in the input, from 0 */
    uint64_t n_dropped;         /* lines that a filter dropped so far, with this span */
    size_t n_continuing;        /* its first records: they continue a large template */
    size_t n_continued;         /* its last records: the next span may continue their template */
    /* the piece */
    uint8_t *packed;            /* BGZF blocks, or lines */
    size_t packed_bytes, packed_room;   /* no bytes: the raw bytes are in place already */
    uint8_t *memory;            /* a gap, and the raw bytes */
    size_t memory_bytes, raw_bytes;
    uint64_t file_offset;       /* of the BGZF block in which the raw bytes begin */
    uint32_t block_offset;      /* where in that block they begin; 0 if they are packed */
    uint64_t end_offset;        /* BGZF virtual offset of the piece's end; often unknown */
    bool is_text;
    struct sam_lines lines;     /* SAM only */
    /* set by cutting */
    const uint8_t *raw;         /* where the bytes of the piece begin; NULL for SAM */
    size_t joint_at;            /* offset in the piece where the whole records of the tail end; it
                                   may be negative (modulo 2^64) */
    uint64_t joint_offset, to_offset;   /* virtual offsets of this place and of `to` */
    struct speculative_scan guess;
    size_t *raw_places;         /* of records whose IDs changed: offsets in the piece; NULL: none */
    bool is_damaged;            /* the next record has an impossible size */
    size_t claimed_bytes;       /* this size */
};

/* ---- readers ---- */

enum {                          /* what fetching a piece returns */
    BAM_READER_END = 0,
    BAM_READER_PIECE = 1,
    BAM_READER_ERROR = -1,      /* after a message */
};

/* Read-only for callers of bam_reader.h, except the header, to which they may add @PG lines. */
struct bam_reader {
    /* fixed after opening */
    const char *name;           /* of the input in messages */
    samFile *hts;
    sam_hdr_t *header;
    int (*next)(struct bam_reader *reader, struct record_span *span);
    bool is_text;               /* pieces are lines of SAM, which workers parse */
    bool can_seek;              /* reading can begin at any record: BGZF-compressed BAM */
    bool long_positions;        /* some reference is longer than 2^31 - 1 */
    bool is_quiet;              /* the user was warned when the file was read before */
    bool header_is_cut;         /* SAM that ends within its header */
    bool end_is_unseen;         /* BAM from a pipe: the EOF marker was not checked yet */
    uint64_t first_line;        /* SAM: number of the first line after the header, from 1 */
    pthread_mutex_t filter_lock;        /* htslib's filter serves one thread at a time */
    /* by span_reader_begin */
    size_t span_bytes;          /* about the uncompressed size of pieces */
    size_t most_template_bytes; /* 0: spans may end within a template */
    /* by the thread that reads */
    bool is_cut;                /* the file is probably truncated: it has no EOF marker, or ends
                                   within its last line */
    bool failed;                /* an error was printed: the current piece is the last one */
    bool io_failed;             /* the system could not read the file */
    bool has_ended;             /* htslib must not be called again */
    uint64_t file_offset;       /* bytes of the file before the next piece; 0: not known */
    uint8_t *ahead;             /* what was read after the current piece: BGZF, or part of a line */
    size_t n_ahead, ahead_room;
    bool last_block_empty, read_failed; /* BGZF: reading failed after the bytes in `ahead` */
    int read_errno;
    bam1_t *record;             /* as htslib decodes it; NULL if it does not */
    uint64_t n_decoded;         /* records that htslib has decoded */
    int64_t inflated_bytes;     /* of FASTQ or FASTA, before the last record */
    /* by the thread that cuts */
    uint64_t n_records;         /* in all spans so far */
    uint64_t n_dropped;         /* lines that a filter dropped so far */
    uint64_t end_offset;        /* where the last whole record ends */
    bool is_ended;              /* after a bad record: the rest is not used */
    uint8_t *tail;              /* whole records of one template, and the beginning of the next
                                   record */
    size_t tail_bytes, tail_room;
    struct last_template kept;  /* the whole records: they end at `at` in the tail */
    uint8_t *open;              /* a record with nothing but the name of a large template that may
                                   continue; NULL: none */
};

/*
 * Fetch the next piece, of about reader->span_bytes, for an unused span. Its memory has room for a
 * gap and these bytes, or one BGZF block. Return one of the codes above.
 */

/* BGZF-compressed BAM: pieces are whole blocks. */
int bgzf_source_next(struct bam_reader *reader, struct record_span *span);

/* Gzipped or uncompressed BAM: htslib inflates in the calling thread. */
int plain_source_next(struct bam_reader *reader, struct record_span *span);

/* Formats that htslib decodes, and BAM that it filters: pieces are whole records. */
int record_source_next(struct bam_reader *reader, struct record_span *span);

/*
 * SAM: half of the bytes in whole lines, or one longer line (sam_text.c). htslib's threaded SAM
 * reader is not used, because it parses up to 1,000 lines in a job, so long reads exceed any memory
 * budget; it reports an error before it returns the last valid records; and in htslib 1.16 it may
 * hang after an error.
 */
int sam_text_next(struct bam_reader *reader, struct record_span *span);

/*
 * Reads the header of SAM, which may have no lines, and lets htslib parse it. *is_cut: the file
 * ends within it. Returns NULL after a message that names the line, if known. (htslib would also
 * read the first line after the header, and hide whether it ends with a newline.)
 */
sam_hdr_t *sam_text_read_header(samFile *file, const char *name, bool *is_cut);

/*
 * Parses the lines of a span into records, up to the first bad line. `record` is scratch space of
 * the caller. Overwrites the lines, but does not change their size.
 */
void sam_chunk_parse(struct bam_reader *reader, struct record_span *span, bam1_t *record);

/*
 * Refuses or corrects values that htslib 1.16 would change without a message:
 *   - a FLAG above 65535 (htslib makes it 65535) or a MAPQ above 255 (255) is an error here;
 *   - an array element is an error here if it is not a number (htslib makes it a number), or if it
 *     is negative and the type of the array has no sign (htslib makes it 0);
 *   - U among the bases is replaced with T (htslib replaces it with N).
 * htslib 1.24 does the same, except that it changes the type of an array with a negative number.
 *
 * The line ends with a NUL. Returns NULL, or what is wrong with the line.
 */
const char *sam_line_correct(char *line);

/* True if BGZF reported an error. Call it at the end of the file: with threads htslib may return
   "end of file" for a damaged block. */
bool record_source_bgzf_failed(const samFile *file);

#endif
