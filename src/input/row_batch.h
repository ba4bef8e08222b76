/*
 * row_batch.h -- rows of columns, of which several workers make records at the same time.
 *
 * Each chunk (sam_chunk.h) that has rows of a batch holds it; the last one to drop it frees it. The
 * schema and the counter of bytes belong to the input, which must outlive the batch.
 *
 * Threads: any. The rows do not change.
 */
#ifndef ROCKSORT_INPUT_ROW_BATCH_H
#define ROCKSORT_INPUT_ROW_BATCH_H

#include "columns/column_batch.h"

#include <stdatomic.h>

struct row_batch;

/* Takes over the columns, which were checked. The caller holds the batch. What it takes in memory
   is added to *n_bytes until it is freed. */
struct row_batch *row_batch_create(const struct column_schema *schema,
                                   struct column_values *columns, uint64_t n_rows,
                                   atomic_size_t *n_bytes);

struct row_batch *row_batch_hold(struct row_batch *batch);

/* NULL is accepted. */
void row_batch_drop(struct row_batch *batch);

uint64_t row_batch_n_rows(const struct row_batch *batch);

/* What an average row takes in memory: about as much as its record. */
size_t row_batch_row_bytes(const struct row_batch *batch);

/* Appends the record of a row in raw form. Returns NULL, or what is wrong (a static text). */
const char *row_batch_put(const struct row_batch *batch, uint64_t row, struct column_bytes *out);

#endif
