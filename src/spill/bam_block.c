/* bam_block.c -- see bam_block.h for the format. */
#include "spill/bam_block.h"

#include "bam/bam_check.h"
#include "spill/sort_buffer.h"
#include "util/long_hash.h"
#include "util/xalloc.h"

#include <stdlib.h>

static const uint8_t magic[4] = {'R', 'S', 'B', 3}, magic_with_ordinals[4] = {'R', 'S', 'B', 4};

size_t bam_block_bound(enum temp_codec codec, size_t raw_bytes, size_t last_bound_bytes)
{
    return BAM_BLOCK_HEADER_BYTES + last_bound_bytes + temp_codec_bound(codec, raw_bytes);
}

ssize_t bam_block_encode(struct temp_coder *coder, const struct bam_block *block, uint8_t *out)
{
    uint8_t *at = copy_bytes(out + BAM_BLOCK_HEADER_BYTES, block->last_bound,
                             block->last_bound_bytes);
    if (block->ordinals)
        at = copy_bytes(at, block->ordinals, (size_t)BAM_BLOCK_ORDINAL_BYTES * block->n_records);
    ssize_t payload_bytes =
        temp_codec_compress(coder, block->codec, block->payload, (size_t)block->raw_bytes, at,
                            temp_codec_bound(block->codec, (size_t)block->raw_bytes));
    if (payload_bytes < 0) return -1;
    uint8_t *head = copy_bytes(out + 8, block->ordinals ? magic_with_ordinals : magic, 4);
    head = put_u32(put_u32(head, block->codec), block->n_records);
    head = put_u64(put_u32(head, block->last_bound_bytes), block->raw_bytes);
    (void)put_u64(head, (uint64_t)payload_bytes);
    size_t size = (size_t)(at - out) + (size_t)payload_bytes;
    (void)put_u64(out, long_hash(out + 8, size - 8));
    return (ssize_t)size;
}

/* False if these sizes are impossible. They are used to allocate memory before the checksum can be
   verified, and a store may be forged. */
static bool is_plausible(const struct bam_block *block, enum temp_codec codec,
                         uint64_t payload_bytes)
{
    /* The largest block holds one record of nearly 2^31 bytes. */
    return block->raw_bytes <= UINT32_MAX && block->n_records > 0 &&
           block->n_records <= block->raw_bytes / BAM_RECORD_MIN_BYTES &&
           payload_bytes <= temp_codec_bound(codec, (size_t)block->raw_bytes);
}

/* Parses the header of a value; only its beginning is needed. Returns the size of the whole value,
   or 0 if it is not a block. */
static size_t parse_header(const uint8_t *value, size_t n_bytes, struct bam_block *block)
{
    if (n_bytes < BAM_BLOCK_HEADER_BYTES) return 0;
    bool has_ordinals = memcmp(value + 8, magic_with_ordinals, 4) == 0;
    if (!has_ordinals && memcmp(value + 8, magic, 4) != 0) return 0;
    uint32_t codec = get_u32(value + 12), last_bound_bytes = get_u32(value + 20);
    uint64_t payload_bytes = get_u64(value + 32);
    block->n_records = get_u32(value + 16);
    block->raw_bytes = get_u64(value + 24);
    bool is_bound_sound = block->n_records == 1 ? last_bound_bytes == 0
                                                : merge_bound_is_sound(last_bound_bytes);
    if (codec >= TEMP_CODEC_COUNT || !is_bound_sound ||
        !is_plausible(block, (enum temp_codec)codec, payload_bytes))
        return 0;
    block->codec = (enum temp_codec)codec;
    block->last_bound = value + BAM_BLOCK_HEADER_BYTES;
    block->last_bound_bytes = last_bound_bytes;
    block->payload = block->last_bound + last_bound_bytes;
    block->ordinals = NULL;
    if (has_ordinals) {
        block->ordinals = block->payload;
        block->payload += (size_t)BAM_BLOCK_ORDINAL_BYTES * block->n_records;
    }
    block->payload_bytes = (size_t)payload_bytes;
    return (size_t)(block->payload - value) + block->payload_bytes;
}

