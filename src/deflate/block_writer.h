/*
 * block_writer.h -- writes tokens as deflate blocks (RFC 1951, section 3.2).
 *
 * Ownership: the caller owns all buffers. The output needs 8 spare bytes after its end.
 */
#ifndef ROCKSORT_DEFLATE_BLOCK_WRITER_H
#define ROCKSORT_DEFLATE_BLOCK_WRITER_H

#include "deflate/tokens.h"
#include "util/byte_order.h"

#include <stdbool.h>
#include <string.h>

struct bit_writer {
    uint64_t bits;
    unsigned n_bits;            /* below 8 after a flush */
    uint8_t *at;
};

/* At most 56 bits may be added between two flushes. */
static inline void bit_writer_add(struct bit_writer *writer, uint64_t bits, unsigned n_bits)
{
    writer->bits |= bits << writer->n_bits;
    writer->n_bits += n_bits;
}

static inline void bit_writer_flush(struct bit_writer *writer)
{
    (void)put_u64(writer->at, writer->bits);
    writer->at += writer->n_bits >> 3;
    writer->bits >>= writer->n_bits & 56;
    writer->n_bits &= 7;
}

/* The Huffman codes of a block, and their description in the block's header. */
struct block_codes {
    uint8_t literal_bits[N_LITERAL_SYMBOLS], distance_bits[N_DISTANCE_SYMBOLS];
    uint16_t literals[N_LITERAL_SYMBOLS], distances[N_DISTANCE_SYMBOLS];
    uint8_t symbols[N_LITERAL_SYMBOLS + N_DISTANCE_SYMBOLS];    /* of the code length code */
    uint8_t repeats[N_LITERAL_SYMBOLS + N_DISTANCE_SYMBOLS];    /* their extra bits */
    uint8_t symbol_bits[N_LENGTH_SYMBOLS];
    uint16_t symbol_codes[N_LENGTH_SYMBOLS];
    unsigned n_symbols, n_literals, n_distances, n_symbol_bits;
};

/* Makes the codes for these counts. */
void block_codes_make(struct block_codes *codes, struct token_counts *counts);

/* Writes a block of n sequences. Their literals start at *bytes, which moves to their end. */
void block_write(struct bit_writer *writer, const struct block_codes *codes, bool is_last,
                 const struct sequence *sequences, size_t n, const uint8_t **bytes);

#endif
