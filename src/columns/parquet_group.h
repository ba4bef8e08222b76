/*
 * parquet_group.h -- row groups as Parquet has them (Parquet format, version 2 of the encodings,
 * data pages of version 1): a thread makes one of a batch of columns, and it can be put anywhere in
 * a file.
 *
 * A column is stored as a chunk for each of its leaves: pages of at most 20,000 rows and about 1
 * MiB, unless a single row is larger. A page begins with a whole row. Each has a CRC. How values
 * are encoded was chosen by measurement (parquet_group.c).
 *
 * Chunks have the number of nulls, and, for columns of numbers and those of few different texts,
 * the least and the greatest value. Pages of these have them, too.
 *
 * Threads: a coder is used by one thread at a time. Errors: only that a value is too large.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_GROUP_H
#define ROCKSORT_COLUMNS_PARQUET_GROUP_H

#include "columns/column_batch.h"
#include "columns/parquet_encode.h"
#include "columns/parquet_file.h"

enum { PARQUET_PAGE_BYTES = 1 << 20, PARQUET_PAGE_ROWS = 20000 };

/* The memory of one thread that makes groups. Starts as {0}. */
struct parquet_coder {
    void *zstd;                 /* a ZSTD_CCtx */
    struct column_bytes page, packed;
    int64_t *numbers;           /* of a page */
    size_t numbers_room;
    struct parquet_dictionary dictionary;
    uint32_t *indexes;          /* in the dictionary, of the values of a chunk */
    size_t indexes_room;
    bool has_ranks;
    uint32_t *ranks;            /* of the entries, by their bytes */
    size_t ranks_room;
    struct parquet_chunk chunk;
};

void parquet_coder_release(struct parquet_coder *coder);

/*
 * Appends a group to `out`, and its note to `notes`; its place is counted from byte `begin` of
 * `out`. Returns NULL; or a static text if a page would be larger than Parquet allows, 2 GiB: then
 * `out` and `notes` are of no use.
 */
const char *parquet_put_group(struct parquet_coder *coder, const struct encoded_batch *batch,
                              size_t begin, struct column_bytes *out, struct column_bytes *notes);

#endif
