/*
 * arrow_reader.h -- reads the columns that rocksort has written as Arrow, a stream or a file, from
 * their begin to their end. Nothing that is read is believed.
 *
 * Order of calls: create; open; next until it returns 0 or -1. After -1 `problem` says what is wrong
 * (a static text), or is NULL if the bytes could not be read.
 *
 * Memory: that of a batch, stored and decompressed, whatever a sort may use.
 * Threads: one at a time.
 */
#ifndef ROCKSORT_COLUMNS_ARROW_READER_H
#define ROCKSORT_COLUMNS_ARROW_READER_H

#include "columns/column_batch.h"

struct arrow_reader;

/* Reads up to n bytes; returns how many, less only at the end, or -1. */
typedef ssize_t (*arrow_read)(void *arg, uint8_t *to, size_t n);

/* True if these bytes, the first of a file, may begin an Arrow stream or file. */
enum { ARROW_START_BYTES = 8 };
bool arrow_reader_knows(const uint8_t *start);

struct arrow_reader *arrow_reader_create(arrow_read read, void *arg);

/* NULL is accepted. */
void arrow_reader_destroy(struct arrow_reader *reader);

/* Reads what comes before the batches. Returns 0 or -1. */
int arrow_reader_open(struct arrow_reader *reader);

/* After open: the text of the header. The caller must tell the names of its references before the
   first batch; they are compared with those of the columns. */
const char *arrow_reader_header(const struct arrow_reader *reader);
void arrow_reader_set_references(struct arrow_reader *reader, const char *const *names, uint32_t n);

const struct column_schema *arrow_reader_schema(const struct arrow_reader *reader);

/* Reads the next batch. Returns 1, with columns that are valid until the next call and have been
   checked; 0 at the end; or -1. */
int arrow_reader_next(struct arrow_reader *reader, const struct column_values **columns,
                      uint64_t *n_rows);

const char *arrow_reader_problem(const struct arrow_reader *reader);

#endif
