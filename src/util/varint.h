/*
 * varint.h -- integers in as few bytes as they need: seven bits a byte, the lowest first; the
 * highest bit of a byte says that more follow. Signed integers are folded first, so that small
 * ones of either sign are short. Pure.
 */
#ifndef ROCKSORT_UTIL_VARINT_H
#define ROCKSORT_UTIL_VARINT_H

#include <stdbool.h>
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

/* Reads a value that put_varint wrote, and moves *at behind it. */
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

/* The same for bytes that nobody has checked, up to `end`. Returns false, with *at anywhere before
   it, if the value does not end there or has more than 64 bits. */
static inline bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        uint64_t byte = *(*at)++;
        *value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return shift < 63 || byte <= 1;
    }
    return false;
}

static inline uint8_t *put_signed_varint(uint8_t *at, int64_t value)
{
    return put_varint(at, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static inline int64_t unfold_varint(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static inline int64_t get_signed_varint(const uint8_t **at)
{
    return unfold_varint(get_varint(at));
}

static inline bool read_signed_varint(const uint8_t **at, const uint8_t *end, int64_t *value)
{
    uint64_t folded;
    bool is_whole = read_varint(at, end, &folded);
    *value = unfold_varint(folded);
    return is_whole;
}

#endif
