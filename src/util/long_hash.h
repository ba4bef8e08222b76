/*
 * long_hash.h -- XXH3-64 for inputs that are often longer than 240 bytes. Returns the same value as
 * XXH3_64bits of xxhash.h, but uses AVX2 if the processor has it.
 *
 * xxhash.h is compiled for every x86-64 processor, with vectors of 16 bytes. With vectors of 32
 * bytes XXH3 takes half the time for long inputs.
 *
 * Pure. For short inputs, such as names, use the inline functions of xxhash.h.
 */
#ifndef ROCKSORT_UTIL_LONG_HASH_H
#define ROCKSORT_UTIL_LONG_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t long_hash(const void *bytes, size_t n_bytes);

/* The same for processors with AVX2; only long_hash.c calls it. */
#ifdef __x86_64__
#define LONG_HASH_HAS_AVX2
uint64_t long_hash_avx2(const void *bytes, size_t n_bytes);
#endif

#endif
