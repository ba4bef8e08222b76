/*
 * matches.h -- chooses the matches and literals of a payload of BAM records.
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
    QUALITY_HASH_BITS = 13,
    BASES_HASH_BITS = 12,
    MOST_LATE_READS = 16,       /* of each parity; a power of 2 */
    MOST_PARTS = 32,
    MOST_SEQUENCES = MAX_PAYLOAD_BYTES / MIN_MATCH_BYTES + MOST_PARTS,
};

/* A recent read, whose bases later reads may overlap. */
struct late_read {
    uint32_t at;                /* offset of its bases in the payload */
    int32_t start;              /* reference position of its first base, clipped or not */
    int32_t n_bases;
};

/* Consecutive sequences that may get codes of their own. Payloads with long reads have a part for
   each large field. */
struct part {
    size_t n_sequences;
    struct token_counts counts;
};

struct matcher {
    const uint8_t *begin, *end; /* the payload */
    const uint8_t *after;       /* the end of the last match */
    struct prices prices;

    uint16_t field3[1 << FIELD_HASH_BITS], field6[1 << FIELD_HASH_BITS];
    uint16_t field16[1 << FIELD_HASH_BITS];
    uint16_t quality6[1 << QUALITY_HASH_BITS], quality16[1 << QUALITY_HASH_BITS];
    uint16_t bases3[1 << BASES_HASH_BITS];

    struct late_read reads[2][MOST_LATE_READS];         /* by the parity of their start */
    uint32_t n_reads[2];
    int32_t tid;                /* of these reads */

    struct sequence sequences[MOST_SEQUENCES];
    size_t n_sequences, n_counted;
    const uint8_t *counted;     /* the end of the counted sequences */
    struct part parts[MOST_PARTS + 1];
    unsigned n_parts;           /* that have ended */
};

/* Fills sequences and parts for a payload of at most MAX_PAYLOAD_BYTES. The last sequence of a part
   may have no match. `level` is that of deflate.h. */
void matcher_run(struct matcher *matcher, int level, const uint8_t *payload, size_t n_bytes);

#endif
