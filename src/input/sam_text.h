/*
 * sam_text.h -- SAM, cut into chunks of whole lines by the reader, for workers to parse.
 *
 * htslib's own threaded SAM reader is not used. It parses up to 1,000 lines a job whatever their
 * length, so long reads exceed any memory budget; it reports an error before it returns the last
 * sound records; in htslib 1.16 it may wait forever after an error.
 *
 * Order of calls: sam_text_read_header, sam_text_open, sam_text_next until it returns 0,
 * sam_text_release. Meanwhile any thread may call sam_chunk_parse with a chunk.
 */
#ifndef ROCKSORT_INPUT_SAM_TEXT_H
#define ROCKSORT_INPUT_SAM_TEXT_H

#include "input/reader_source.h"

struct sam_text {
    samFile *file;
    char *tail;                 /* the beginning of a line whose end was not read yet */
    size_t tail_bytes, tail_room;
    uint64_t first_line;        /* number of the first line after the header, from 1 */
    bool ended;
};

/*
 * Reads the header, which may have no lines, and lets htslib parse it. *is_cut: the file ends
 * within it. Returns NULL after a message that names the line, if it is known. htslib would read
 * the first line after the header, too, and hide whether it has a newline.
 */
sam_hdr_t *sam_text_read_header(samFile *file, const char *name, bool *is_cut);

/* Prepares to read the lines after the header. */
void sam_text_open(struct sam_text *text, samFile *file);

/* Fetches about chunk_bytes of lines, or one line if it is longer. Returns 1, or 0 at the end, or
   -1 with errno set if the file cannot be read; EBADMSG means that it is damaged. */
int sam_text_next(struct sam_text *text, struct sam_chunk *chunk, size_t chunk_bytes);

/* An empty text is accepted. */
void sam_text_release(struct sam_text *text);

#endif
