/*
 * column_batch.h -- turns records into the columns of one record batch, laid out in memory as Arrow
 * has them (Arrow Columnar Format, version 1).
 *
 * Order of calls: create; for each batch: add for each record, end, use the columns, clear.
 *
 * Positions count from 1, as in SAM. What SAM writes as "*" or 0 because there is no such thing (a
 * name, reference, position, CIGAR, sequence, qualities) is null. `end` is the last base of the
 * reference that the read covers; a read that covers none, or is not mapped, ends where it begins.
 *
 * The schema must outlive the batch. One thread at a time. Memory grows to what the largest batch
 * needs.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_BATCH_H
#define ROCKSORT_COLUMNS_COLUMN_BATCH_H

#include "columns/column_bytes.h"
#include "columns/column_schema.h"
#include "util/byte_order.h"

/* A column has those that its type needs; the others are empty. */
enum column_buffer {
    BUFFER_VALIDITY,            /* a bit for each row, the lowest first; empty: there is no null */
    BUFFER_OFFSETS,             /* texts, lists, maps: n + 1 of 32 bits. Value i lies from offset i to
                                   offset i + 1 */
    BUFFER_VALUES,
    BUFFER_KEY_OFFSETS,         /* maps */
    BUFFER_KEYS,
    BUFFER_MAPPED_OFFSETS,
    BUFFER_MAPPED,
    N_COLUMN_BUFFERS
};

struct column_values {
    uint64_t n_rows, n_nulls;
    struct column_bytes buffers[N_COLUMN_BUFFERS];
};

/* A batch that is encoded. */
struct encoded_batch {
    const struct column_schema *schema;
    const struct column_values *columns;
    uint64_t n_rows;            /* at least 1 */
    const struct column_request *request;
    sam_hdr_t *header;          /* with the names of references */
};

/* Frees the buffers. */
void column_values_release(struct column_values *values);

struct column_batch;

struct column_batch *column_batch_create(const struct column_schema *schema);

/* NULL is accepted. */
void column_batch_destroy(struct column_batch *batch);

/* Says that the next batches will have about n_rows records of n_bytes, or fewer. The
   memory for their bases and qualities is then taken at once. */
void column_batch_expect(struct column_batch *batch, size_t n_rows, size_t n_bytes);

/* Adds a checked record. Returns NULL; or, if columns cannot hold the record, a static text that
   says why. Then the batch is of no use before it is cleared. */
const char *column_batch_add(struct column_batch *batch, const uint8_t *rec);

uint64_t column_batch_n_rows(const struct column_batch *batch);

/* Bytes of its records. */
size_t column_batch_raw_bytes(const struct column_batch *batch);

/* Makes all columns equally long. Returns them: as many as the schema has. */
const struct column_values *column_batch_end(struct column_batch *batch);

/* Bytes that the columns take now. */
size_t column_batch_bytes(const struct column_batch *batch);

/* Forgets the records. Keeps the memory that the next batch is likely to need. */
void column_batch_clear(struct column_batch *batch);

/* True if the name of a read has a character that would break a line of SAM, or another control
   character. Columns have no such names. */
static inline bool column_name_has_control(const uint8_t *name, size_t n_bytes)
{
    const uint64_t every = UINT64_C(0x0101010101010101), top = 0x80 * every;
    uint64_t found = 0;
    size_t i = 0;
    /* A top bit is set if one of the eight is below 0x20, or equals 0x7f (x ^ 0x7f is below 1).
       Without such a byte no bit is borrowed from the next. */
    for (; i + 8 <= n_bytes; i += 8) {
        uint64_t eight = get_u64(name + i), deleted = eight ^ 0x7f * every;
        found |= (((eight - 0x20 * every) & ~eight) | ((deleted - every) & ~deleted)) & top;
    }
    for (; i < n_bytes; i++) found |= name[i] < 0x20 || name[i] == 0x7f;
    return found != 0;
}

#endif
