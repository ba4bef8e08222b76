/*
 * column_notes.h -- where a file of columns keeps what its end will say of its batches: 24 bytes a
 * batch of Arrow, about 50 bytes a column of a row group of Parquet. For a large file that is more
 * than memory should have, so whoever writes the file decides where the notes are.
 *
 * Order of calls: append, until all is written; then rewind and read, from the first byte on, as
 * often as they are needed. One thread at a time. Errors: -1 or NULL after a message.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_NOTES_H
#define ROCKSORT_COLUMNS_COLUMN_NOTES_H

#include <stddef.h>
#include <stdint.h>

struct column_notes {
    int (*append)(void *arg, const uint8_t *bytes, size_t n_bytes);
    void (*rewind)(void *arg);
    /* Returns the next n_bytes, valid until the next call. They must exist. */
    const uint8_t *(*read)(void *arg, size_t n_bytes);
    void *arg;
};

#endif
