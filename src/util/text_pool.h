/*
 * text_pool.h -- texts one after the other in one piece of memory, found by their places.
 *
 * Starts as {0}; the owner frees `bytes`. A place stays; the address of a text changes when texts
 * are added.
 */
#ifndef ROCKSORT_UTIL_TEXT_POOL_H
#define ROCKSORT_UTIL_TEXT_POOL_H

#include "util/xalloc.h"

#include <string.h>

struct text_pool {
    char *bytes;
    size_t n_bytes, room;
};

/* Adds a copy of a text, with its NUL. Returns its place. */
static inline size_t text_pool_put(struct text_pool *pool, const char *text)
{
    size_t at = pool->n_bytes, n = strlen(text) + 1;
    xgrow(&pool->bytes, &pool->room, at + n, at / 4 + 256, 1);
    memcpy(pool->bytes + at, text, n);
    pool->n_bytes += n;
    return at;
}

#endif
