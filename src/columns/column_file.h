/*
 * column_file.h -- writes columnar files: Arrow (stream or file) and Parquet. Encoders turn batches
 * of records into Arrow messages or Parquet row groups. A column_file writes what precedes and
 * follows the batches.
 *
 * Order of calls for an encoder: add records to its batch, then put, repeatedly. For a file: begin;
 * note, after each write of batches; end.
 *
 * Threads: one at a time for each encoder and each file. The arguments of create must outlive them.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_FILE_H
#define ROCKSORT_COLUMNS_COLUMN_FILE_H

#include "columns/column_batch.h"

/* Shared by all threads. It does not change while encoders are in use. */
struct column_output {
    const struct column_request *request;
    struct column_schema *schema;       /* NULL: not known yet */
};

/* ---- batches ---- */

struct column_encoder;

/* The header is that of the output. */
struct column_encoder *column_encoder_create(const struct column_output *output,
                                             sam_hdr_t *header);

/* NULL is accepted. */
void column_encoder_destroy(struct column_encoder *encoder);

/* The batch to which the caller adds records. The caller must call put long before the records
   reach 2 GiB, because offsets have 32 bits. */
struct column_batch *column_encoder_batch(struct column_encoder *encoder);

/*
 * Appends the encoded batch to `out`, and clears it. Appends its metadata for the footer to `notes`
 * (column_file_note), with places relative to byte `begin` of `out`. Does nothing without records.
 * Returns NULL, or a static text if the format cannot hold the batch.
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

/* Spools the metadata of batches that are written at byte `position` of the file, and makes their
   places absolute. Returns 0, or -1 after a message, also if the format cannot hold that many
   batches. */
int column_file_note(struct column_file *file, struct column_bytes *notes, uint64_t position);

/* Writes what comes after the batches, from byte `position` of the file on. Returns 0, or -1 after
   a message; if the sink fails, it prints the message. */
int column_file_end(struct column_file *file, sam_hdr_t *header, uint64_t position,
                    const struct column_sink *sink);

#endif
