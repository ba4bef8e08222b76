/*
 * column_file.h -- files of columns: Arrow, as a stream or a file, and Parquet. Encoders make
 * batches of records: messages of Arrow or row groups of Parquet. A column_file writes what stands
 * before and after the batches.
 *
 * Order of calls for an encoder: add records to its batch, then put, repeatedly. For a file: begin;
 * note, for the batches of each write; end.
 *
 * Threads: one at a time an encoder or a file. Both borrow what they are created with.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_FILE_H
#define ROCKSORT_COLUMNS_COLUMN_FILE_H

#include "columns/column_batch.h"

/* What all threads share. It does not change while encoders are in use. */
struct column_output {
    const struct column_request *request;
    struct column_schema *schema;       /* NULL: not known yet */
};

/* ---- batches ---- */

struct column_encoder;

/* header: of the output. */
struct column_encoder *column_encoder_create(const struct column_output *output,
                                             sam_hdr_t *header);

/* NULL is accepted. */
void column_encoder_destroy(struct column_encoder *encoder);

/* The batch, to which the caller adds records. It puts a batch long before its records have 2 GiB:
   offsets have 32 bits. */
struct column_batch *column_encoder_batch(struct column_encoder *encoder);

/*
 * Appends the batch to `out`, and clears it. Appends to `notes` what the end of the file says of it
 * (column_file_note), counted from byte `begin` of `out`. Does nothing without records. Returns
 * NULL, or a static text if the format cannot hold the batch.
 */
const char *column_encoder_put(struct column_encoder *encoder, size_t begin,
                               struct column_bytes *out, struct column_bytes *notes);

/* ---- files ---- */

struct column_file;

/* `name` is for messages. */
struct column_file *column_file_create(const struct column_output *output,
                                       const struct footer_spool *notes, const char *name);

/* NULL is accepted. */
void column_file_destroy(struct column_file *file);

/* Appends what comes before the batches to `out`, which the caller writes and frees. */
void column_file_begin(struct column_file *file, sam_hdr_t *header, struct column_bytes *out);

/* Keeps the notes of batches that are written to byte `position` of the file; changes them. Returns
   0, or -1 after a message, also if the format cannot hold that many batches. */
int column_file_note(struct column_file *file, struct column_bytes *notes, uint64_t position);

/* Writes what comes after the batches of a complete file, from byte `position` on. Returns 0, or -1
   after a message; a sink prints that of its own failure. */
int column_file_end(struct column_file *file, sam_hdr_t *header, uint64_t position,
                    const struct column_sink *sink);

#endif
