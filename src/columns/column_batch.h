/*
 * column_batch.h -- converts records to the columns of one record batch, in Arrow's memory layout
 * (Arrow Columnar Format, version 1).
 *
 * Order of calls: create; for each batch: add for each record, end, use the columns, clear.
 *
 * Positions are 1-based, as in SAM. Missing values (written as "*" or 0 in SAM) are null. `end` is
 * the last reference base that the read covers; for an unmapped read, or one that covers no base,
 * it is the position.
 *
 * The schema must outlive the batch. One thread at a time. Memory grows as needed.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_BATCH_H
#define ROCKSORT_COLUMNS_COLUMN_BATCH_H

#include "util/byte_buffer.h"
#include "columns/column_schema.h"
#include "util/byte_order.h"

/* A column has the buffers that its type needs; the others are empty. */
enum column_buffer {
    BUFFER_VALIDITY,            /* a bit for each row, the lowest first; empty: no nulls */
    BUFFER_OFFSETS,             /* texts, lists, maps: n + 1 of 32 bits. Value i extends from offset
                                   i to offset i + 1 */
    BUFFER_VALUES,
    BUFFER_KEY_OFFSETS,         /* maps */
    BUFFER_KEYS,
    BUFFER_MAPPED_OFFSETS,
    BUFFER_MAPPED,
    N_COLUMN_BUFFERS
};

struct column_values {
    uint64_t n_rows, n_nulls;
    struct byte_buffer buffers[N_COLUMN_BUFFERS];
};

/* What the encoders of Arrow and Parquet get. */
struct encoded_batch {
    const struct column_schema *schema;
    const struct column_values *columns;
    uint64_t n_rows;            /* at least 1 */
    const struct column_request *request;
    sam_hdr_t *header;          /* with the names of references */
};

/* Frees the buffers. */
void column_values_release(struct column_values *values);

struct column_batch {
    const struct column_schema *schema;
    struct column_values *columns;
    uint64_t n_rows;
    size_t raw_bytes;           /* of the records in BAM */
    /* Set by the caller: estimated records of the next batches, and their bytes. Memory for their
       bases and qualities is then allocated at once. */
    size_t expected_rows, expected_bytes;
    /* private */
    uint8_t *value_bytes;       /* of each column (column_type_bytes) */
    bool has_misfit;            /* a tag of this row is in the map, not in its column: its type
                                   differs */
    uint16_t bases[256];        /* two bases for each byte of a sequence, the first in the low
                                   byte */
};

struct column_batch *column_batch_create(const struct column_schema *schema);

/* Accepts NULL. */
void column_batch_destroy(struct column_batch *batch);

/* Adds a checked record. Returns NULL; or a static text that says why columns cannot hold the
   record. Then the batch must be cleared before further use. */
const char *column_batch_add(struct column_batch *batch, const uint8_t *rec);

/* Adds missing nulls at the end of columns. Returns the columns, in the order of the schema. */
const struct column_values *column_batch_end(struct column_batch *batch);

/* The current size of the columns in bytes. */
size_t column_batch_bytes(const struct column_batch *batch);

/* Removes the records. Keeps the memory that the next batch is likely to need. */
void column_batch_clear(struct column_batch *batch);

#endif
