/*
 * content_sum.h -- the order-independent checksum of a set of records: their number, their bytes
 * and the sum, modulo 2^64, of the XXH3-64 of each record's raw BAM bytes (block_size field
 * included).
 *
 * It is computed over what comes in and over what goes out; a lost, doubled or altered record
 * changes it, a different order does not.
 */
#ifndef ROCKSORT_BAM_CONTENT_SUM_H
#define ROCKSORT_BAM_CONTENT_SUM_H

#include "bam/bam_fields.h"

#include <stdbool.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

struct content_sum {
    uint64_t n_records;
    uint64_t n_bytes;
    uint64_t hash;
};

static inline void content_sum_add(struct content_sum *sum, const uint8_t *rec, size_t rec_bytes)
{
    sum->n_records++;
    sum->n_bytes += rec_bytes;
    sum->hash += XXH3_64bits(rec, rec_bytes);
}

static inline void content_sum_join(struct content_sum *sum, const struct content_sum *other)
{
    sum->n_records += other->n_records;
    sum->n_bytes += other->n_bytes;
    sum->hash += other->hash;
}

static inline bool content_sum_equal(const struct content_sum *a, const struct content_sum *b)
{
    return a->n_records == b->n_records && a->n_bytes == b->n_bytes && a->hash == b->hash;
}

#endif
