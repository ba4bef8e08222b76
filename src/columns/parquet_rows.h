/*
 * parquet_rows.h -- makes columns, laid out as column_batch.h says, of the values that a chunk of
 * Parquet stores: a number of rows at a time.
 *
 * Numbers must fit the type that the column has, whichever width they are stored with. Names of
 * references become their numbers. An element of a list or a map cannot be null.
 *
 * One thread at a time. Errors: static texts; NULL is none.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_ROWS_H
#define ROCKSORT_COLUMNS_PARQUET_ROWS_H

#include "columns/column_batch.h"
#include "columns/parquet_chunk.h"
#include "columns/parquet_dictionary.h"

/* The rows of one leaf. Buffers that its type does not need are NULL. */
struct parquet_rows {
    struct column_bytes *validity;      /* of rows */
    struct column_bytes *offsets;       /* of rows: lists and maps */
    struct column_bytes *text_offsets, *values;
    struct parquet_dictionary *references;      /* the names, in their order */
    uint32_t n_references;
    uint64_t *room;             /* bytes that all leaves of the rows may still take */
};

/* Reads the next n rows to the buffers, which are empty. */
const char *parquet_rows_read(struct parquet_chunk_reader *chunk, uint64_t n,
                              const struct parquet_rows *rows);

/* True for problems of the column's values: texts to be put after its name. Accepts NULL. */
bool parquet_rows_is_of_column(const char *problem);

#endif
