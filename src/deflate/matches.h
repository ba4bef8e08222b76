/*
 * matches.h -- chooses the tokens of a payload of BAM records.
 *
 * Ownership: the caller owns all buffers; a struct matcher is used by one thread at a time.
 */
#ifndef ROCKSORT_DEFLATE_MATCHES_H
#define ROCKSORT_DEFLATE_MATCHES_H

#include "deflate/prices.h"

#include <stdbool.h>

enum {
    MATCHER_PAD_BYTES = 32,     /* readable bytes before and after a payload */
    FIELD_HASH_BITS = 15,
    QUALITY_HASH_BITS = 14,
    BASES_HASH_BITS = 12,
    MOST_LATE_READS = 16,       /* of each parity; a power of 2 */
    MOST_CUTS = 32,
    MOST_SEQUENCES = MAX_PAYLOAD_BYTES / MIN_MATCH_BYTES + 1,
};

/* A read whose bases may be those of later ones. */
struct late_read {
    uint32_t at;                /* where its bases are in the payload */
    int32_t start;              /* of its first base, clipped or not, on the reference */
    int32_t n_bases;
};

struct matcher {
    const uint8_t *begin, *end; /* the payload */
    const uint8_t *after;       /* the end of the last match */
    struct prices prices;

    uint16_t field3[1 << FIELD_HASH_BITS], field6[1 << FIELD_HASH_BITS];
    uint16_t field10[1 << FIELD_HASH_BITS], field16[1 << FIELD_HASH_BITS];
    uint16_t quality6[1 << QUALITY_HASH_BITS], quality10[1 << QUALITY_HASH_BITS];
    uint16_t quality16[1 << QUALITY_HASH_BITS], bases3[1 << BASES_HASH_BITS];

    struct late_read reads[2][MOST_LATE_READS];         /* by the parity of their start */
    uint32_t n_reads[2];
    int32_t tid;                /* of these reads */

    struct sequence sequences[MOST_SEQUENCES];
    size_t n_sequences, n_counted;
    const uint8_t *counted;     /* the end of the sequences that are counted */
    struct token_counts counts;

    uint32_t cuts[MOST_CUTS];   /* where fields of long reads end, where other codes may be better */
    unsigned n_cuts;
};

/* Fills sequences, counts and cuts for a payload of 1 to MAX_PAYLOAD_BYTES. The last sequence has
   no match. level: as in deflate.h. */
void matcher_run(struct matcher *matcher, int level, const uint8_t *payload, size_t n_bytes);

#endif
