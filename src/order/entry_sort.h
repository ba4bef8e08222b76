/*
 * entry_sort.h -- sorts the entries of one batch in memory, stably.
 *
 * An entry stands for one record while it is sorted and merged. In the coordinate order the entry
 * holds the whole key and points to the record. In every other order it points to a keyed_record,
 * which holds key and record, and its `prefix` is 8 bytes of the key from a depth that whoever
 * sorts or merges chooses: with names that share their first 20 bytes the first 8 would tell
 * nothing apart.
 *
 * Ownership: the caller owns all memory. Functions are pure and may run on different entries in
 * different threads.
 */
#ifndef ROCKSORT_ORDER_ENTRY_SORT_H
#define ROCKSORT_ORDER_ENTRY_SORT_H

#include "bam_sort_key.h"

#include <stddef.h>

struct sort_entry {
    uint64_t prefix;            /* fixed order: the key; else 8 key bytes, see above */
    const void *ref;            /* fixed order: the record; else its keyed_record */
};

struct keyed_record {
    const uint8_t *record;
    uint32_t key_bytes;
    uint8_t key[];              /* key_bytes of them; 4 lie in the padding of the struct */
};

/* Bytes that a keyed_record with a key of key_bytes takes in a packed sequence of them. */
static inline size_t keyed_record_bytes(size_t key_bytes)
{
    return (offsetof(struct keyed_record, key) + key_bytes + 7) & ~(size_t)7;
}

static inline const uint8_t *sort_entry_record(enum sort_order order, const struct sort_entry
   *entry) {
    if (sort_order_is_fixed(order)) return entry->ref;
    return ((const struct keyed_record *)entry->ref)->record;
}

/* 8 bytes of a key from `depth` on as an integer in memcmp order; zeros stand behind its end. */
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

/* The key comparison proper, from byte `depth` on; the keys agree before. */
static inline int keyed_record_compare(const struct keyed_record *a, const struct keyed_record *b,
                                       size_t depth)
{
    size_t n = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
    if (depth >= n) return 0;   /* prefix-free: the keys are equal */
    return memcmp(a->key + depth, b->key + depth, n - depth);
}

/*
 * Sorts n entries by their keys; equal keys keep their order. `spare` has room for n entries; its
 * content on return is undefined. In other orders than coordinate the prefixes are set here.
 */
void sort_entries(enum sort_order order, struct sort_entry *entries, size_t n,
                  struct sort_entry *spare);

#endif