int bam_block_parse(const uint8_t *value, size_t value_bytes, struct bam_block *block)
{
    size_t whole_bytes = parse_header(value, value_bytes, block);
    return whole_bytes > 0 && whole_bytes == value_bytes ? 0 : -1;
}

size_t bam_block_value_bytes(const uint8_t *part, size_t part_bytes)
{
    struct bam_block block;
    size_t whole_bytes = parse_header(part, part_bytes, &block);
    return whole_bytes >= part_bytes ? whole_bytes : 0;
}

size_t bam_block_part_bytes(size_t block_bytes, size_t key_bytes, uint32_t number)
{
    enum { LATER_PART_BYTES = 256 << 10 };
    /* The extra bytes exceed the header, the bound, and the growth of incompressible data. Each
       part stores its key, so a record with a long key is seldom divided. */
    size_t first = block_bytes + block_bytes / 4 + 4096 + 2 * key_bytes;
    return number == 0 || first > LATER_PART_BYTES ? first : LATER_PART_BYTES;
}

size_t bam_block_part_key(const uint8_t *key, size_t key_bytes, uint32_t number,
                          uint8_t out[BAM_BLOCK_PART_KEY_BYTES])
{
    memcpy(out, key, key_bytes);
    (void)put_big_endian(out + key_bytes, number, 4);
    return key_bytes + 4;
}

bool bam_block_is_part(const uint8_t *key, size_t key_bytes, const uint8_t *block_key,
                       size_t block_key_bytes)
{
    return key_bytes == block_key_bytes + 4 && memcmp(key, block_key, block_key_bytes) == 0;
}

bool bam_block_verify(const uint8_t *value, size_t value_bytes)
{
    uint64_t checksum;
    if (value_bytes < BAM_BLOCK_HEADER_BYTES) return false;
    memcpy(&checksum, value, 8);
    return checksum == long_hash(value + 8, value_bytes - 8);
}

/* Checks that `raw` is the whole records of the block. Returns the bytes of their keyed_records, or
   -1. */
static ssize_t measure(const struct bam_block *block, const struct sort_rules *rules,
                       int32_t n_refs, const uint8_t *raw)
{
    struct bam_walk walk = {.at = raw, .end = raw + block->raw_bytes};
    size_t n_records = 0, keyed_bytes = 0;
    const char *problem;
    const uint8_t *rec;
    while ((rec = bam_walk_next(&walk)) != NULL) {
        if (bam_record_check(rec, n_refs)) return -1;
        if (!sort_order_is_fixed(rules->order)) {
            size_t key_bytes = sort_key_bytes(rules, rec, &problem);
            /* Every sorted record has a key. */
            if (key_bytes == 0 || key_bytes > SORT_KEY_MOST_BYTES) return -1;
            keyed_bytes += keyed_record_bytes(key_bytes);
        }
        n_records++;
    }
    return walk.at == walk.end && n_records == block->n_records ? (ssize_t)keyed_bytes : -1;
}

uint8_t *bam_block_unpack(const struct bam_block *block, const struct sort_rules *rules,
                          int32_t n_refs, struct temp_coder *coder, size_t *keyed_bytes)
{
    uint8_t *raw = xmalloc(block->raw_bytes);
    ssize_t n_bytes = temp_codec_decompress(coder, block->codec, block->payload,
                                            block->payload_bytes, raw, block->raw_bytes) == 0 &&
                              (block->ordinals || !record_ordinals_are_needed(rules))
                          ? measure(block, rules, n_refs, raw) : -1;
    *keyed_bytes = n_bytes < 0 ? 0 : (size_t)n_bytes;
    if (n_bytes >= 0) return raw;
    free(raw);
    return NULL;
}
