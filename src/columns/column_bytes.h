/*
 * column_bytes.h -- a growing byte buffer; and the interface of a sink, to which bytes are written.
 *
 * A buffer starts as {0}; the owner frees `bytes`. One thread at a time. Errors: only of sinks.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_BYTES_H
#define ROCKSORT_COLUMNS_COLUMN_BYTES_H

#include "os/tape.h"
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

/* Writes a stream of tapes to a sink. Returns 0, or -1 after a message. */
static inline int column_sink_copy(const struct column_sink *sink, struct tape_set *tapes,
                                   unsigned stream)
{
    enum { COPY_BYTES = 64 << 10 };     /* at a time */
    struct tape_reader reader = {.at = 0};
    bool is_written = true;
    tape_reader_begin(&reader, tapes, stream);
    for (uint64_t left; is_written && (left = tape_left(&reader)) > 0;) {
        size_t n = left < COPY_BYTES ? (size_t)left : COPY_BYTES;
        const uint8_t *bytes = tape_read(&reader, n);
        is_written = bytes && sink->write(sink->arg, bytes, n);
    }
    tape_reader_release(&reader);
    return is_written ? 0 : -1;
}

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
