/*
 * varint.h -- reads and writes LEB128 integers: seven bits a byte, the lowest first; the highest
 * bit of a byte is set if more bytes follow. Signed integers are zigzag-encoded first, so that
 * small ones of either sign are short. Pure.
 */
#ifndef ROCKSORT_UTIL_VARINT_H
#define ROCKSORT_UTIL_VARINT_H

#include <stdint.h>

enum { VARINT_MAX_BYTES = 10 };

/* Writes a value and returns the end. */
static inline uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* Reads a value that put_varint wrote, and moves *at to its end. */
static inline uint64_t get_varint(const uint8_t **at)
{
    uint64_t value = 0, byte;
    int shift = 0;
    do {
        byte = *(*at)++;
        value |= (byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80 && shift < 64);
    return value;
}

static inline uint8_t *put_signed_varint(uint8_t *at, int64_t value)
{
    return put_varint(at, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static inline int64_t get_signed_varint(const uint8_t **at)
{
    uint64_t value = get_varint(at);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

#endif
