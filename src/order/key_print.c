/*
 * key_print.c -- see key_print.h.
 *
 * If two keys share different numbers of bytes with the pivot, the key that shares fewer bytes
 * differs from the pivot at the place where its shared bytes end, and the other key does not. If
 * both share equally many, the bytes that follow decide, unless all the bytes that are kept are
 * equal. Keys are prefix-free, so a key that ends with these bytes equals the other one.
 */
#include "order/key_print.h"

#include <string.h>

/* The number of equal bytes at the beginning of a and b. */
static size_t count_shared(const uint8_t *a, const uint8_t *b, size_t n)
{
    enum { STRIDE = 4096 };
    size_t at = 0;
    while (n - at >= STRIDE && memcmp(a + at, b + at, STRIDE) == 0) at += STRIDE;
    while (at < n && a[at] == b[at]) at++;
    return at;
}

void key_print_take(const struct key_pivot *pivot, const uint8_t *key, size_t n_bytes,
                    struct key_print *print)
{
    size_t n = n_bytes < pivot->n_bytes ? n_bytes : pivot->n_bytes;
    size_t n_shared = count_shared(pivot->key, key, n), n_left = n_bytes - n_shared;
    *print = (struct key_print){.n_shared = n_shared, .is_whole = n_left <= KEY_PRINT_BYTES};
    print->n_bytes = print->is_whole ? n_left : KEY_PRINT_BYTES;
    if (print->n_bytes > 0) memcpy(print->bytes, key + n_shared, print->n_bytes);
}

bool key_print_compare(const struct key_pivot *pivot, const struct key_print *a,
                       const struct key_print *b, int *c)
{
    if (a->n_shared < b->n_shared) {
        *c = a->bytes[0] - pivot->key[a->n_shared];
        return true;
    }
    if (a->n_shared > b->n_shared) {
        *c = pivot->key[b->n_shared] - b->bytes[0];
        return true;
    }
    *c = memcmp(a->bytes, b->bytes, a->n_bytes < b->n_bytes ? a->n_bytes : b->n_bytes);
    return *c || a->is_whole || b->is_whole;
}
