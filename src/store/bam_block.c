/* bam_block.c -- see bam_block.h for the format. */
#include "store/bam_block.h"

#include "bam/bam_check.h"
#include "order/slice_merge.h"

static const uint8_t magic[4] = {'R', 'S', 'B', 2};

size_t bam_block_bound(enum temp_codec codec, size_t raw_bytes, size_t last_bound_bytes)
{
    return BAM_BLOCK_HEADER_BYTES + last_bound_bytes + temp_codec_bound(codec, raw_bytes);
}

ssize_t bam_block_encode(struct temp_coder *coder, enum temp_codec codec,
                         const struct bam_block_content *content, uint8_t *out)
{
    size_t last_bound_bytes = content->last_bound_bytes;
    uint8_t *payload = out + BAM_BLOCK_HEADER_BYTES + last_bound_bytes;
    ssize_t payload_bytes =
        temp_codec_compress(coder, codec, content->raw, content->raw_bytes, payload,
                            temp_codec_bound(codec, content->raw_bytes));
    if (payload_bytes < 0) return -1;
    uint64_t raw_bytes_64 = content->raw_bytes;
    uint32_t codec_32 = codec, last_bound_bytes_32 = (uint32_t)last_bound_bytes;
    memcpy(out + 8, magic, 4);
    memcpy(out + 12, &codec_32, 4);
    memcpy(out + 16, &content->n_records, 4);
    memcpy(out + 20, &last_bound_bytes_32, 4);
    memcpy(out + 24, &raw_bytes_64, 8);
    memcpy(out + BAM_BLOCK_HEADER_BYTES, content->last_bound, last_bound_bytes);
    size_t size = BAM_BLOCK_HEADER_BYTES + last_bound_bytes + (size_t)payload_bytes;
    uint64_t checksum = XXH3_64bits(out + 8, size - 8);
    memcpy(out, &checksum, 8);
    return (ssize_t)size;
}

int bam_block_parse(const uint8_t *value, size_t value_bytes, struct bam_block *block)
{
    if (value_bytes < BAM_BLOCK_HEADER_BYTES || memcmp(value + 8, magic, 4) != 0) return -1;
    uint32_t codec, last_bound_bytes;
    memcpy(&codec, value + 12, 4);
    memcpy(&block->n_records, value + 16, 4);
    memcpy(&last_bound_bytes, value + 20, 4);
    memcpy(&block->raw_bytes, value + 24, 8);
    if (codec >= TEMP_CODEC_COUNT || last_bound_bytes <= MERGE_BOUND_TAIL_BYTES ||
        value_bytes - BAM_BLOCK_HEADER_BYTES < last_bound_bytes || block->n_records == 0)
        return -1;
    block->codec = (enum temp_codec)codec;
    block->last_bound = value + BAM_BLOCK_HEADER_BYTES;
    block->last_bound_bytes = last_bound_bytes;
    block->payload = block->last_bound + last_bound_bytes;
    block->payload_bytes = value_bytes - BAM_BLOCK_HEADER_BYTES - last_bound_bytes;
    return 0;
}

bool bam_block_verify(const uint8_t *value, size_t value_bytes)
{
    uint64_t checksum;
    if (value_bytes < BAM_BLOCK_HEADER_BYTES) return false;
    memcpy(&checksum, value, 8);
    return checksum == XXH3_64bits(value + 8, value_bytes - 8);
}

bool bam_block_is_plausible(const struct bam_block *block)
{
    /* The largest block holds one record of nearly 2^31 bytes, and some before it. */
    return block->raw_bytes <= UINT32_MAX &&
           block->n_records <= block->raw_bytes / BAM_RECORD_MIN_BYTES;
}

ssize_t bam_block_measure(const struct sort_rules *rules, const struct bam_block *block,
                          const uint8_t *raw, int32_t n_refs)
{
    struct bam_walk walk = {.at = raw, .end = raw + block->raw_bytes};
    size_t n_records = 0, keyed_bytes = 0;
    const char *problem;
    const uint8_t *rec;
    while ((rec = bam_walk_next(&walk)) != NULL) {
        if (bam_record_check(rec, n_refs)) return -1;
        if (!sort_order_is_fixed(rules->order)) {
            size_t key_bytes = sort_key_bytes(rules, rec, &problem);
            if (key_bytes == 0) return -1;      /* every record that was sorted has a key */
            keyed_bytes += keyed_record_bytes(key_bytes);
        }
        n_records++;
    }
    return walk.at == walk.end && n_records == block->n_records ? (ssize_t)keyed_bytes : -1;
}
