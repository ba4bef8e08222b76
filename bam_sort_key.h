/*
 * bam_sort_key.h -- sort orders and their keys.
 *
 * A sort order turns a record into a string of bytes; records are in order when their keys are in
 * memcmp order. Nothing else in rocksort compares two records. Keys of one order are prefix-free
 * (no key is the beginning of another), so that a run number and an index can be appended to them
 * without disturbing the order.
 *
 * The coordinate key always has 8 bytes and is handled as one integer; the key of any other order
 * has a variable length. Orders are those of samtools sort 1.20 to 1.24 (doc/design.md has the
 * rules).
 *
 * All functions are pure, except sort_order_update_header, which changes the header it is given.
 */
#ifndef ROCKSORT_BAM_SORT_KEY_H
#define ROCKSORT_BAM_SORT_KEY_H

#include "bam_record.h"

#include <stdbool.h>

enum sort_order {
    SORT_COORDINATE,            /* reference, position, strand */
    SORT_NAME_NATURAL,          /* -n: read name, digits by value */
    SORT_NAME_LEXICAL,          /* -N: read name by strcmp */
};

enum { SORT_KEY_FIXED_BYTES = 8 };      /* size of a fixed key */

/* True if every key of the order has SORT_KEY_FIXED_BYTES bytes. */
static inline bool sort_order_is_fixed(enum sort_order order)
{
    return order == SORT_COORDINATE;
}

/*
 * The coordinate key as an integer, most significant first: 31 bits of reference index, 32 bits of
 * position + 1, 1 bit that is set on the reverse strand. Reference -1 becomes 2^31 - 1 and so sorts
 * last; position -1 becomes 0. The unmapped flag plays no part.
 */
static inline uint64_t sort_key_coordinate(const uint8_t *rec)
{
    uint64_t tid = bam_record_u32(rec + 4) & 0x7fffffff;
    uint64_t pos = (uint32_t)(bam_record_u32(rec + 8) + 1);
    uint64_t reverse = bam_record_flag(rec) >> 4 & 1;
    return tid << 33 | pos << 1 | reverse;
}

/* A fixed key as its 8 bytes in memcmp order, and back. */
static inline void sort_key_store_fixed(uint64_t key, uint8_t out[SORT_KEY_FIXED_BYTES])
{
    key = __builtin_bswap64(key);
    memcpy(out, &key, sizeof key);
}

static inline uint64_t sort_key_load_fixed(const uint8_t at[SORT_KEY_FIXED_BYTES])
{
    uint64_t key;
    memcpy(&key, at, sizeof key);
    return __builtin_bswap64(key);
}

/* Size in bytes of the key of a record in an order whose keys are not fixed. */
size_t sort_key_bytes(enum sort_order order, const uint8_t *rec);

/* Writes that key to out and returns its size. */
size_t sort_key_encode(enum sort_order order, const uint8_t *rec, uint8_t *out);

/*
 * Sets the SO and SS tags of the @HD line to the order, removes GO, and adds an @HD line if there
 * is none. Returns 0, or -1 without memory.
 */
int sort_order_update_header(enum sort_order order, sam_hdr_t *header);

#endif
