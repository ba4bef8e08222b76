/* tokens.c -- see tokens.h. */
#include "deflate/tokens.h"

#include <string.h>

const uint16_t length_base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                  31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
const uint8_t length_extra_bits[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                       2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
const uint8_t length_class[MAX_MATCH_BYTES + 1] = {
    0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14,
    14, 14, 14, 15, 15, 15, 15, 16, 16, 16, 16, 16, 16, 16, 16, 17, 17, 17, 17, 17, 17, 17, 17, 18,
    18, 18, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 19, 20, 20, 20, 20, 20, 20, 20, 20, 20,
    20, 20, 20, 20, 20, 20, 20, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 22,
    22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 23, 23, 23, 23, 23, 23, 23, 23, 23,
    23, 23, 23, 23, 23, 23, 23, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24,
    24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 25, 25, 25, 25, 25, 25, 25, 25, 25,
    25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 26,
    26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26,
    26, 26, 26, 26, 26, 26, 26, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27,
    27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 28,
};

void token_count(const struct sequence *sequences, size_t n, const uint8_t **bytes,
                 struct token_counts *counts)
{
    const uint8_t *at = *bytes;
    uint32_t more[4][256];      /* consecutive bytes are often equal: four tables do not wait */
    memset(more, 0, sizeof more);
    for (size_t i = 0; i < n; i++) {
        unsigned left = sequences[i].n_literals, n_bytes = sequences[i].n_bytes;
        for (; left > 4; left -= 4, at += 4)
            for (unsigned k = 0; k < 4; k++) more[k][at[k]]++;
        /* Up to four are counted without a branch, which would be guessed wrongly. */
        for (unsigned k = 0; k < 4; k++) more[k][at[k]] += left > k;
        at += left;
        counts->literals[FIRST_LENGTH_SYMBOL + length_class[n_bytes]] += n_bytes > 0;
        counts->distances[distance_symbol(sequences[i].distance)] += n_bytes > 0;
        at += n_bytes;
    }
    for (unsigned i = 0; i < 256; i++)
        counts->literals[i] += more[0][i] + more[1][i] + more[2][i] + more[3][i];
    *bytes = at;
}

void token_counts_add(struct token_counts *counts, const struct token_counts *more)
{
    for (unsigned i = 0; i < N_LITERAL_SYMBOLS; i++) counts->literals[i] += more->literals[i];
    for (unsigned i = 0; i < N_DISTANCE_SYMBOLS; i++) counts->distances[i] += more->distances[i];
}
