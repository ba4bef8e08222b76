/*
 * sam_chunk.h -- parses a chunk of SAM, which consists of whole lines, into raw records.
 *
 * Order of calls: sam_text.c puts lines into the chunk; sam_chunk_parse; the caller takes the
 * records; the chunk can be filled again. A chunk starts as {0} and owns its buffers. Threads: any,
 * each chunk one at a time. Errors: no messages; the chunk describes a bad line.
 */
#ifndef ROCKSORT_INPUT_SAM_CHUNK_H
#define ROCKSORT_INPUT_SAM_CHUNK_H

#include <htslib/sam.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SAM_PROBLEM_BYTES = 200,
    SAM_LINE_START_BYTES = 44,  /* of a line, for messages */
};

struct sam_chunk {
    char *text;                 /* whole lines */
    size_t text_bytes, text_room;
    size_t gap_bytes;           /* set by the caller: room before the records */
    uint8_t *raw;               /* the gap and the raw records of these lines */
    size_t raw_bytes, raw_room;
    size_t n_records;           /* in raw */
    size_t n_dropped;           /* by the filter, of the lines before the one with the problem */
    const char *problem;        /* what is wrong with the next line; NULL: nothing */
    char problem_text[SAM_PROBLEM_BYTES];       /* problem may point here */
    char read_name[256];        /* of the line with the problem, or of a last line that is cut;
                                   empty: not known */
    char line_start[SAM_LINE_START_BYTES];      /* of the same line */
    uint64_t first_line;        /* number, from 1, of the file's first record line */
    bool is_cut;                /* the file ends within the last line */
    bool long_positions;        /* references may be longer than 2^31 - 1 */
    struct sam_filter *filter;  /* drops records; NULL: none */
};

/* A filter of htslib, for one thread at a time. */
struct sam_filter {
    struct hts_filter_t *filter;
    pthread_mutex_t lock;
};

/*
 * Parses the lines into chunk->raw, up to the first bad one. `record` is scratch space of the
 * caller. Overwrites the text, but does not change text_bytes.
 */
void sam_chunk_parse(struct sam_chunk *chunk, sam_hdr_t *header, bam1_t *record);

/* Free the text or the records if their buffer is larger than keep_bytes. */
void sam_chunk_shrink_text(struct sam_chunk *chunk, size_t keep_bytes);
void sam_chunk_shrink_raw(struct sam_chunk *chunk, size_t keep_bytes);
void sam_chunk_release(struct sam_chunk *chunk);

/*
 * Refuses or corrects values that htslib 1.16 would change without a message:
 *   - a FLAG above 65535 (htslib makes it 65535) or a MAPQ above 255 (255) is an error here;
 *   - an array element is an error here if it is not a number (htslib makes it a number), or if it
 *     is negative and the type of the array has no sign (htslib makes it 0);
 *   - U among the bases is replaced by T (htslib replaces it by N).
 * htslib 1.24 does the same, except that it changes the type of an array with a negative number.
 *
 * The line ends with a NUL. Returns NULL, or what is wrong with the line.
 */
const char *sam_line_correct(char *line);

#endif
