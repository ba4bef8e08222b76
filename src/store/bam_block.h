/*
 * bam_block.h -- the sorted block: what one entry of the temporary database holds.
 *
 * A block is a stretch of consecutive records of one sorted run, compressed. Its database key is
 * the bound (merge.h) of its first record. Its value, little-endian:
 *
 *     offset  bytes
 *          0      8  XXH3-64 of everything behind this field
 *          8      4  magic "RSB" and the format version, 2
 *         12      4  codec (temp_codec.h)
 *         16      4  number of records, at least 1
 *         20      4  size of the bound of the last record
 *         24      8  size of the records, uncompressed
 *         32         bound of the last record
 *                    the records, compressed
 *
 * Ownership: functions borrow what they are given. Pure; any thread.
 */
#ifndef ROCKSORT_STORE_BAM_BLOCK_H
#define ROCKSORT_STORE_BAM_BLOCK_H

#include "bam_sort_key.h"
#include "store/temp_codec.h"

#include <stdbool.h>

enum { BAM_BLOCK_HEADER_BYTES = 32 };

struct bam_block {              /* a block's value, taken apart; pointers into the value */
    enum temp_codec codec;
    uint32_t n_records;
    uint64_t raw_bytes;
    const uint8_t *last_bound;
    size_t last_bound_bytes;
    const uint8_t *payload;
    size_t payload_bytes;
};

/* Room that bam_block_encode needs for raw_bytes of records. */
size_t bam_block_bound(enum temp_codec codec, size_t raw_bytes, size_t last_bound_bytes);

/*
 * Writes the value of a block of n_records whole records, raw_bytes at raw, to out. Returns its
 * size, or -1 if the codec fails.
 */
ssize_t bam_block_encode(struct temp_coder *coder, enum temp_codec codec, const uint8_t *raw,
                         size_t raw_bytes, uint32_t n_records, const uint8_t *last_bound,
                         size_t last_bound_bytes, uint8_t *out);

/*
 * Takes the header of a value apart without touching the rest: for deciding what to do with a block
 * before a worker verifies it. Returns 0, or -1 if it cannot be a block.
 */
int bam_block_parse(const uint8_t *value, size_t value_bytes, struct bam_block *block);

/* False if no block has such sizes: before anybody counts on them. */
bool bam_block_is_plausible(const struct bam_block *block);

/* Verifies the checksum of the whole value. */
bool bam_block_verify(const uint8_t *value, size_t value_bytes);

/*
 * Checks that raw, what the payload holds, is n_records whole records that are sound for a header
 * of n_refs references. The checksum says that the block is as it was written, not who wrote it.
 * Returns the bytes that their keyed_records take (entry_sort.h), which is 0 in a fixed order, or -1.
 */
ssize_t bam_block_measure(const struct sort_rules *rules, const struct bam_block *block,
                          const uint8_t *raw, int32_t n_refs);

#endif
