/* prices.c -- see prices.h. */
#include "deflate/prices.h"

/* Returns 16 * log2(n), rounded down, from the highest six bits of n. */
static unsigned log2_sixteenths(uint32_t n)
{
    static const uint8_t fractions[32] = {0, 0, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10,
                                          10, 11, 11, 12, 12, 12, 13, 13, 14, 14, 14, 15, 15};
    unsigned whole = highest_bit(n);
    return PRICE_OF_BIT * whole + fractions[((uint64_t)n << 5 >> whole) & 31];
}

/* Returns the price of a symbol that occurs n times; an unused symbol is expensive. */
static unsigned price_of(unsigned log2_all, uint32_t n)
{
    enum { RARE_BITS = 12 };
    return n > 0 ? log2_all - log2_sixteenths(n) : RARE_BITS * PRICE_OF_BIT;
}

void prices_guess(struct prices *prices, const uint8_t *bytes, size_t n_bytes, bool is_noisy)
{
    /* Tuned on many kinds of blocks. In noisy bytes few matches save bits. */
    enum { STEP_BYTES = 7, LENGTH_SHIFT = 4, NOISY_LENGTH_SHIFT = 8 };
    struct token_counts counts = {{0}, {0}};
    uint32_t n = 0;
    for (size_t i = 0; i < n_bytes; i += STEP_BYTES, n++) counts.literals[bytes[i]]++;
    for (unsigned i = FIRST_LENGTH_SYMBOL; i < N_LITERAL_SYMBOLS; i++)
        counts.literals[i] = n >> (is_noisy ? NOISY_LENGTH_SHIFT : LENGTH_SHIFT);
    for (unsigned i = 0; i < N_DISTANCE_SYMBOLS; i++) counts.distances[i] = 1;
    prices_set(prices, &counts);
}

void prices_set(struct prices *prices, const struct token_counts *counts)
{
    uint32_t n_literals = 1, n_distances = 1;
    for (unsigned i = 0; i < N_LITERAL_SYMBOLS; i++) n_literals += counts->literals[i];
    for (unsigned i = 0; i < N_DISTANCE_SYMBOLS; i++) n_distances += counts->distances[i];
    unsigned all = log2_sixteenths(n_literals);
    for (unsigned i = 0; i < 256; i++)
        prices->literals[i] = (uint16_t)price_of(all, counts->literals[i]);
    for (unsigned i = 0; i < N_LENGTH_CLASSES; i++) {
        unsigned n_bits = length_extra_bits(i), first = length_base(i);
        unsigned price = price_of(all, counts->literals[FIRST_LENGTH_SYMBOL + i]);
        for (unsigned n = first; n < first + (1u << n_bits); n++)
            prices->lengths[n] = (uint16_t)(price + PRICE_OF_BIT * n_bits);
    }
    all = log2_sixteenths(n_distances);
    for (unsigned bit = 0; bit < 15; bit++) {
        uint32_t n = counts->distances[2 * bit] + counts->distances[2 * bit + 1];
        prices->distances[bit] = (uint16_t)(price_of(all, n) + PRICE_OF_BIT * bit);
    }
}

/* Like prices_of_all, for one code. */
static uint64_t price_of_code(const uint32_t *counts, unsigned n_symbols)
{
    uint32_t all = 0;
    uint64_t saved = 0;
    for (unsigned i = 0; i < n_symbols; i++) {
        all += counts[i];
        if (counts[i] > 1) saved += (uint64_t)counts[i] * log2_sixteenths(counts[i]);
    }
    return all > 0 ? (uint64_t)all * log2_sixteenths(all) - saved : 0;
}

uint64_t prices_of_all(const struct token_counts *counts)
{
    return price_of_code(counts->literals, N_LITERAL_SYMBOLS) +
           price_of_code(counts->distances, N_DISTANCE_SYMBOLS);
}
