/* block_writer.c -- see block_writer.h. */
#include "deflate/block_writer.h"

enum {
    USUAL_LITERAL_BITS = 11,    /* longer codes inflate slowly */
    MOST_LITERAL_BITS = 12,     /* four fit into 64 bits together with 7 unflushed bits */
    MOST_DISTANCE_BITS = 15,
    MOST_SYMBOL_BITS = 7,
    REPEAT_LAST = 16, FEW_ZEROS = 17, MANY_ZEROS = 18,
};

static const uint8_t symbol_order[N_LENGTH_SYMBOLS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                       11, 4,  12, 3, 13, 2, 14, 1, 15};

static unsigned repeat_bits(unsigned symbol)
{
    return symbol == REPEAT_LAST ? 2 : symbol == FEW_ZEROS ? 3 : symbol == MANY_ZEROS ? 7 : 0;
}

static void put_symbol(struct block_codes *codes, uint32_t *counts, unsigned symbol, unsigned extra)
{
    codes->symbols[codes->n_symbols] = (uint8_t)symbol;
    codes->repeats[codes->n_symbols++] = (uint8_t)extra;
    counts[symbol]++;
}

/* Writes a run of n equal lengths as symbols. */
static void put_run(struct block_codes *codes, uint32_t *counts, unsigned length, unsigned n)
{
    if (length > 0) {
        put_symbol(codes, counts, length, 0);
        n--;
    }
    while (n >= 3) {
        unsigned most = length > 0 ? 6 : n < 11 ? 10 : 138, k = n < most ? n : most;
        if (length > 0)
            put_symbol(codes, counts, REPEAT_LAST, k - 3);
        else
            put_symbol(codes, counts, k < 11 ? FEW_ZEROS : MANY_ZEROS, k < 11 ? k - 3 : k - 11);
        n -= k;
    }
    while (n-- > 0) put_symbol(codes, counts, length, 0);
}

/* Makes the code length code (RFC 1951, section 3.2.7). */
static void make_symbols(struct block_codes *codes)
{
    uint8_t lengths[N_LITERAL_SYMBOLS + N_DISTANCE_SYMBOLS];
    uint32_t counts[N_LENGTH_SYMBOLS] = {0};
    codes->n_literals = N_LITERAL_SYMBOLS;
    codes->n_distances = N_DISTANCE_SYMBOLS;
    while (codes->literal_bits[codes->n_literals - 1] == 0) codes->n_literals--;
    while (codes->n_distances > 1 && codes->distance_bits[codes->n_distances - 1] == 0)
        codes->n_distances--;
    if (codes->n_literals < FIRST_LENGTH_SYMBOL) codes->n_literals = FIRST_LENGTH_SYMBOL;
    unsigned n = codes->n_literals + codes->n_distances;
    memcpy(lengths, codes->literal_bits, codes->n_literals);
    memcpy(lengths + codes->n_literals, codes->distance_bits, codes->n_distances);
    codes->n_symbols = 0;
    for (unsigned i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && lengths[k] == lengths[i];) k++;
        put_run(codes, counts, lengths[i], k - i);
    }
    huffman_code(counts, N_LENGTH_SYMBOLS, MOST_SYMBOL_BITS, MOST_SYMBOL_BITS, codes->symbol_bits,
                 codes->symbol_codes);
    codes->n_symbol_bits = N_LENGTH_SYMBOLS;
    while (codes->n_symbol_bits > 4 &&
           codes->symbol_bits[symbol_order[codes->n_symbol_bits - 1]] == 0)
        codes->n_symbol_bits--;
}

void block_codes_make(struct block_codes *codes, struct token_counts *counts)
{
    counts->literals[END_SYMBOL] = 1;
    /* Some inflaters refuse a code of a single distance. */
    for (unsigned i = 0; i < 2; i++)
        if (counts->distances[i] == 0) counts->distances[i] = 1;
    huffman_code(counts->literals, N_LITERAL_SYMBOLS, USUAL_LITERAL_BITS, MOST_LITERAL_BITS,
                 codes->literal_bits, codes->literals);
    huffman_code(counts->distances, N_DISTANCE_SYMBOLS, MOST_DISTANCE_BITS, MOST_DISTANCE_BITS,
                 codes->distance_bits, codes->distances);
    make_symbols(codes);
}

