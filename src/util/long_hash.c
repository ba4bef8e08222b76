/* long_hash.c -- see long_hash.h. */
#include "util/long_hash.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

uint64_t long_hash(const void *bytes, size_t n_bytes)
{
#ifdef LONG_HASH_HAS_AVX2
    if (__builtin_cpu_supports("avx2")) return long_hash_avx2(bytes, n_bytes);
#endif
    return XXH3_64bits(bytes, n_bytes);
}
