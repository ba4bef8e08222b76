/*
 * huffman.h -- makes Huffman codes for deflate (RFC 1951, section 3.2).
 *
 * Pure functions; the caller owns all arrays.
 */
#ifndef ROCKSORT_DEFLATE_HUFFMAN_H
#define ROCKSORT_DEFLATE_HUFFMAN_H

#include <stdint.h>

enum {
    N_LITERAL_SYMBOLS = 286,    /* 256 bytes, the end of a block, 29 classes of lengths */
    N_DISTANCE_SYMBOLS = 30,
    N_LENGTH_SYMBOLS = 19,      /* of the code length code, which encodes the other two */
    FIRST_LENGTH_SYMBOL = 257,
    END_SYMBOL = 256,
};

/* Makes a canonical code for n_symbols (at most 288) with these counts (below 2^23). Codes have at
   most usual_bits, or max_bits if that makes files much smaller. An unused symbol has length 0; if
   only one is used it has length 1. The first bit of a code is its lowest. */
void huffman_code(const uint32_t *counts, unsigned n_symbols, unsigned usual_bits,
                  unsigned max_bits, uint8_t *lengths, uint16_t *codes);

#endif
