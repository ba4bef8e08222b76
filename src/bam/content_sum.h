/*
 * content_sum.h -- computes a checksum of records that does not depend on their order: the number
 * of records, their total bytes, and the sum, modulo 2^64, of the XXH3-64 hashes of the raw BAM
 * bytes of each record, block_size field included. A sort compares the checksums of its input and
 * its output.
 *
 * A sum starts as {0}. Partial sums, such as those of several threads, can be joined.
 */
#ifndef ROCKSORT_BAM_CONTENT_SUM_H
#define ROCKSORT_BAM_CONTENT_SUM_H

#include "util/long_hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct content_sum {
    uint64_t n_records;
    uint64_t n_bytes;
    uint64_t hash;
};

static inline void content_sum_add(struct content_sum *sum, const uint8_t *rec, size_t rec_bytes)
{
    sum->n_records++;
    sum->n_bytes += rec_bytes;
    sum->hash += long_hash(rec, rec_bytes);
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
