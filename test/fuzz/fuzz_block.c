/*
 * fuzz_block.c -- blocks of a temporary database that are damaged, or that another program made:
 * parsing, checksum, codecs, and the records inside. The first byte of the input says whether the
 * checksum is made to fit, because nearly no input would have a checksum that fits. It also says
 * how the value is made:
 *   - the input is the value;
 *   - one of the codecs compresses the input, which becomes the payload;
 *   - records are made from the input, and compressed like that.
 * It also says whether the block has ordinals.
 */
#include "fuzz_record.h"

#include "order/slice_merge.h"
#include "spill/bam_block.h"
#include "util/long_hash.h"

enum { MAX_RAW_BYTES = 1 << 20 };

/* Opens a block as output_chunk.c does. */
static void open_records(const struct bam_block *block, struct temp_coder *coder)
{
    static const enum sort_order orders[] = {SORT_COORDINATE, SORT_NAME_NATURAL, SORT_TAG};
    struct sort_rules rules = {.tag = {'R', 'G'}};
    for (int i = 0; i < 3; i++) {
        rules.order = orders[i];
        size_t keyed_bytes;
        OWNED uint8_t *raw = bam_block_unpack(block, &rules, FUZZ_N_REFS, coder, &keyed_bytes);
        if (!raw) return;
        const uint8_t *rec = raw;
        uint8_t *keyed = fuzz_alloc(keyed_bytes), *at = keyed;
        for (uint32_t k = 0; k < block->n_records; k++, rec += bam_record_bytes(rec)) {
            if (sort_order_is_fixed(rules.order)) continue;
            struct keyed_record *kr = (struct keyed_record *)at;
            kr->key_bytes = (uint32_t)sort_key_encode(&rules, rec, kr->key);
            at += keyed_record_bytes(kr->key_bytes);
        }
        FUZZ_CHECK(at == keyed + keyed_bytes && rec == raw + block->raw_bytes);
        free(keyed);
    }
}

static void open_value(const uint8_t *value, size_t n_bytes)
{
    struct bam_block block;
    RELEASED(temp_coder_release) struct temp_coder coder = {0};
    bool verified = bam_block_verify(value, n_bytes);
    if (bam_block_parse(value, n_bytes, &block) < 0) return;
    FUZZ_CHECK((block.last_bound_bytes == 0) == (block.n_records == 1));
    FUZZ_CHECK(block.payload + block.payload_bytes == value + n_bytes);
    if (block.ordinals)
        FUZZ_CHECK(bam_block_ordinal(block.ordinals, block.n_records - 1) >> 40 == 0);
    if (!verified || block.raw_bytes > MAX_RAW_BYTES) return;
    open_records(&block, &coder);
}

/* Makes a block of raw bytes. Returns its value, which has exactly *value_bytes. */
static uint8_t *make_value(enum temp_codec codec, const uint8_t *raw, size_t raw_bytes,
                           uint32_t n_records, bool has_ordinals, size_t *value_bytes)
{
    static const uint8_t bound[SORT_KEY_FIXED_BYTES + MERGE_BOUND_TAIL_BYTES] = {0};
    size_t bound_bytes = n_records > 1 ? sizeof bound : 0;
    RELEASED(temp_coder_release) struct temp_coder coder = {0};
    size_t ordinals_bytes = has_ordinals ? (size_t)BAM_BLOCK_ORDINAL_BYTES * n_records : 0;
    OWNED uint8_t *ordinals = fuzz_alloc(ordinals_bytes);
    memset(ordinals, 7, ordinals_bytes);
    uint8_t *out = fuzz_alloc(bam_block_bound(codec, raw_bytes, sizeof bound) + ordinals_bytes);
    const struct bam_block content = {codec, n_records, raw_bytes, bound, bound_bytes,
                                      has_ordinals ? ordinals : NULL, .payload = raw};
    ssize_t n = bam_block_encode(&coder, &content, out);
    FUZZ_CHECK(n > 0);
    uint8_t *value = fuzz_copy(out, (size_t)n);
    *value_bytes = (size_t)n;
    free(out);
    return value;
}

static uint8_t *make_records(struct fuzz_input *in, size_t *n_bytes, uint32_t *n_records)
{
    enum { MAX_RECORDS = 8 };
    uint8_t *raw = fuzz_alloc(MAX_RECORDS * FUZZ_MAX_RECORD);
    *n_bytes = 0;
    for (*n_records = 0; *n_records < MAX_RECORDS && fuzz_left(in) > 0; ++*n_records)
        *n_bytes += fuzz_make_record(in, raw + *n_bytes);
    return raw;
}

/* As if the program that changed the value had also changed its checksum. */
static void fit_checksum(uint8_t *value, size_t n_bytes)
{
    if (n_bytes < BAM_BLOCK_HEADER_BYTES) return;
    uint64_t checksum = long_hash(value + 8, n_bytes - 8);
    memcpy(value, &checksum, sizeof checksum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    unsigned mode = fuzz_u8(&in);
    enum temp_codec codec = (enum temp_codec)(mode >> 4 & 3);
    size_t value_bytes = fuzz_left(&in), flips = mode >> 6;
    bool has_ordinals = mode & 4;
    uint8_t *value;
    if (mode % 4 == 0) {
        value = fuzz_copy(in.at, value_bytes);
    } else if (mode % 4 == 1) {
        uint32_t n_records = fuzz_u8(&in);
        value = make_value(codec, in.at, fuzz_left(&in), n_records, has_ordinals, &value_bytes);
    } else {
        size_t raw_bytes;
        uint32_t n_records;
        OWNED uint8_t *raw = make_records(&in, &raw_bytes, &n_records);
        value = make_value(codec, raw, raw_bytes, n_records, has_ordinals, &value_bytes);
        for (; flips > 0; flips--) value[fuzz_u16(&in) % value_bytes] ^= fuzz_u8(&in);
    }
    if (mode & 8) fit_checksum(value, value_bytes);
    open_value(value, value_bytes);
    free(value);
    return 0;
}
