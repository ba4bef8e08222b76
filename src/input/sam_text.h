/*
 * sam_text.h -- SAM input: text cut into chunks of whole lines by the reader, parsed by workers.
 *
 * htslib's own threaded SAM reader is not used: it parses up to 1,000 lines a job whatever their
 * length, so that long reads overrun any budget; it reports an error before the records in front of
 * it; and in htslib 1.16 it may wait forever after an error.
 *
 * Order of calls: sam_text_open after the header was read, sam_text_next until it returns 0;
 * meanwhile any thread may sam_chunk_parse a chunk. Ownership: a chunk owns its buffers and starts
 * as {0}.
 */
#ifndef ROCKSORT_INPUT_SAM_TEXT_H
#define ROCKSORT_INPUT_SAM_TEXT_H

#include "input/header_union.h"

#include <htslib/sam.h>
#include <stdbool.h>
#include <stdint.h>

/* The problem of a chunk for whose records there is no memory: this very pointer. */
extern const char sam_chunk_no_memory[];

struct sam_chunk {
    char *text;                 /* whole lines */
    size_t text_bytes, text_room;
    uint8_t *raw;               /* what they say, as raw records */
    size_t raw_bytes, raw_room;
    size_t n_records;           /* in raw */
    const char *problem;        /* what is wrong with the line behind these; NULL: nothing */
    char problem_name[256];     /* the read's name, if it has got that far, or empty */
    bool long_positions;                /* references may be longer than 2^31 - 1 */
    const struct header_union *renames; /* of read groups and programs, or NULL */
    size_t input;                       /* ... which is this one of the united */
};

struct sam_text {
    samFile *file;
    char *tail;                 /* beginning of a line whose end was not read yet */
    size_t tail_bytes, tail_room;
    bool ended;
};

/* Prepares to read the lines behind the header, which htslib has just read from the file. Returns
   0, or -1 with errno: EBADMSG if htslib cannot take the header apart, ENOMEM. */
int sam_text_open(struct sam_text *text, samFile *file, sam_hdr_t *header);

/*
 * Fetches about chunk_bytes of lines, or one line if it is longer. Returns 1, 0 at the end, -1 with
 * errno set if reading or memory fails.
 */
int sam_text_next(struct sam_text *text, struct sam_chunk *chunk, size_t chunk_bytes);
void sam_text_release(struct sam_text *text);

/*
 * Parses the lines into chunk->raw, up to the first that is wrong. `record` is scratch space of the
 * caller. Destroys the text but not its size.
 */
void sam_chunk_parse(struct sam_chunk *chunk, sam_hdr_t *header, bam1_t *record);

/* Free the text or the records if their buffer is larger than keep_bytes. */
void sam_chunk_shrink_text(struct sam_chunk *chunk, size_t keep_bytes);
void sam_chunk_shrink_raw(struct sam_chunk *chunk, size_t keep_bytes);
void sam_chunk_release(struct sam_chunk *chunk);

#endif
