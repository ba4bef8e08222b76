/* tokens.c -- see tokens.h. */
#include "deflate/tokens.h"

void token_count(const struct sequence *sequences, size_t n, const uint8_t **bytes,
                 struct token_counts *counts)
{
    const uint8_t *at = *bytes;
    uint32_t more[4][256] = {{0}};      /* equal bytes in a row would stall on one counter */
    uint32_t lengths[MAX_MATCH_BYTES + 1] = {0};
    for (size_t i = 0; i < n; i++) {
        unsigned left = sequences[i].n_literals, n_bytes = sequences[i].n_bytes;
        for (; left > 4; left -= 4, at += 4)
            for (unsigned k = 0; k < 4; k++) more[k][at[k]]++;
        /* Counts up to four without a branch, which would be mispredicted. */
        for (unsigned k = 0; k < 4; k++) more[k][at[k]] += left > k;
        at += left;
        lengths[n_bytes]++;
        counts->distances[distance_symbol(sequences[i].distance)] += n_bytes > 0;
        at += n_bytes;
    }
    for (unsigned i = 0; i < 256; i++)
        counts->literals[i] += more[0][i] + more[1][i] + more[2][i] + more[3][i];
    for (unsigned k = MIN_MATCH_BYTES, class = 0; k <= MAX_MATCH_BYTES; k++) {
        if (class < LONGEST_CLASS && k == length_base(class + 1)) class++;
        counts->literals[FIRST_LENGTH_SYMBOL + class] += lengths[k];
    }
    *bytes = at;
}
