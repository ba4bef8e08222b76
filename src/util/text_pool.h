/*
 * text_pool.h -- stores strings one after another in one allocation and finds them by offset.
 *
 * Starts as {0}; the owner frees `bytes`. Adding a string may move all others, but never changes
 * their offsets.
 */
#ifndef ROCKSORT_UTIL_TEXT_POOL_H
#define ROCKSORT_UTIL_TEXT_POOL_H

#include "util/xalloc.h"

#include <string.h>

struct text_pool {
    char *bytes;
    size_t n_bytes, room;
};

/* Adds a copy of a string, with its NUL. Returns its offset. */
static inline size_t text_pool_put(struct text_pool *pool, const char *text)
{
    size_t at = pool->n_bytes, n = strlen(text) + 1;
    xgrow(&pool->bytes, &pool->room, at + n, at / 4 + 256, 1);
    memcpy(pool->bytes + at, text, n);
    pool->n_bytes += n;
    return at;
}

#endif
