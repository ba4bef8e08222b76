/*
 * byte_buffer.h -- a growing buffer of bytes.
 *
 * A buffer starts as {0}; the owner frees `bytes`. One thread at a time. Nothing can fail.
 */
#ifndef ROCKSORT_UTIL_BYTE_BUFFER_H
#define ROCKSORT_UTIL_BYTE_BUFFER_H

#include "util/varint.h"
#include "util/xalloc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct byte_buffer {
    uint8_t *bytes;
    size_t n_bytes, room;
};

/* Makes room for n_bytes more, without counting them. Returns their address, which is never NULL,
   because there is always room for one more byte. */
static inline uint8_t *byte_buffer_reserve(struct byte_buffer *out, size_t n_bytes)
{
    if (out->room - out->n_bytes <= n_bytes)
        xgrow(&out->bytes, &out->room, out->n_bytes + n_bytes + 1, out->n_bytes / 2, 1);
    return out->bytes + out->n_bytes;
}

/* Makes room for n_bytes more and counts them. Returns their address. */
static inline uint8_t *byte_buffer_append(struct byte_buffer *out, size_t n_bytes)
{
    uint8_t *at = byte_buffer_reserve(out, n_bytes);
    out->n_bytes += n_bytes;
    return at;
}

/* Empties the buffer, and frees its memory unless is_kept. */
static inline void byte_buffer_forget(struct byte_buffer *out, bool is_kept)
{
    out->n_bytes = 0;
    if (is_kept) return;
    free(out->bytes);
    *out = (struct byte_buffer){0};
}

static inline void byte_buffer_copy(struct byte_buffer *out, const void *bytes, size_t n_bytes)
{
    if (n_bytes > 0) memcpy(byte_buffer_append(out, n_bytes), bytes, n_bytes);
}

static inline void byte_buffer_varint(struct byte_buffer *out, uint64_t value)
{
    uint8_t *at = byte_buffer_reserve(out, VARINT_MAX_BYTES);
    out->n_bytes += (size_t)(put_varint(at, value) - at);
}

static inline void byte_buffer_signed_varint(struct byte_buffer *out, int64_t value)
{
    uint8_t *at = byte_buffer_reserve(out, VARINT_MAX_BYTES);
    out->n_bytes += (size_t)(put_signed_varint(at, value) - at);
}

#endif
