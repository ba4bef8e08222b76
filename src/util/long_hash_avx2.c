/* long_hash_avx2.c -- see long_hash.h. Everything below the pragma is compiled for AVX2. */
#include "util/long_hash.h"

#ifdef LONG_HASH_HAS_AVX2

#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#define XXH_VECTOR 2            /* XXH_AVX2, which xxhash.h defines */
#include <xxhash.h>

uint64_t long_hash_avx2(const void *bytes, size_t n_bytes)
{
    return XXH3_64bits(bytes, n_bytes);
}

#ifdef __clang__
#pragma clang attribute pop
#endif

#endif
