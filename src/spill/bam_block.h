/*
 * bam_block.h -- encodes, parses and checks blocks, the entries of the temporary databases.
 *
 * A block holds consecutive records of one sorted run, compressed. Its key in the database is the
 * bound (slice_merge.h) of its first record. Its value is, little-endian:
 *
 *     offset  bytes
 *          0      8  XXH3-64 of everything after this field
 *          8      4  magic "RSB" and the format version: 3, or 4 if the block has ordinals
 *         12      4  codec (temp_codec.h)
 *         16      4  number of records, at least 1
 *         20      4  size of the bound of the last record
 *         24      8  size of the records, uncompressed
 *         32      8  size of the records, compressed
 *         40         bound of the last record; empty if there is one record
 *                    in version 4 the ordinals of the records, 5 bytes each
 *                    the records, compressed
 *
 * Ordinals (spill/sort_buffer.h) keep the order of the input if the order of the run does not:
 * --resume needs it to rebuild read ends (markdup/scan_runs.h).
 *
 * Parts: a scan holds one entry of each file of the database in memory. A value with one very large
 * record is stored as several entries, its *parts*. The first part has the key of the block; the
 * key of a later part is the key of the block followed by the number of the part. Bounds are
 * prefix-free, so later parts come right after the first one. A scan reads later parts of only one
 * file at a time, so these may be larger.
 *
 * Ownership: functions borrow their arguments. Pure; any thread, with its own temp_coder.
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

struct bam_block {              /* a parsed value, or what becomes one; points to its parts */
    enum temp_codec codec;
    uint32_t n_records;
    uint64_t raw_bytes;
    const uint8_t *last_bound;  /* of the last record */
    size_t last_bound_bytes;    /* 0 if there is one record */
    const uint8_t *ordinals;    /* BAM_BLOCK_ORDINAL_BYTES for each record; NULL: none */
    const uint8_t *payload;     /* the records, compressed */
    size_t payload_bytes;
};

/* Returns the room that bam_block_encode needs for raw_bytes of records, without ordinals. */
size_t bam_block_bound(enum temp_codec codec, size_t raw_bytes, size_t last_bound_bytes);

/* Write an ordinal, of BAM_BLOCK_ORDINAL_BYTES, and read that of record i of a block. */
static inline void bam_block_put_ordinal(uint8_t *at, uint64_t ordinal)
{
    (void)put_big_endian(at, ordinal, BAM_BLOCK_ORDINAL_BYTES);
}

static inline uint64_t bam_block_ordinal(const uint8_t *ordinals, uint32_t i)
{
    return get_big_endian(ordinals + (size_t)BAM_BLOCK_ORDINAL_BYTES * i, BAM_BLOCK_ORDINAL_BYTES);
}

/* Writes the value of a block, whose payload is not compressed yet, to out. Returns its size, or -1
   if the codec fails. */
ssize_t bam_block_encode(struct temp_coder *coder, const struct bam_block *block, uint8_t *out);

/* Returns the maximum size of part `number`, from 0, of a block with such a key, in a run whose
   blocks have block_bytes uncompressed bytes. An ordinary block fits into one part. */
size_t bam_block_part_bytes(size_t block_bytes, size_t key_bytes, uint32_t number);

/* Writes the key of part `number`, from 1, of the block with this key to out; returns its size. */
size_t bam_block_part_key(const uint8_t *key, size_t key_bytes, uint32_t number,
                          uint8_t out[BAM_BLOCK_PART_KEY_BYTES]);

/* True if the key is that of a later part of the block with block_key. */
bool bam_block_is_part(const uint8_t *key, size_t key_bytes, const uint8_t *block_key,
                       size_t block_key_bytes);

/* Returns the size of the whole value that begins with this first part; 0 if it is not a block. */
size_t bam_block_value_bytes(const uint8_t *part, size_t part_bytes);

/* Parses the header of a value without reading the rest, so that the caller can handle the block
   before a worker verifies it. Returns 0, or -1 if its sizes are impossible. */
int bam_block_parse(const uint8_t *value, size_t value_bytes, struct bam_block *block);

/* Verifies the checksum of the whole value. */
bool bam_block_verify(const uint8_t *value, size_t value_bytes);

/*
 * Decompresses a block and checks that it is n_records whole records that are valid for a header of
 * n_refs references, with ordinals if the rules need them: the checksum does not prove that rocksort
 * wrote the block. Returns the records, from malloc, and sets *keyed_bytes to the bytes of their
 * keyed_records (slice_merge.h), 0 in a fixed order. NULL if the block is damaged.
 */
uint8_t *bam_block_unpack(const struct bam_block *block, const struct sort_rules *rules,
                          int32_t n_refs, struct temp_coder *coder, size_t *keyed_bytes);

#endif
