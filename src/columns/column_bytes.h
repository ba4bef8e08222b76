/*
 * column_bytes.h -- a growing byte buffer; and the interfaces of a sink, to which bytes are
 * written, and of the spool for footers.
 *
 * A buffer starts as {0}; the owner frees `bytes`. One thread at a time. Errors: only of sinks and
 * spools.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_BYTES_H
#define ROCKSORT_COLUMNS_COLUMN_BYTES_H

#include "util/varint.h"
#include "util/xalloc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct column_bytes {
    uint8_t *bytes;
    size_t n_bytes, room;
};

/* Receives bytes piece by piece. `write` returns false on failure; then it is not called again. */
struct column_sink {
    bool (*write)(void *arg, const uint8_t *bytes, size_t n_bytes);
    void *arg;
};

/*
 * Spools the metadata of batches until the footer is written: 24 bytes for a batch of Arrow, about
 * 50 bytes for a column of a row group of Parquet. Those of a large file may not fit in memory, so
 * the writer of the file decides where they are stored. Order of calls: append, until all is
 * written; then rewind and read from the first byte on, as often as needed. Errors: -1 or NULL
 * after a message.
 */
struct footer_spool {
    int (*append)(void *arg, const uint8_t *bytes, size_t n_bytes);
    void (*rewind)(void *arg);
    /* Returns the next n_bytes, valid until the next call. They must exist. */
    const uint8_t *(*read)(void *arg, size_t n_bytes);
    void *arg;
};

/* Makes room for n_bytes more, without counting them. Returns their address, which is never NULL,
   because there is always room for one more byte. */
static inline uint8_t *column_bytes_reserve(struct column_bytes *out, size_t n_bytes)
{
    if (out->room - out->n_bytes <= n_bytes)
        xgrow(&out->bytes, &out->room, out->n_bytes + n_bytes + 1, out->n_bytes / 2, 1);
    return out->bytes + out->n_bytes;
}

/* Makes room for n_bytes more and counts them. Returns their address. */
static inline uint8_t *column_bytes_append(struct column_bytes *out, size_t n_bytes)
{
    uint8_t *at = column_bytes_reserve(out, n_bytes);
    out->n_bytes += n_bytes;
    return at;
}

/* Empties the buffer, and frees its memory unless is_kept. */
static inline void column_bytes_forget(struct column_bytes *out, bool is_kept)
{
    out->n_bytes = 0;
    if (is_kept) return;
    free(out->bytes);
    *out = (struct column_bytes){0};
}

static inline void column_bytes_copy(struct column_bytes *out, const void *bytes, size_t n_bytes)
{
    if (n_bytes > 0) memcpy(column_bytes_append(out, n_bytes), bytes, n_bytes);
}

static inline void column_bytes_varint(struct column_bytes *out, uint64_t value)
{
    uint8_t *at = column_bytes_reserve(out, VARINT_MAX_BYTES);
    out->n_bytes += (size_t)(put_varint(at, value) - at);
}

static inline void column_bytes_signed_varint(struct column_bytes *out, int64_t value)
{
    uint8_t *at = column_bytes_reserve(out, VARINT_MAX_BYTES);
    out->n_bytes += (size_t)(put_signed_varint(at, value) - at);
}

#endif
