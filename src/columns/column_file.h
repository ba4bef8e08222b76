/*
 * column_file.h -- writes columnar files: Arrow (stream or file) and Parquet. Encoders turn batches
 * of records into Arrow messages or Parquet row groups. A column_file writes what precedes and
 * follows the batches.
 *
 * Order of calls for an encoder: add records to its batch, then put, repeatedly. For a file: begin;
 * add, for the metadata of all batches; end. Metadata are spooled until the footer is written: in
 * memory, and beyond memory_bytes on a tape (tape.h). 1.5 billion reads in 512 MiB of memory become
 * 54,000 row groups, whose metadata take about 200 MB.
 *
 * Threads: one at a time for each encoder and each file. The arguments of create must outlive them.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_FILE_H
#define ROCKSORT_COLUMNS_COLUMN_FILE_H

#include "columns/column_batch.h"
#include "columns/column_sink.h"

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

/* Accepts NULL. */
void column_encoder_destroy(struct column_encoder *encoder);

/* The batch to which the caller adds records. The caller must call put long before the records
   reach 2 GiB, because offsets have 32 bits. */
struct column_batch *column_encoder_batch(struct column_encoder *encoder);

/*
 * Appends the encoded batch to `out`, and clears it. Appends its metadata (column_file_add) to
 * `metadata`, with offsets from byte `begin` of `out`. Does nothing without records. Returns NULL,
 * or a static text if the format cannot hold the batch.
 */
const char *column_encoder_put(struct column_encoder *encoder, size_t begin,
                               struct byte_buffer *out, struct byte_buffer *metadata);

/* ---- files ---- */

struct column_file;

/* `name` is for messages. memory_bytes: of the spool; `places`: where the rest of it goes. */
struct column_file *column_file_create(const struct column_output *output, size_t memory_bytes,
                                       const struct temp_places *places, const char *name);

/* Accepts NULL. */
void column_file_destroy(struct column_file *file);

/* Appends what comes before the batches to `out`, which the caller writes and frees. */
void column_file_begin(struct column_file *file, sam_hdr_t *header, struct byte_buffer *out);

/* Adds batches whose metadata count from byte `position` of the file. Returns 0, or -1 after a
   message, also if the format cannot hold that many batches. */
int column_file_add(struct column_file *file, const struct byte_buffer *metadata,
                    uint64_t position);

/* Writes what comes after the batches, from byte `position` of the file on. Returns 0, or -1 after
   a message; if the sink fails, it prints the message. */
int column_file_end(struct column_file *file, sam_hdr_t *header, uint64_t position,
                    const struct column_sink *sink);

#endif
