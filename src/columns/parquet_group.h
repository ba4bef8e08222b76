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
 * The metadata of a group, from which the writer of the file makes the footer (parquet_footer.h),
 * are a struct parquet_group, and for each leaf of the schema a struct parquet_chunk with its
 * pages. Chunks are in the file in this order, each with its dictionary page, if any, and its
 * pages.
 *
 * Threads: one at a time for each coder. The only error is that a value is too large.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_GROUP_H
#define ROCKSORT_COLUMNS_PARQUET_GROUP_H

#include "columns/column_batch.h"
#include "columns/parquet_encode.h"
#include "columns/parquet_schema.h"

enum { PARQUET_PAGE_BYTES = 1 << 20, PARQUET_PAGE_ROWS = 20000 };
enum { PARQUET_BOUND_BYTES = 64 };      /* bounds are not written for longer texts */

/* A value in statistics: numbers are little-endian. */
struct parquet_bound {
    uint8_t n_bytes;
    uint8_t bytes[PARQUET_BOUND_BYTES];
};

/* The minimum and the maximum. */
struct parquet_bounds {
    bool are_known;
    struct parquet_bound least, most;
};

/* Less than, equal to or greater than 0, in the order that Parquet defines for the type. */
int parquet_bound_compare(enum parquet_type type, const struct parquet_bound *a,
                          const struct parquet_bound *b);

struct parquet_page {
    uint64_t n_rows, n_bytes;   /* bytes in the file, with the page header */
    uint64_t n_nulls;
    struct parquet_bounds bounds;       /* unknown if all are null */
};

struct parquet_chunk {
    enum parquet_encoding encoding;
    uint64_t n_values, n_nulls; /* both include nulls and empty lists */
    uint64_t raw_bytes, n_bytes;        /* of all pages with headers: uncompressed, stored */
    uint64_t dictionary_bytes;  /* stored size of the dictionary page; 0: none */
    struct parquet_bounds bounds;
    bool has_page_bounds;       /* of each page that is not all null */
    uint64_t n_pages;           /* which follow the chunk */
};

struct parquet_group {
    uint64_t at;                /* its first byte, from where the caller counts */
    uint64_t n_rows;
    bool is_sorted;             /* by rname and pos, with nulls last */
};

/* Scratch memory of a thread that makes groups. Starts as {0}. */
struct parquet_coder {
    void *zstd;                 /* a ZSTD_CCtx */
    struct byte_buffer page, packed;
    int64_t *numbers;           /* of a page */
    size_t numbers_room;
    struct parquet_dictionary dictionary;
    uint32_t *indexes;          /* dictionary indexes of the values of a chunk */
    size_t indexes_room;
};

void parquet_coder_release(struct parquet_coder *coder);

/*
 * Appends a group to `out`, and its metadata to `metadata`, with offsets from byte `begin` of
 * `out`. Returns NULL; or a static text if a page would exceed Parquet's limit of 2 GiB: then `out`
 * and `metadata` must not be used.
 */
const char *parquet_put_group(struct parquet_coder *coder, const struct encoded_batch *batch,
                              size_t begin, struct byte_buffer *out,
                              struct byte_buffer *metadata);

#endif
