/*
 * huffman.c -- see huffman.h.
 *
 * Sorts the symbols by count. Moffat and Katajainen's algorithm ("In-Place Calculation of
 * Minimum-Redundancy Codes", 1995) then computes the number of codes of each length within the
 * array of counts. If codes are too long, they are cut, and others become longer.
 */
#include "deflate/huffman.h"

#include <assert.h>
#include <string.h>

enum {
    MOST_SYMBOLS = 288,
    SYMBOL_BITS = 9,            /* of the entries that are sorted; the count is above them */
    DEEPEST = 31,               /* below 2^23 counts, no code is longer */
    MOST_BITS = 15,
};

/* Collects count << SYMBOL_BITS | symbol of the symbols that occur, sorted by count. Returns their
   number. `spare` has the same size. */
static unsigned sort_symbols(const uint32_t *counts, unsigned n_symbols, uint32_t *entries,
                             uint32_t *spare)
{
    unsigned n = 0;
    uint32_t all = 0, *from = entries, *to = spare;
    for (unsigned i = 0; i < n_symbols; i++) {
        if (counts[i] == 0) continue;
        entries[n++] = counts[i] << SYMBOL_BITS | i;
        all |= counts[i];
    }
    for (unsigned shift = 0; shift == 0 || all >> shift != 0; shift += 8) {
        unsigned at[257] = {0};
        for (unsigned i = 0; i < n; i++) at[(from[i] >> SYMBOL_BITS >> shift & 255) + 1]++;
        for (unsigned i = 0; i < 256; i++) at[i + 1] += at[i];
        for (unsigned i = 0; i < n; i++) to[at[from[i] >> SYMBOL_BITS >> shift & 255]++] = from[i];
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != entries) memcpy(entries, from, n * sizeof *entries);
    return n;
}

/* Returns the weight of the next node to be joined: the lighter of the first free leaf and the
   first inner node without a parent. Inner nodes lie before `next`. */
static uint32_t take_lightest(uint32_t *w, unsigned n, unsigned next, unsigned *root,
                              unsigned *leaf)
{
    if (*leaf < n && (*root >= next || w[*leaf] <= w[*root])) return w[(*leaf)++];
    uint32_t weight = w[*root];
    w[(*root)++] = next;
    return weight;
}

/* Replaces the sorted weights of n >= 2 symbols with the depth of each inner node. */
static void build_tree(uint32_t *w, unsigned n)
{
    unsigned root = 0, leaf = 0;
    for (unsigned next = 0; next < n - 1; next++) {
        uint32_t a = take_lightest(w, n, next, &root, &leaf);
        uint32_t b = take_lightest(w, n, next, &root, &leaf);
        w[next] = a + b;
    }
    w[n - 2] = 0;
    for (unsigned i = n - 2; i-- > 0;) w[i] = w[w[i]] + 1;
}

/* Counts the leaves at each depth of the tree whose inner nodes have these depths. */
static void count_leaves(const uint32_t *depths, unsigned n, unsigned n_codes[DEEPEST + 1])
{
    unsigned left = n - 1, n_free = 1;
    for (unsigned depth = 0; n_free > 0; depth++) {
        unsigned n_inner = 0;
        for (; left > 0 && depths[left - 1] == depth; left--) n_inner++;
        n_codes[depth] = n_free - n_inner;
        n_free = 2 * n_inner;
    }
}

/* Returns by how much the Kraft sum of the codes, cut at max_bits, exceeds one, in units of
   2^-max_bits. */
static uint32_t excess(const unsigned n_codes[DEEPEST + 1], unsigned max_bits)
{
    uint32_t sum = 0;
    for (unsigned bits = 1; bits <= DEEPEST; bits++)
        sum += n_codes[bits] << (bits < max_bits ? max_bits - bits : 0);
    return sum - ((uint32_t)1 << max_bits);
}

