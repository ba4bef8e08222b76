/* name_filter.c -- see name_filter.h. */
#include "duplicates/name_filter.h"

#include "duplicates/view_streams.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum {
    BITS_EACH = 16,
    MIN_SLICE_BITS = 512,       /* a cache line: partitions share none */
    SECOND_SHIFT = 28,          /* of the hash; its highest bits are the partition */
    MAX_SLICE_BITS = 1 << SECOND_SHIFT,
};

/* The bits of a partition follow one another. */
struct name_filter {
    uint64_t slice_bits;        /* of a partition, a power of two */
    uint64_t *words;
};

struct name_filter *name_filter_create(uint64_t n_names, size_t limit_bytes)
{
    struct name_filter *filter = xcalloc(1, sizeof *filter);
    uint64_t bits = MIN_SLICE_BITS;
    while (bits * VIEW_N_PARTITIONS / BITS_EACH < n_names && bits < MAX_SLICE_BITS &&
           2 * bits / 8 * VIEW_N_PARTITIONS <= limit_bytes)
        bits *= 2;
    filter->slice_bits = bits;
    filter->words = xcalloc(VIEW_N_PARTITIONS, bits / 8);
    return filter;
}

void name_filter_destroy(struct name_filter *filter)
{
    if (!filter) return;
    free(filter->words);
    free(filter);
}

/* The places of both bits of a name. */
struct filter_bits { uint64_t a, b; };

static struct filter_bits bits_of(const struct name_filter *filter, uint64_t hash)
{
    uint64_t base = view_name_partition(hash) * filter->slice_bits, mask = filter->slice_bits - 1;
    return (struct filter_bits){base + (hash & mask), base + (hash >> SECOND_SHIFT & mask)};
}

void name_filter_add(struct name_filter *filter, uint64_t name_hash)
{
    struct filter_bits bits = bits_of(filter, name_hash);
    filter->words[bits.a / 64] |= UINT64_C(1) << bits.a % 64;
    filter->words[bits.b / 64] |= UINT64_C(1) << bits.b % 64;
}

bool name_filter_may_have(const struct name_filter *filter, uint64_t name_hash)
{
    struct filter_bits bits = bits_of(filter, name_hash);
    return (filter->words[bits.a / 64] >> bits.a % 64 & 1) &&
           (filter->words[bits.b / 64] >> bits.b % 64 & 1);
}
