/*
 * column_encoder.h -- what one thread needs to make batches of columns: records go in, messages of
 * Arrow or row groups of Parquet come out.
 *
 * One thread at a time uses an encoder. It borrows the output that it was created for, and the
 * header.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_ENCODER_H
#define ROCKSORT_COLUMNS_COLUMN_ENCODER_H

#include "columns/column_bytes.h"
#include "columns/column_request.h"

#include <htslib/sam.h>

/* What all threads share. It does not change while encoders are in use. */
struct column_output {
    const struct column_request *request;
    struct column_schema *schema;       /* NULL: not known yet */
};

struct column_encoder;

/* header: of the output. */
struct column_encoder *column_encoder_create(const struct column_output *output,
                                             sam_hdr_t *header);

/* NULL is accepted. */
void column_encoder_destroy(struct column_encoder *encoder);

/* As column_batch_expect. */
void column_encoder_expect(struct column_encoder *encoder, size_t n_rows, size_t n_bytes);

/* Adds a checked record. Returns NULL, or what is wrong with it (column_batch.h). */
const char *column_encoder_add(struct column_encoder *encoder, const uint8_t *rec);

/* Bytes of the records of the batch, and of their values before they are encoded. The caller puts a
   batch long before its records have 2 GiB: offsets have 32 bits. */
size_t column_encoder_raw_bytes(const struct column_encoder *encoder);
size_t column_encoder_value_bytes(const struct column_encoder *encoder);

/*
 * Appends the batch of the records so far to `out`, and begins another one. Appends to `notes` what
 * the end of the file says of it (column_file_note), counted from byte `begin` of `out`. Without
 * records does nothing. Returns NULL, or a static text if the format cannot hold the batch.
 */
const char *column_encoder_put(struct column_encoder *encoder, size_t begin,
                               struct column_bytes *out, struct column_bytes *notes);

#endif