static void write_header(struct bit_writer *writer, const struct block_codes *codes, bool is_last)
{
    enum { DYNAMIC_CODES = 2 };
    bit_writer_add(writer, (unsigned)is_last | DYNAMIC_CODES << 1, 3);
    bit_writer_add(writer, codes->n_literals - FIRST_LENGTH_SYMBOL, 5);
    bit_writer_add(writer, codes->n_distances - 1, 5);
    bit_writer_add(writer, codes->n_symbol_bits - 4, 4);
    bit_writer_flush(writer);
    for (unsigned i = 0; i < codes->n_symbol_bits; i++) {
        bit_writer_add(writer, codes->symbol_bits[symbol_order[i]], 3);
        bit_writer_flush(writer);
    }
    for (unsigned i = 0; i < codes->n_symbols; i++) {
        unsigned symbol = codes->symbols[i];
        bit_writer_add(writer, codes->symbol_codes[symbol], codes->symbol_bits[symbol]);
        bit_writer_add(writer, codes->repeats[i], repeat_bits(symbol));
        bit_writer_flush(writer);
    }
}

/* Codes, ready to write: the number of bits is in the high bits. */
struct ready_codes {
    uint32_t literals[256], lengths[MAX_MATCH_BYTES + 1], distances[N_DISTANCE_SYMBOLS];
};

enum { CODE_BITS = 24 };        /* low bits of an entry, for the code */

static void make_ready(const struct block_codes *codes, struct ready_codes *ready)
{
    for (unsigned i = 0; i < 256; i++)
        ready->literals[i] = codes->literals[i] | (uint32_t)codes->literal_bits[i] << CODE_BITS;
    for (unsigned class = 0; class < N_LENGTH_CLASSES; class++) {
        unsigned symbol = FIRST_LENGTH_SYMBOL + class, n_bits = codes->literal_bits[symbol];
        unsigned n_extra = length_extra_bits(class);
        for (uint32_t i = 0; i < 1u << n_extra; i++)
            ready->lengths[length_base(class) + i] =
                codes->literals[symbol] | i << n_bits | (n_bits + n_extra) << CODE_BITS;
    }
    for (unsigned i = 0; i < N_DISTANCE_SYMBOLS; i++)
        ready->distances[i] = codes->distances[i] | (uint32_t)codes->distance_bits[i] << CODE_BITS;
}

static inline void add_code(struct bit_writer *writer, uint32_t code)
{
    bit_writer_add(writer, code & (((uint32_t)1 << CODE_BITS) - 1), code >> CODE_BITS);
}

void block_write(struct bit_writer *writer, const struct block_codes *codes, bool is_last,
                 const struct sequence *sequences, size_t n, const uint8_t **bytes)
{
    struct ready_codes ready;
    struct bit_writer w = *writer;
    const uint8_t *at = *bytes;
    make_ready(codes, &ready);
    write_header(&w, codes, is_last);
    for (size_t i = 0; i < n; i++) {
        unsigned left = sequences[i].n_literals, n_bytes = sequences[i].n_bytes;
        for (; left > 4; left -= 4, at += 4) {
            for (unsigned k = 0; k < 4; k++) add_code(&w, ready.literals[at[k]]);
            bit_writer_flush(&w);
        }
        /* Adds up to four without a branch, which would be mispredicted. */
        for (unsigned k = 0; k < 4; k++)
            add_code(&w, ready.literals[at[k]] & -(uint32_t)(left > k));
        bit_writer_flush(&w);
        at += left;
        if (n_bytes == 0) continue;
        unsigned distance = sequences[i].distance, symbol = distance_symbol(distance);
        add_code(&w, ready.lengths[n_bytes]);
        add_code(&w, ready.distances[symbol]);
        bit_writer_add(&w, distance - distance_base(symbol), distance_extra_bits(symbol));
        bit_writer_flush(&w);
        at += n_bytes;
    }
    bit_writer_add(&w, codes->literals[END_SYMBOL], codes->literal_bits[END_SYMBOL]);
    bit_writer_flush(&w);
    *bytes = at;
    *writer = w;
}
