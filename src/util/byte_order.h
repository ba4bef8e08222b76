/*
 * byte_order.h -- reads and writes integers, little-endian for BAM files, big-endian for keys in
 * memcmp order. Addresses need no alignment. Functions that write return the end of the written
 * bytes. Also copies and compares bytes. Pure.
 */
#ifndef ROCKSORT_UTIL_BYTE_ORDER_H
#define ROCKSORT_UTIL_BYTE_ORDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Read 16, 32 or 64 bits, little-endian. */
static inline uint32_t get_u16(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static inline uint32_t get_u32(const uint8_t *at)
{
    return get_u16(at) | get_u16(at + 2) << 16;
}

static inline uint64_t get_u64(const uint8_t *at)
{
    return get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

/* Write the lower 16 or 32 bits of a value, or all 64, little-endian. */
static inline uint8_t *put_u16(uint8_t *at, uint64_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    return at + 2;
}

static inline uint8_t *put_u32(uint8_t *at, uint64_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
    return at + 4;
}

static inline uint8_t *put_u64(uint8_t *at, uint64_t value)
{
    return put_u32(put_u32(at, value), value >> 32);
}

/* Write and read the lower n_bytes (at most 8) of a value, most significant byte first. */
static inline uint8_t *put_big_endian(uint8_t *at, uint64_t value, int n_bytes)
{
    for (int i = n_bytes - 1; i >= 0; i--) *at++ = (uint8_t)(value >> 8 * i);
    return at;
}

static inline uint64_t get_big_endian(const uint8_t *at, int n_bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < n_bytes; i++) value = value << 8 | at[i];
    return value;
}

/* Copies n_bytes and returns the end. If n_bytes is 0, both may be any pointer, even NULL. */
static inline uint8_t *copy_bytes(uint8_t *at, const void *bytes, size_t n_bytes)
{
    return n_bytes > 0 ? (uint8_t *)memcpy(at, bytes, n_bytes) + n_bytes : at;
}

/* Compares like strcmp: a prefix comes before a longer string. */
static inline int compare_bytes(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    size_t n = a_bytes < b_bytes ? a_bytes : b_bytes;
    int c = n > 0 ? memcmp(a, b, n) : 0;
    return c ? c : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

#endif
