/*
 * huffman.h -- Huffman codes of deflate (RFC 1951, section 3.2).
 *
 * Pure functions; the caller owns all arrays.
 */
#ifndef ROCKSORT_DEFLATE_HUFFMAN_H
#define ROCKSORT_DEFLATE_HUFFMAN_H

#include <stdint.h>

enum {
    N_LITERAL_SYMBOLS = 286,    /* 256 bytes, the end of a block, 29 classes of lengths */
    N_DISTANCE_SYMBOLS = 30,
    N_LENGTH_SYMBOLS = 19,      /* of the code in which the other two are written */
    FIRST_LENGTH_SYMBOL = 257,
    END_SYMBOL = 256,
};

/*
 * Computes code lengths of at most max_bits for n_symbols, at most 288, with these counts. A symbol
 * that does not occur has length 0. A single symbol has length 1. Counts are below 2^23.
 */
void huffman_lengths(const uint32_t *counts, unsigned n_symbols, unsigned max_bits,
                     uint8_t *lengths);

/* Computes the canonical codes of these lengths, with the first bit of a code in its lowest bit. */
void huffman_codes(const uint8_t *lengths, unsigned n_symbols, uint16_t *codes);

#endif
