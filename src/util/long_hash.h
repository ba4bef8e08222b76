/*
 * long_hash.h -- the XXH3-64 hash of bytes that are often more than 240: the same value as
 * XXH3_64bits of xxhash.h, with the vector instructions that the processor has.
 *
 * A header that is included is compiled for all processors of its kind, on x86-64 for vectors of 16
 * bytes. For longer input XXH3 takes half the time with those of 32.
 *
 * Pure. For short input, such as names, use xxhash.h, which needs no call.
 */
#ifndef ROCKSORT_UTIL_LONG_HASH_H
#define ROCKSORT_UTIL_LONG_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t long_hash(const void *bytes, size_t n_bytes);

/* The same for processors that have AVX2; for long_hash.c only. */
#ifdef __x86_64__
#define LONG_HASH_HAS_AVX2
uint64_t long_hash_avx2(const void *bytes, size_t n_bytes);
#endif

#endif
