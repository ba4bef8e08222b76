/*
 * key_print.h -- what is kept of a long key so that it can be compared without its record.
 *
 * A print says how many bytes the key shares with another key, its *base*, and which bytes follow.
 * No base is above the keys that have it. So of two keys with the same base, the one that shares
 * more bytes with it is smaller; if both share equally many, the bytes that follow decide. This is
 * enough to compare nearly any two keys, also if they share thousands of bytes with each other.
 *
 * A tournament of sorted runs keeps prints useful: whenever two keys are compared, the smaller one
 * becomes the base of the larger one. So the base of a key is always the last smaller key that it
 * met, which is near. In the first round there is no such key. Then the base may be any key of the
 * same order, a *pivot*; the functions whose names end with `around` take it.
 *
 * Order of calls: take, with the base; compare; if it decides, rebase the larger one. Keys of one
 * order are prefix-free.
 * Ownership: prints hold no memory. Pure; any thread.
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
    uint8_t bytes[KEY_PRINT_BYTES];     /* undefined after n_bytes */
};

/* Takes the print of a key. */
void key_print_take(const uint8_t *base, size_t base_bytes, const uint8_t *key, size_t n_bytes,
                    struct key_print *print);

/* Compares two keys by their prints, which have the same base. Returns false if the prints do not
   decide, else true and *c: below 0, 0, above 0. */
bool key_print_compare(const struct key_print *a, const struct key_print *b, int *c);

/* After key_print_compare has found that the key of `low` is not above that of `high`: makes the
   key of `low` the base of `high`. */
void key_print_rebase(const struct key_print *low, struct key_print *high);

/* The same if the base of both is a pivot. Afterwards it still is that of `low`. */
bool key_print_compare_around(const uint8_t *pivot, const struct key_print *a,
                              const struct key_print *b, int *c);
void key_print_rebase_around(const uint8_t *pivot, const struct key_print *low,
                             struct key_print *high);

#endif
