/* prices.c -- see prices.h. */
#include "deflate/prices.h"

/* 16 * log2(n), rounded down: the mantissa is squared once for each bit of the fraction. */
static unsigned log2_sixteenths(uint32_t n)
{
    unsigned whole = highest_bit(n), result = whole;
    uint64_t mantissa = ((uint64_t)n << 31) >> whole;   /* 1 to 2, as 2^31 to 2^32 */
    for (unsigned bit = 0; bit < 4; bit++) {
        mantissa = mantissa * mantissa >> 31;
        unsigned carry = (unsigned)(mantissa >> 32);
        mantissa >>= carry;
        result = result << 1 | carry;
    }
    return result;
}

/* The price of a symbol that occurs n of all times; a symbol that does not occur is dear. */
static unsigned price_of(unsigned log2_all, uint32_t n)
{
    enum { RARE_BITS = 12 };
    return n > 0 ? log2_all - log2_sixteenths(n) : RARE_BITS * PRICE_OF_BIT;
}

static void set_lengths(struct prices *prices, const unsigned classes[29])
{
    for (unsigned n = MIN_MATCH_BYTES; n <= MAX_MATCH_BYTES; n++) {
        unsigned class = length_class[n];
        prices->lengths[n] = (uint16_t)(classes[class] + PRICE_OF_BIT * length_extra_bits[class]);
    }
}

void prices_guess(struct prices *prices, const uint8_t *bytes, size_t n_bytes, bool is_noisy)
{
    /* From blocks of many kinds. Of noisy bytes few matches are worth their price. */
    enum { LENGTH_BITS = 6, NOISY_LENGTH_BITS = 8, DISTANCE_BITS = 4, STEP_BYTES = 7 };
    uint32_t counts[256] = {0}, n = 1;
    unsigned classes[29], usual = is_noisy ? NOISY_LENGTH_BITS : LENGTH_BITS;
    for (size_t i = 0; i < n_bytes; i += STEP_BYTES, n++) counts[bytes[i]]++;
    unsigned all = log2_sixteenths(n) + (is_noisy ? 0 : PRICE_OF_BIT);
    for (unsigned i = 0; i < 256; i++) prices->literals[i] = (uint16_t)price_of(all, counts[i]);
    for (unsigned i = 0; i < 29; i++) classes[i] = PRICE_OF_BIT * usual;
    set_lengths(prices, classes);
    for (unsigned bit = 0; bit < 16; bit++)
        prices->distances[bit] = (uint16_t)(PRICE_OF_BIT * (DISTANCE_BITS + (bit ? bit - 1 : 0)));
}

void prices_set(struct prices *prices, const struct token_counts *counts)
{
    uint32_t n_literals = 1, n_distances = 1;
    unsigned classes[29];
    for (unsigned i = 0; i < N_LITERAL_SYMBOLS; i++) n_literals += counts->literals[i];
    for (unsigned i = 0; i < N_DISTANCE_SYMBOLS; i++) n_distances += counts->distances[i];
    unsigned all = log2_sixteenths(n_literals);
    for (unsigned i = 0; i < 256; i++)
        prices->literals[i] = (uint16_t)price_of(all, counts->literals[i]);
    for (unsigned i = 0; i < 29; i++)
        classes[i] = price_of(all, counts->literals[FIRST_LENGTH_SYMBOL + i]);
    set_lengths(prices, classes);
    all = log2_sixteenths(n_distances);
    for (unsigned bit = 0; bit < 15; bit++) {
        uint32_t n = counts->distances[2 * bit] + counts->distances[2 * bit + 1];
        prices->distances[bit] = (uint16_t)(price_of(all, n) + PRICE_OF_BIT * bit);
    }
}

/* The same of one code. */
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
