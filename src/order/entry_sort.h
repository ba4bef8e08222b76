/*
 * entry_sort.h -- entries, which stand for records while records are sorted and merged, and a
 * stable sort of the entries of one batch.
 *
 * In a fixed order (sort_order_is_fixed) an entry holds the whole key and points to the record. In
 * any other order it points to a keyed_record, which has the key (bam_sort_key.h) and points to the
 * record. The `prefix` of the entry then is 8 bytes of the key. The function that sorts or
 * merges chooses the depth at which they begin: if all names share their first 20 bytes, the first
 * 8 bytes would not distinguish any.
 *
 * Ownership: the caller owns all memory; nothing is allocated and nothing can fail. Functions may
 * be called from any thread, on different entries.
 */
#ifndef ROCKSORT_ORDER_ENTRY_SORT_H
#define ROCKSORT_ORDER_ENTRY_SORT_H

#include "bam_sort_key.h"

#include <stddef.h>

struct sort_entry {
    uint64_t prefix;            /* fixed order: the key; else 8 bytes of the key, see above */
    const void *ref;            /* fixed order: the record; else its keyed_record */
};

struct keyed_record {
    const uint8_t *record;
    uint32_t key_bytes;
    uint8_t key[];              /* has key_bytes bytes; the first 4 lie in the padding of the
                                   struct */
};

/* Distance in bytes from one keyed_record to the next in an array of them. */
static inline size_t keyed_record_bytes(size_t key_bytes)
{
    return (offsetof(struct keyed_record, key) + key_bytes + 7) & ~(size_t)7;
}

static inline const uint8_t *sort_entry_record(enum sort_order order,
                                               const struct sort_entry *entry)
{
    if (sort_order_is_fixed(order)) return entry->ref;
    return ((const struct keyed_record *)entry->ref)->record;
}

/* 8 bytes of a key from `depth` on, as an integer in memcmp order. Zeros follow the end of the
   key. */
static inline uint64_t keyed_record_prefix(const struct keyed_record *kr, size_t depth)
{
    uint64_t bytes = 0;
    if (depth + 8 <= kr->key_bytes) {
        memcpy(&bytes, kr->key + depth, 8);
    } else if (depth < kr->key_bytes) {
        memcpy(&bytes, kr->key + depth, kr->key_bytes - depth);
    }
    return __builtin_bswap64(bytes);
}

/* Compares two keys whose first `depth` bytes are equal: below 0, 0, above 0. */
static inline int keyed_record_compare(const struct keyed_record *a, const struct keyed_record *b,
                                       size_t depth)
{
    /* Keys are prefix-free: if the shorter one has no other bytes, they are equal. */
    size_t n = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
    return depth < n ? memcmp(a->key + depth, b->key + depth, n - depth) : 0;
}

/*
 * Sorts n entries by their keys. Equal keys keep their order. `spare` has room for n entries, and
 * its content is undefined afterwards. In an order that is not fixed this function sets the
 * prefixes; the caller need not set them.
 */
void sort_entries(const struct sort_rules *rules, struct sort_entry *entries, size_t n,
                  struct sort_entry *spare);

#endif
