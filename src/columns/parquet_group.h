/*
 * parquet_group.h -- encodes a batch of columns as a Parquet row group, which can be placed
 * anywhere in a file (Parquet format, version 2 of the encodings, data pages of version 1).
 *
 * Each leaf of a column (parquet_schema.h) is stored as a chunk: pages of at most 20,000 rows and
 * about 1 MiB, unless a single row is larger. A page contains whole rows and has a CRC. Encodings
 * were chosen by measurement (parquet_group.c).
 *
 * Statistics of chunks have the number of nulls, and bounds (minimum and maximum) for numbers and
 * for columns with few distinct texts. Their pages have the same statistics.
 *
 * Threads: one at a time for each coder. The only error is that a value is too large.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_GROUP_H
#define ROCKSORT_COLUMNS_PARQUET_GROUP_H

#include "columns/column_batch.h"
#include "columns/parquet_encode.h"
#include "columns/parquet_file.h"

enum { PARQUET_PAGE_BYTES = 1 << 20, PARQUET_PAGE_ROWS = 20000 };

/* Scratch memory of a thread that makes groups. Starts as {0}. */
struct parquet_coder {
    void *zstd;                 /* a ZSTD_CCtx */
    struct column_bytes page, packed;
    int64_t *numbers;           /* of a page */
    size_t numbers_room;
    struct parquet_dictionary dictionary;
    uint32_t *indexes;          /* dictionary indexes of the values of a chunk */
    size_t indexes_room;
    bool has_ranks;
    uint32_t *ranks;            /* of the dictionary's entries, by their bytes */
    size_t ranks_room;
    struct parquet_chunk chunk;
};

void parquet_coder_release(struct parquet_coder *coder);

/*
 * Appends a group to `out`, and its note to `notes`, with places relative to byte `begin` of `out`.
 * Returns NULL; or a static text if a page would exceed Parquet's limit of 2 GiB: then the contents
 * of `out` and `notes` must not be used.
 */
const char *parquet_put_group(struct parquet_coder *coder, const struct encoded_batch *batch,
                              size_t begin, struct column_bytes *out, struct column_bytes *notes);

#endif
