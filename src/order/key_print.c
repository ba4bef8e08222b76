/*
 * key_print.c -- see key_print.h.
 *
 * At the first byte that a key does not share with its base it has the greater byte, because the
 * base is not above it. So if another key still shares this byte with the base, it is smaller. A
 * pivot may have the greater byte itself.
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

void key_print_take(const uint8_t *base, size_t base_bytes, const uint8_t *key, size_t n_bytes,
                    struct key_print *print)
{
    size_t n_shared = count_shared(base, key, n_bytes < base_bytes ? n_bytes : base_bytes);
    size_t n_left = n_bytes - n_shared;
    *print = (struct key_print){.n_shared = n_shared, .is_whole = n_left <= KEY_PRINT_BYTES};
    print->n_bytes = print->is_whole ? n_left : KEY_PRINT_BYTES;
    if (print->n_bytes > 0) memcpy(print->bytes, key + n_shared, print->n_bytes);
}

/* Like key_print_compare, for keys that share equally many bytes with their base. */
static bool compare_bytes(const struct key_print *a, const struct key_print *b, int *c)
{
    const struct key_print *shorter = a->n_bytes < b->n_bytes ? a : b;
    *c = memcmp(a->bytes, b->bytes, shorter->n_bytes);
    if (a->n_bytes == b->n_bytes) return *c || a->is_whole || b->is_whole;
    /* Keys are prefix-free: a key that ends with these bytes equals the other one. If the longer
       print is whole, the shorter one has been rebased, and its key goes on with unknown bytes. */
    return *c || shorter->is_whole;
}

bool key_print_compare(const struct key_print *a, const struct key_print *b, int *c)
{
    *c = (a->n_shared < b->n_shared) - (a->n_shared > b->n_shared);
    return *c || compare_bytes(a, b, c);
}

bool key_print_compare_around(const uint8_t *pivot, const struct key_print *a,
                              const struct key_print *b, int *c)
{
    if (a->n_shared == b->n_shared) return compare_bytes(a, b, c);
    if (a->n_shared < b->n_shared)
        *c = a->bytes[0] < pivot[a->n_shared] ? -1 : 1;
    else
        *c = pivot[b->n_shared] < b->bytes[0] ? -1 : 1;
    return true;
}

void key_print_rebase(const struct key_print *low, struct key_print *high)
{
    /* Where `high` leaves its base, `low` is still like that base. */
    if (low->n_shared > high->n_shared) return;
    size_t n = low->n_bytes < high->n_bytes ? low->n_bytes : high->n_bytes;
    size_t n_shared = count_shared(low->bytes, high->bytes, n);
    high->n_shared += n_shared;
    high->n_bytes -= n_shared;
    memmove(high->bytes, high->bytes + n_shared, high->n_bytes);
}

void key_print_rebase_around(const uint8_t *pivot, const struct key_print *low,
                             struct key_print *high)
{
    if (low->n_shared >= high->n_shared) {
        key_print_rebase(low, high);
        return;
    }
    /* `high` goes on like the pivot where `low` leaves it. */
    size_t gap = high->n_shared - low->n_shared, n_like = gap, n_own = high->n_bytes;
    if (n_like > KEY_PRINT_BYTES) n_like = KEY_PRINT_BYTES;
    if (n_own > KEY_PRINT_BYTES - n_like) n_own = KEY_PRINT_BYTES - n_like;
    high->is_whole = high->is_whole && n_like == gap && n_own == high->n_bytes;
    memmove(high->bytes + n_like, high->bytes, n_own);
    memcpy(high->bytes, pivot + low->n_shared, n_like);
    high->n_shared = low->n_shared;
    high->n_bytes = n_like + n_own;
}
