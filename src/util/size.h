/*
 * size.h -- sizes in bytes, as people write and read them. Pure; any thread.
 */
#ifndef ROCKSORT_UTIL_SIZE_H
#define ROCKSORT_UTIL_SIZE_H

#include <stdint.h>

/*
 * Parses a size of the command line, such as 640M: a whole number of bytes with an optional suffix
 * K, M, G or T (powers of 1024, upper or lower case). Returns 0, or -1 if the text is anything else
 * or the size does not fit into 63 bits.
 */
int size_parse(const char *text, uint64_t *n_bytes);

enum { SIZE_TEXT_BYTES = 32 };

/* Writes a size for a message, in powers of 1000: "1.5 GB", "20.0 MB", "512 bytes". Returns
   text. */
const char *size_format(uint64_t n_bytes, char text[SIZE_TEXT_BYTES]);

#endif
