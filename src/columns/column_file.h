/*
 * column_file.h -- what stands before and after the batches of an Arrow stream or file.
 *
 * Order of calls: begin; note, for the batches of each write; end. One thread at a time. The caller
 * writes the bytes, and frees them.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_FILE_H
#define ROCKSORT_COLUMNS_COLUMN_FILE_H

#include "columns/column_encoder.h"

struct column_file;

/* is_stream: it is read from its begin to its end, as from a pipe, and has no table of its
   batches. */
struct column_file *column_file_create(const struct column_output *output, bool is_stream);

/* NULL is accepted. */
void column_file_destroy(struct column_file *file);

/* Appends what comes before the batches. */
void column_file_begin(struct column_file *file, sam_hdr_t *header, struct column_bytes *out);

/* Notes where n batches are. Their places are counted from `position` in the file. */
void column_file_note(struct column_file *file, const struct arrow_place *batches, size_t n,
                      uint64_t position);

/* Appends what comes after the batches of a complete file. */
void column_file_end(struct column_file *file, sam_hdr_t *header, struct column_bytes *out);

#endif
