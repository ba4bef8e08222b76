/*
 * decimal.h -- writes numbers as decimal digits: much faster than printf, for files with a number
 * every few bytes.
 */
#ifndef ROCKSORT_UTIL_DECIMAL_H
#define ROCKSORT_UTIL_DECIMAL_H

#include <stdint.h>
#include <string.h>

enum { DECIMAL_MOST_BYTES = 20 };       /* digits of UINT64_MAX */

/* Writes the digits, without a NUL. Returns their end. */
static inline uint8_t *put_decimal(uint8_t *out, uint64_t value)
{
    uint8_t digits[DECIMAL_MOST_BYTES], *first = digits + sizeof digits;
    do *--first = (uint8_t)('0' + value % 10);
    while ((value /= 10) > 0);
    size_t n = (size_t)(digits + sizeof digits - first);
    memcpy(out, first, n);
    return out + n;
}

#endif
