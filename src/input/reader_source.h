/*
 * reader_source.h -- pieces of an input, and the sources that read them: one for each kind of
 * input. bam_reader.c opens the file, reads its header, opens a source and calls the functions of
 * its kind; close frees the source. The struct of each source begins with a struct reader_source.
 *
 * Threads: a source is used by the thread of its reader; a piece by any thread, one at a time.
 */
#ifndef ROCKSORT_INPUT_READER_SOURCE_H
#define ROCKSORT_INPUT_READER_SOURCE_H

#include "bam/bgzf_block.h"
#include "bam/input_position.h"
#include "input/sam_chunk.h"

/* ---- pieces ---- */

/*
 * A piece of an input, for a worker to inflate or parse. Starts as {0} and has one of three forms:
 *   - whole BGZF blocks, which a worker inflates directly to the place where the records stay;
 *   - whole lines of SAM, which a worker parses into a buffer of the piece (sam_chunk.h);
 *   - raw bytes that are in place already.
 * The raw bytes of a piece continue those of the piece before it. A record may begin in one piece
 * and end in the next, except in SAM, and where the records were read one by one.
 */
struct bam_piece {
    uint8_t *compressed;        /* BGZF blocks, owned by the piece */
    size_t compressed_bytes;    /* 0: the raw bytes are in place already */
    size_t compressed_room;
    size_t raw_bytes;
    uint64_t file_offset;       /* of the BGZF block in which the raw bytes begin */
    uint32_t block_offset;      /* where in that block they begin; 0 for compressed pieces */
    uint64_t end_offset;        /* BGZF virtual offset of the piece's end; often unknown */
    struct sam_chunk lines;     /* SAM only */
};

/* Inflates the blocks to `raw`. Returns 0, or -1 without a message if a block is damaged. */
int bam_piece_inflate(const struct bam_piece *piece, struct bgzf_coder *coder, uint8_t *raw);

/* The BGZF virtual offset of a raw byte of the piece, or of its end (raw_at is raw_bytes).
   INPUT_OFFSET_UNKNOWN unless the reader can seek. */
uint64_t bam_piece_offset(const struct bam_piece *piece, size_t raw_at);

void bam_piece_release(struct bam_piece *piece);

/* ---- sources ---- */

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
    bool end_is_unseen;         /* BAM from a pipe: the EOF marker was not checked yet */
};

struct reader_source {
    const struct source_kind *kind;
    const struct reader_file *file;
    bool failed;                /* an error was printed: the current piece is the last one */
    bool is_cut;                /* the file ends within its last line, or has no EOF marker */
    bool io_failed;             /* the system could not read the file */
};

struct source_kind {
    bool is_text;               /* pieces are lines of SAM, which workers parse */
    bool needs_header;          /* to read records, after opening */

    /* Like bam_reader_next, for a piece that is empty. */
    int (*next)(struct reader_source *source, struct bam_piece *piece, uint8_t *raw,
                size_t span_bytes, size_t room);

    /* Like bam_reader_seek, without a message. NULL: the source cannot seek. */
    int (*seek)(struct reader_source *source, uint64_t offset, uint64_t n_records);

    /* Like bam_reader_offset. NULL: the offset is never known. */
    uint64_t (*offset)(const struct reader_source *source);

    /* Like bam_reader_room_needed. NULL: always BGZF_MAX_BYTES. */
    size_t (*room_needed)(const struct reader_source *source);

    void (*close)(struct reader_source *source);
};

/* BGZF-compressed BAM: pieces are whole blocks. */
struct reader_source *bgzf_source_open(const struct reader_file *file);

/* Gzipped or uncompressed BAM: htslib inflates in the calling thread. */
struct reader_source *bgzf_source_open_plain(const struct reader_file *file);

/* SAM: pieces are whole lines (sam_text.c). */
struct reader_source *sam_text_open_source(const struct reader_file *file);

/* Formats that htslib decodes, and BAM that it filters: pieces are whole records. Each record is
   copied once more than by other sources, in the reader's thread. */
struct reader_source *record_source_open(const struct reader_file *file);

/* True if BGZF reported an error. To be called at the end of the file: with threads htslib may
   return "end of file" for a damaged block. */
bool record_source_bgzf_failed(const samFile *file);

/* ---- SAM ---- */

/*
 * Cuts SAM into chunks of whole lines for workers to parse. htslib's threaded SAM reader is not
 * used, because it parses up to 1,000 lines in a job, so long reads exceed any memory budget; it
 * reports an error before it returns the last valid records; and in htslib 1.16 it may hang after
 * an error. Order of calls: read_header, open, next until it returns 0, release.
 */
struct sam_text {
    samFile *file;
    char *tail;                 /* the beginning of an incomplete line */
    size_t tail_bytes, tail_room;
    uint64_t first_line;        /* number of the first line after the header, from 1 */
    bool ended;
};

/*
 * Reads the header, which may have no lines, and lets htslib parse it. *is_cut: the file ends
 * within it. Returns NULL after a message that names the line, if known. (htslib would also read
 * the first line after the header, and hide whether it ends with a newline.)
 */
sam_hdr_t *sam_text_read_header(samFile *file, const char *name, bool *is_cut);

/* Prepares to read the lines after the header. */
void sam_text_open(struct sam_text *text, samFile *file);

/* Fetches about chunk_bytes of lines, or one longer line. Returns 1, 0 at the end, or -1 with errno
   set if the file cannot be read; EBADMSG: it is damaged. */
int sam_text_next(struct sam_text *text, struct sam_chunk *chunk, size_t chunk_bytes);

/* A struct of zeros is accepted. */
void sam_text_release(struct sam_text *text);

#endif
