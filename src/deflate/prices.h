/*
 * prices.h -- estimates the cost of literals, lengths and distances, in sixteenths of a bit.
 *
 * Integers only, so that all processors choose the same matches. Pure functions.
 */
#ifndef ROCKSORT_DEFLATE_PRICES_H
#define ROCKSORT_DEFLATE_PRICES_H

#include "deflate/tokens.h"

#include <stdbool.h>

enum { PRICE_OF_BIT = 16 };

struct prices {
    uint16_t literals[256];
    uint16_t lengths[MAX_MATCH_BYTES + 1];
    uint16_t distances[16];     /* by the highest bit of distance - 1 */
};

/* Sets prices before any token is known; prices of literals are from the counts of the bytes. */
void prices_guess(struct prices *prices, const uint8_t *bytes, size_t n_bytes, bool is_noisy);

/* Sets the prices of codes for these counts. */
void prices_set(struct prices *prices, const struct token_counts *counts);

/* Returns the size of all tokens with the best codes in sixteenths of a bit, without extra bits. */
uint64_t prices_of_all(const struct token_counts *counts);

static inline unsigned price_of_match(const struct prices *prices, unsigned n_bytes,
                                      unsigned distance)
{
    return (unsigned)prices->lengths[n_bytes] +
           prices->distances[highest_bit((distance - 1) | 1)];
}

#endif
