/*
 * column_file.h -- what stands before and after the batches of a file of columns: a stream or file
 * of Arrow, or a Parquet file.
 *
 * Order of calls: begin; note, for the batches of each write; end. One thread at a time.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_FILE_H
#define ROCKSORT_COLUMNS_COLUMN_FILE_H

#include "columns/column_encoder.h"
#include "columns/column_notes.h"

struct column_file;

/* All must outlive the file. `name` is for messages. */
struct column_file *column_file_create(const struct column_output *output,
                                       const struct column_notes *notes, const char *name);

/* NULL is accepted. */
void column_file_destroy(struct column_file *file);

/* Appends what comes before the batches to `out`, which the caller writes and frees. */
void column_file_begin(struct column_file *file, sam_hdr_t *header, struct column_bytes *out);

/* Keeps the notes of batches (column_encoder_put) that are written to byte `position` of the file;
   changes them. Returns 0, or -1 after a message, also if the format cannot hold so many
   batches. */
int column_file_note(struct column_file *file, struct column_bytes *notes, uint64_t position);

/* Writes what comes after the batches of a complete file, from byte `position` on. Returns 0, or -1
   after a message; a sink prints that of its own failure. */
int column_file_end(struct column_file *file, sam_hdr_t *header, uint64_t position,
                    const struct column_sink *sink);

#endif
