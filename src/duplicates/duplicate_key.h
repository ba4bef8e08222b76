/*
 * duplicate_key.h -- what must be equal of two reads that are duplicates of each other, as a hash.
 *
 * Pure; any thread.
 */
#ifndef ROCKSORT_DUPLICATES_DUPLICATE_KEY_H
#define ROCKSORT_DUPLICATES_DUPLICATE_KEY_H

#include "duplicates/duplicate_view.h"

/* The 128-bit hash of a key, which stands for it. */
struct duplicate_key {
    uint64_t low, high;
};

struct duplicate_key duplicate_key_of_pair(const struct duplicate_rules *rules,
                                           const struct duplicate_view *view);

/* Of a single read, or of the 5' end of a member of a pair. */
struct duplicate_key duplicate_key_of_single(const struct duplicate_rules *rules,
                                             const struct duplicate_view *view);

/* Of a name, or of any other text; and of a key that was made without barcode, with one. */
struct duplicate_key duplicate_key_of_name(const uint8_t *name, size_t n_bytes);
struct duplicate_key duplicate_key_with_barcode(struct duplicate_key key, const uint8_t *barcode,
                                                size_t n_bytes);

#endif
