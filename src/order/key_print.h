/*
 * key_print.h -- what is kept of a long key so that it can be compared without its record.
 *
 * The prints of several keys are taken with the same *pivot*, which is any key of the same order. A
 * print says how many bytes the key shares with the pivot, and which bytes follow. This is enough
 * to compare nearly any two keys, also if they share thousands of bytes with each other.
 *
 * Ownership: prints hold no memory; the pivot belongs to the caller. Pure; any thread.
 */
#ifndef ROCKSORT_ORDER_KEY_PRINT_H
#define ROCKSORT_ORDER_KEY_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEY_PRINT_BYTES = 64 };  /* the most bytes that are kept after the shared ones */

struct key_print {
    size_t n_shared;
    size_t n_bytes;
    bool is_whole;              /* the key ends with these bytes */
    uint8_t bytes[KEY_PRINT_BYTES];     /* zeros after n_bytes */
};

struct key_pivot {
    const uint8_t *key;
    size_t n_bytes;
};

void key_print_take(const struct key_pivot *pivot, const uint8_t *key, size_t n_bytes,
                    struct key_print *print);

/* Compares two keys by their prints. Returns false if the prints do not decide, else true and *c:
   below 0, 0, above 0. */
bool key_print_compare(const struct key_pivot *pivot, const struct key_print *a,
                       const struct key_print *b, int *c);

#endif
