/*
 * parquet_reader.h -- reads the columns that rocksort, or another program of what rocksort has
 * written, has stored as Parquet. Nothing that is read is believed.
 *
 * Order of calls, and what -1 means: as of arrow_reader.h. The end of the file is read first, so
 * this needs a file in which any place can be read.
 *
 * Memory: some rows at a time; a page and the dictionary of each column, decompressed; the footer.
 * Of a row group that is stored in up to 32 MiB all of that; of a larger one this much, or a page of
 * each column if that is more; less with parquet_reader_limit. Pages of more than 2 GiB in all, and
 * such rows, are an error.
 * Threads: one at a time.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_READER_H
#define ROCKSORT_COLUMNS_PARQUET_READER_H

#include "columns/column_batch.h"

#include <sys/types.h>

struct parquet_reader;

/* Reads n bytes from byte `at` of the file on; returns how many, less only at the end, or -1. */
typedef ssize_t (*parquet_read_at)(void *arg, uint64_t at, uint8_t *to, size_t n);

/* True if these bytes, the first of a file, begin Parquet. */
enum { PARQUET_START_BYTES = 4 };
bool parquet_reader_knows(const uint8_t *start);

struct parquet_reader *parquet_reader_create(parquet_read_at read_at, void *arg,
                                             uint64_t file_bytes);

/* Before the first rows: what is stored, and rows, should not take more than memory_bytes. */
void parquet_reader_limit(struct parquet_reader *reader, size_t memory_bytes);

/* Bytes of memory that the reader has now, besides the rows that it handed out. */
size_t parquet_reader_bytes(const struct parquet_reader *reader);

/* Bytes of memory that reading the footer took, at its peak. */
size_t parquet_reader_footer_bytes(const struct parquet_reader *reader);

/* NULL is accepted. */
void parquet_reader_destroy(struct parquet_reader *reader);

/* Reads the end of the file. Returns 0 or -1. */
int parquet_reader_open(struct parquet_reader *reader);

/* After open: the text of the header, or NULL if the file has lost it. The caller must tell the
   names of its references before the first rows; they must not change. */
const char *parquet_reader_header(const struct parquet_reader *reader);
void parquet_reader_set_references(struct parquet_reader *reader, const char *const *names,
                                   uint32_t n);

const struct column_schema *parquet_reader_schema(const struct parquet_reader *reader);

/* The name of a column that is left out, because no record has it; NULL: there is none. */
const char *parquet_reader_unknown(const struct parquet_reader *reader);

/* Rows of the whole file. */
uint64_t parquet_reader_n_rows(const struct parquet_reader *reader);

/* Reads the next rows. Returns 1, with columns that have been checked, which the caller frees
   (column_values_free); 0 at the end; or -1. */
int parquet_reader_next(struct parquet_reader *reader, struct column_values **columns,
                        uint64_t *n_rows);

const char *parquet_reader_problem(const struct parquet_reader *reader);

#endif
