/*
 * arrow_reader.h -- reads the columns that rocksort has written as Arrow. Other programs may have
 * written them again, in layouts of theirs (arrow_normal.h). A stream, and a file from a pipe, is
 * read from its begin to its end; of a file its end is read first, which says where the batches and
 * their dictionaries are. Nothing that is read is believed.
 *
 * Order of calls: create; open; next until it returns 0 or -1. After -1 `problem` says what is
 * wrong, or is NULL if the bytes could not be read.
 *
 * Memory: that of a batch, stored and decompressed, whatever a sort may use. A column that must be
 * laid out anew is there twice meanwhile.
 * Threads: one at a time.
 */
#ifndef ROCKSORT_COLUMNS_ARROW_READER_H
#define ROCKSORT_COLUMNS_ARROW_READER_H

#include "columns/column_batch.h"

struct arrow_reader;

/* Where the bytes come from. */
struct arrow_input {
    /* Reads up to n bytes; returns how many, less only at the end, or -1. */
    ssize_t (*read)(void *arg, uint8_t *to, size_t n);
    /* Like lseek. A pipe returns -1 and stays where it is. */
    int64_t (*seek)(void *arg, int64_t offset, int whence);
    void *arg;
};

/* True if these bytes, the first of a file, may begin an Arrow stream or file. */
enum { ARROW_START_BYTES = 8 };
bool arrow_reader_knows(const uint8_t *start);

struct arrow_reader *arrow_reader_create(const struct arrow_input *input);

/* Bytes of memory that the reader has now for batches, besides those that it handed out. */
size_t arrow_reader_bytes(const struct arrow_reader *reader);

/* NULL is accepted. */
void arrow_reader_destroy(struct arrow_reader *reader);

/* Reads what comes before the batches. Returns 0 or -1. */
int arrow_reader_open(struct arrow_reader *reader);

/* After open: the text of the header; NULL if the file has none. The caller must tell the names of
   its references, which must outlive the reader, before the first batch. */
const char *arrow_reader_header(const struct arrow_reader *reader);
void arrow_reader_set_references(struct arrow_reader *reader, const char *const *names, uint32_t n);

/* The columns that are read. */
const struct column_schema *arrow_reader_schema(const struct arrow_reader *reader);

/* The name of a column that is left out because it is no field or tag; NULL if there is none. */
const char *arrow_reader_unknown(const struct arrow_reader *reader);

/* Reads the next batch. Returns 1, with columns that have been checked, which the caller frees
   (column_values_free); 0 at the end; or -1. */
int arrow_reader_next(struct arrow_reader *reader, struct column_values **columns,
                      uint64_t *n_rows);

const char *arrow_reader_problem(const struct arrow_reader *reader);

#endif
