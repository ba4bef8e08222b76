/*
 * bam_block.h -- the sorted block, which is one entry of a temporary database.
 *
 * A block holds consecutive records of one sorted run, compressed. Its key in the database is the
 * bound (slice_merge.h) of its first record. This is its value, little-endian:
 *
 *     offset  bytes
 *          0      8  XXH3-64 of everything after this field
 *          8      4  magic "RSB" and the format version: 3, or 4 if the block has ordinals
 *         12      4  codec (temp_codec.h)
 *         16      4  number of records, at least 1
 *         20      4  size of the bound of the last record
 *         24      8  size of the records, uncompressed
 *         32      8  size of the records, compressed
 *         40         bound of the last record; nothing if there is one record: it is the key
 *                    in version 4 the ordinals of the records, each of 5 bytes
 *                    the records, compressed
 *
 * Ordinals (spill/sort_buffer.h) say how the records came in the input, where the order of
 * the run does not: --resume makes read ends of the records again (markdup/scan_runs.h).
 *
 * Parts: a scan holds one entry of each file of the database in memory. A value with one very large
 * record is stored as several entries, its *parts*. The first part has the key of the block; the
 * key of a later part is the key of the block followed by the number of the part. No bound is the
 * beginning of another bound, so later parts come right after the first one. A scan is at a later
 * part of one file at a time, so these may be larger.
 *
 * Ownership: functions borrow what they are given. Pure; any thread, with a temp_coder of its own.
 */
#ifndef ROCKSORT_SPILL_BAM_BLOCK_H
#define ROCKSORT_SPILL_BAM_BLOCK_H

#include "bam_sort_key.h"
#include "order/slice_merge.h"
#include "spill/temp_codec.h"
#include "util/byte_order.h"

#include <stdbool.h>

enum {
    BAM_BLOCK_HEADER_BYTES = 40,
    BAM_BLOCK_ORDINAL_BYTES = 5,
    BAM_BLOCK_PART_KEY_BYTES = MERGE_BOUND_MOST_BYTES + 4,      /* most bytes of a part's key */
};

struct bam_block {              /* a block's value, taken apart; points into the value */
    enum temp_codec codec;
    uint32_t n_records;
    uint64_t raw_bytes;
    const uint8_t *last_bound;
    size_t last_bound_bytes;    /* 0 if there is one record */
    const uint8_t *ordinals;    /* BAM_BLOCK_ORDINAL_BYTES for each record; NULL: there are none */
    const uint8_t *payload;
    size_t payload_bytes;
};

/* How much room bam_block_encode needs for raw_bytes of records, besides that for ordinals. */
size_t bam_block_bound(enum temp_codec codec, size_t raw_bytes, size_t last_bound_bytes);

struct bam_block_content {      /* what a block is made of */
    const uint8_t *raw;         /* whole records */
    size_t raw_bytes;
    uint32_t n_records;
    const uint8_t *last_bound;  /* of the last record, if there is more than one */
    size_t last_bound_bytes;
    const uint8_t *ordinals;    /* bam_block_put_ordinal wrote them; NULL: none */
};

/* Writes an ordinal, of BAM_BLOCK_ORDINAL_BYTES, and reads the one of record i of a block. */
static inline void bam_block_put_ordinal(uint8_t *at, uint64_t ordinal)
{
    (void)put_big_endian(at, ordinal, BAM_BLOCK_ORDINAL_BYTES);
}

static inline uint64_t bam_block_ordinal(const uint8_t *ordinals, uint32_t i)
{
    return get_big_endian(ordinals + (size_t)BAM_BLOCK_ORDINAL_BYTES * i, BAM_BLOCK_ORDINAL_BYTES);
}

/* Writes the value of a block to out. Returns its size, or -1 if the codec fails. */
ssize_t bam_block_encode(struct temp_coder *coder, enum temp_codec codec,
                         const struct bam_block_content *content, uint8_t *out);

/* Most bytes of part `number`, from 0, of a block with such a key, in a run whose blocks have
   block_bytes uncompressed bytes. An ordinary block fits into one part. */
size_t bam_block_part_bytes(size_t block_bytes, size_t key_bytes, uint32_t number);

/* Writes the key of part `number`, from 1, of the block with this key to out; returns its size. */
size_t bam_block_part_key(const uint8_t *key, size_t key_bytes, uint32_t number,
                          uint8_t out[BAM_BLOCK_PART_KEY_BYTES]);

/* True if a key is that of a later part of the block with block_key. */
bool bam_block_is_part(const uint8_t *key, size_t key_bytes, const uint8_t *block_key,
                       size_t block_key_bytes);

/* Size of the whole value that begins with this first part; 0 if it cannot be a block. */
size_t bam_block_value_bytes(const uint8_t *part, size_t part_bytes);

/* Parses the header of a value without reading the rest. A caller can then decide what to do with
   the block before a worker verifies it. Returns 0, or -1 if it cannot be a block, because no sound
   block has such sizes. */
int bam_block_parse(const uint8_t *value, size_t value_bytes, struct bam_block *block);

/* Verifies the checksum of the whole value. */
bool bam_block_verify(const uint8_t *value, size_t value_bytes);

/*
 * Checks that `raw`, the decompressed payload, is n_records whole records that are sound for a
 * header of n_refs references: the checksum proves that the block is as it was written, but not who
 * wrote it. Returns how many bytes their keyed_records take (slice_merge.h), 0 in a fixed order; or
 * -1.
 */
ssize_t bam_block_measure(const struct sort_rules *rules, const struct bam_block *block,
                          const uint8_t *raw, int32_t n_refs);

#endif
