/* size.h -- parses sizes such as 640M on the command line. Pure. */
#ifndef ROCKSORT_UTIL_SIZE_H
#define ROCKSORT_UTIL_SIZE_H

#include <stdint.h>

/*
 * Parses a whole number of bytes with an optional suffix K, M, G or T (powers of 1024, either
 * case). Returns 0, or -1 if the text is anything else or the size does not fit 63 bits.
 */
int size_parse(const char *text, uint64_t *n_bytes);

#endif
