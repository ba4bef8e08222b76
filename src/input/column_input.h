/*
 * column_input.h -- columns, as rocksort writes them, as input: Arrow (columns/arrow_reader.h) and
 * Parquet (columns/parquet_reader.h).
 *
 * Threads: one at a time. Errors: after a message that names the file.
 */
#ifndef ROCKSORT_INPUT_COLUMN_INPUT_H
#define ROCKSORT_INPUT_COLUMN_INPUT_H

#include "input/reader_source.h"

#include <htslib/hfile.h>
#include <htslib/sam.h>
#include <stdbool.h>
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

/* False if the file has lost the metadata of its schema. */
bool column_input_has_header(const struct column_input *input);

/* No warnings are printed: they were, when the file was read before. Call it before the next
   ones. */
void column_input_be_quiet(struct column_input *input);

/* Makes the header, of the lent text if the file has none; the caller owns it. Warns of columns
   that are left out. NULL after a message. */
sam_hdr_t *column_input_make_header(struct column_input *input, const char *lent_text);

/* "Arrow" or "Parquet". */
const char *column_input_format(const struct column_input *input);

/* Before the first piece: how much memory what is read should take, about. A batch of Arrow, and a
   page of each column and the footer of Parquet, must be in memory in any case: if they take more
   than most_bytes, the user is warned, once. */
void column_input_limit(struct column_input *input, size_t memory_bytes, size_t most_bytes);

/* Bytes of memory that what was read takes now, besides records that were made of it. */
size_t column_input_memory(const struct column_input *input);

/* True if the next piece begins another batch, which will be read then. */
bool column_input_begins_batch(const struct column_input *input);

/* A source of reader_source.h, for the columns of the file. Pieces are rows (sam_chunk.h), of which
   workers make records. NULL after a message. */
struct reader_source *column_input_open_source(const struct reader_file *file);

#endif
