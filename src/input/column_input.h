/*
 * column_input.h -- records of columns, as rocksort writes them: Arrow (columns/arrow_reader.h) and
 * Parquet (columns/parquet_reader.h).
 *
 * Threads: one at a time. Errors: after a message that names the file.
 */
#ifndef ROCKSORT_INPUT_COLUMN_INPUT_H
#define ROCKSORT_INPUT_COLUMN_INPUT_H

#include <htslib/hfile.h>
#include <htslib/sam.h>
#include <stddef.h>
#include <stdint.h>

struct column_input;

/* Returns 1 if the file begins as Arrow or Parquet does, 0 if not, -1 with errno set if it cannot
   be read. What was looked at stays to be read. */
int column_input_knows(hFILE *file);

/* Reads what must be known before the records. Parquet must be a file in which any place can be
   read. Takes over the file, in any case; `name` is for messages and must outlive the input. NULL
   after a message. */
struct column_input *column_input_open(hFILE *file, const char *name);

/* NULL is accepted. */
void column_input_close(struct column_input *input);

/* Makes the header; the caller owns it. NULL after a message. */
sam_hdr_t *column_input_make_header(struct column_input *input);

/* Puts the next record in raw form into a growing buffer. Returns 1, 0 at the end, or -1 after a
   message. */
int column_input_next(struct column_input *input, uint8_t **raw, size_t *room);

#endif
