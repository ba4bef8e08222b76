/* long_hash_avx2.h -- long_hash for x86-64 processors that have AVX2; only long_hash.c calls it. */
#ifndef ROCKSORT_UTIL_LONG_HASH_AVX2_H
#define ROCKSORT_UTIL_LONG_HASH_AVX2_H

#include <stddef.h>
#include <stdint.h>

#ifdef __x86_64__
#define LONG_HASH_HAS_AVX2
uint64_t long_hash_avx2(const void *bytes, size_t n_bytes);
#endif

#endif
