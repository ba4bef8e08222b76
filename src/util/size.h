/*
 * size.h -- sizes in bytes, as people write and read them. Pure; any thread.
 */
#ifndef ROCKSORT_UTIL_SIZE_H
#define ROCKSORT_UTIL_SIZE_H

#include <stdint.h>

/*
 * Parses a size of the command line, such as 640M, 768MB or 1.5GiB. It is a whole number of bytes,
 * or a number of K, M, G or T, which may have a decimal point; B or iB may follow. All units are
 * powers of 1024. Upper and lower case are the same. A part of a byte is dropped. Returns 0, or -1
 * if the text is anything else or the size does not fit into 63 bits.
 */
int size_parse(const char *text, uint64_t *n_bytes);

enum { SIZE_TEXT_BYTES = 32 };

/* Writes a size for a message, in powers of 1000: "1.5 GB", "20.0 MB", "512 bytes". Returns
   text. */
const char *size_format(uint64_t n_bytes, char text[SIZE_TEXT_BYTES]);

#endif
