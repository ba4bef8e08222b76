/*
 * size.h -- parses and formats sizes in bytes, such as "640M" and "1.5 GB". Pure; any thread.
 */
#ifndef ROCKSORT_UTIL_SIZE_H
#define ROCKSORT_UTIL_SIZE_H

#include <stdint.h>

/*
 * Parses a size of the command line, such as 640M, 768MB or 1.5GiB: a whole number of bytes, or a
 * number, which may have a decimal point, with a unit K, M, G or T, which B or iB may follow. Units
 * are powers of 1024; case does not matter; fractions of a byte are dropped. Returns 0, or -1 if
 * the text is not a size or the size does not fit into 63 bits.
 */
int size_parse(const char *text, uint64_t *n_bytes);

enum { SIZE_TEXT_BYTES = 32 };

/* Writes a size for a message, in powers of 1000: "1.5 GB", "20.0 MB", "512 bytes". Returns
   text. */
const char *size_format(uint64_t n_bytes, char text[SIZE_TEXT_BYTES]);

#endif