/* Cuts codes above max_bits and makes others one bit longer until the Kraft sum is one. Each step
   lengthens the code of a length's rarest symbol that costs least for the space it frees. The last
   step may split a code in two, to replace a code of max_bits. Files are as small as with the best
   code of limited length. */
static void limit_lengths(unsigned n_codes[DEEPEST + 1], unsigned max_bits, const uint32_t *entries)
{
    uint32_t too_much = excess(n_codes, max_bits);
    for (unsigned bits = max_bits + 1; bits <= DEEPEST; bits++) {
        n_codes[max_bits] += n_codes[bits];
        n_codes[bits] = 0;
    }
    while (too_much > 0) {
        unsigned best = 0, first = n_codes[max_bits];
        uint64_t least = UINT64_MAX;
        for (unsigned bits = max_bits - 1;
             bits > 0 && (best == 0 || 1u << (max_bits - bits - 1) <= too_much); bits--) {
            if (n_codes[bits] == 0) continue;
            uint64_t price = (uint64_t)(entries[first] >> SYMBOL_BITS) << bits;
            first += n_codes[bits];
            if (price >= least) continue;
            best = bits;
            least = price;
        }
        uint32_t freed = (uint32_t)1 << (max_bits - best - 1);
        n_codes[best]--;
        n_codes[best + 1]++;
        if (freed > too_much) {
            n_codes[best + 1]++;
            n_codes[max_bits]--;
            freed = 1;
        }
        too_much -= freed;
    }
}

static uint16_t reverse(uint32_t code, unsigned n_bits)
{
    code = (code & 0x5555) << 1 | (code >> 1 & 0x5555);
    code = (code & 0x3333) << 2 | (code >> 2 & 0x3333);
    code = (code & 0x0f0f) << 4 | (code >> 4 & 0x0f0f);
    code = (code & 0x00ff) << 8 | (code >> 8 & 0x00ff);
    return (uint16_t)(code >> (16 - n_bits));
}

/* Assigns the codes of each length to the symbols in order. */
static void assign_codes(const uint8_t *lengths, unsigned n_symbols, uint16_t *codes)
{
    uint32_t n_of[MOST_BITS + 1] = {0}, next[MOST_BITS + 1] = {0};
    for (unsigned i = 0; i < n_symbols; i++) n_of[lengths[i]]++;
    n_of[0] = 0;
    for (unsigned bits = 1; bits <= MOST_BITS; bits++)
        next[bits] = (next[bits - 1] + n_of[bits - 1]) << 1;
    for (unsigned i = 0; i < n_symbols; i++)
        codes[i] = lengths[i] ? reverse(next[lengths[i]]++, lengths[i]) : 0;
}

void huffman_code(const uint32_t *counts, unsigned n_symbols, unsigned usual_bits,
                  unsigned max_bits, uint8_t *lengths, uint16_t *codes)
{
    enum { SYMBOL_MASK = (1 << SYMBOL_BITS) - 1 };
    uint32_t entries[MOST_SYMBOLS], weights[MOST_SYMBOLS];
    unsigned n_codes[DEEPEST + 1] = {0};
    assert(n_symbols <= MOST_SYMBOLS && max_bits <= MOST_BITS);
    memset(lengths, 0, n_symbols);
    unsigned n = sort_symbols(counts, n_symbols, entries, weights);
    if (n == 1) lengths[entries[0] & SYMBOL_MASK] = 1;
    if (n > 1) {
        for (unsigned i = 0; i < n; i++) weights[i] = entries[i] >> SYMBOL_BITS;
        build_tree(weights, n);
        count_leaves(weights, n, n_codes);
        if (excess(n_codes, usual_bits) <= (1u << usual_bits) / 20) max_bits = usual_bits;
        limit_lengths(n_codes, max_bits, entries);
        for (unsigned bits = max_bits, i = 0; bits > 0; bits--)
            for (unsigned k = 0; k < n_codes[bits]; k++)
                lengths[entries[i++] & SYMBOL_MASK] = (uint8_t)bits;
    }
    assign_codes(lengths, n_symbols, codes);
}
