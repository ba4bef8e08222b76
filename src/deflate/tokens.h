/*
 * tokens.h -- maps literals and matches of deflate to symbols, and counts these.
 *
 * A match copies 3 to 258 bytes from a distance of 1 to 32,768 bytes.
 */
#ifndef ROCKSORT_DEFLATE_TOKENS_H
#define ROCKSORT_DEFLATE_TOKENS_H

#include "deflate/huffman.h"

#include <stddef.h>
#include <stdint.h>

enum {
    MIN_MATCH_BYTES = 3,
    MAX_MATCH_BYTES = 258,
    MAX_DISTANCE = 32768,
    MAX_PAYLOAD_BYTES = 65535,
};

static inline unsigned highest_bit(uint32_t n)
{
    return 31 - (unsigned)__builtin_clz(n);
}

/* Classes of lengths (RFC 1951, section 3.2.5): how many bits follow, and the shortest length. */
enum { N_LENGTH_CLASSES = 29, LONGEST_CLASS = 28 };

static inline unsigned length_extra_bits(unsigned class)
{
    return class < 8 || class == LONGEST_CLASS ? 0 : class / 4 - 1;
}

static inline unsigned length_base(unsigned class)
{
    if (class < 4) return MIN_MATCH_BYTES + class;
    if (class == LONGEST_CLASS) return MAX_MATCH_BYTES;
    return MIN_MATCH_BYTES + ((4 + (class & 3)) << (class / 4 - 1));
}

static inline unsigned distance_extra_bits(unsigned symbol)
{
    return symbol < 4 ? 0 : symbol / 2 - 1;
}

/* Returns the symbol of a distance, 0 to 29. */
static inline unsigned distance_symbol(uint32_t distance)
{
    if (distance <= 2) return distance - 1;
    unsigned bit = highest_bit(distance - 1);
    return 2 * bit + ((distance - 1) >> (bit - 1) & 1);
}

static inline uint32_t distance_base(unsigned symbol)
{
    return symbol < 2 ? symbol + 1 : ((2 + (symbol & 1)) << (symbol / 2 - 1)) + 1;
}

/* n_literals literals, then a match of n_bytes; no match if that is 0. */
struct sequence {
    uint16_t n_literals, n_bytes, distance;
};

struct token_counts {
    uint32_t literals[N_LITERAL_SYMBOLS];       /* bytes, the end, classes of lengths */
    uint32_t distances[N_DISTANCE_SYMBOLS];
};

/* Counts the tokens of n sequences, but not the end of the block. The literals start at *bytes,
   which moves to the end of the last sequence. */
void token_count(const struct sequence *sequences, size_t n, const uint8_t **bytes,
                 struct token_counts *counts);

#endif
