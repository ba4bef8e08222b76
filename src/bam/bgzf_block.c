/*
 * bgzf_block.c -- see bgzf_block.h. The format is in section 4.1 of the SAM specification: a gzip
 * member whose extra field "BC" holds the size of the member less one.
 */
#include "bam/bgzf_block.h"

#include "util/byte_order.h"

#include <string.h>

/* The header of a stored deflate block. */
enum { STORED_BYTES = BGZF_STORED_OFFSET - BGZF_HEADER_BYTES };

/* gzip magic, deflate, FEXTRA; no time; unknown OS; 6 extra bytes: "BC", the length 2, and two
   bytes for the size of the block less one, which are not in this array. */
static const uint8_t header_start[16] = {31, 139, 8, 4, 0, 0, 0, 0, 0, 255, 6, 0, 'B', 'C', 2, 0};

const uint8_t bgzf_end_block[BGZF_END_BYTES] = {31, 139, 8,  4, 0, 0, 0, 0, 0, 255, 6, 0, 'B', 'C',
                                               2,  0,   27, 0, 3, 0, 0, 0, 0, 0,   0, 0, 0,   0};

size_t bgzf_block_bytes(const uint8_t header[BGZF_HEADER_BYTES])
{
    /* Bytes 4 to 9 (time, flags, OS) may be anything; more extra fields may follow BGZF's own. */
    if (memcmp(header, header_start, 4) != 0 || get_u16(header + 10) < 6 ||
        memcmp(header + 12, header_start + 12, 4) != 0)
        return 0;
    size_t size = (size_t)get_u16(header + 16) + 1;
    return size >= 12 + get_u16(header + 10) + BGZF_FOOTER_BYTES ? size : 0;
}

uint32_t bgzf_block_raw_bytes(const uint8_t *block, size_t block_bytes)
{
    return get_u32(block + block_bytes - 4);
}

/* Writes header and footer around n_deflated bytes. Returns the size of the block. */
static size_t finish_block(uint8_t *out, size_t n_deflated, const uint8_t *raw, size_t raw_bytes)
{
    size_t size = BGZF_HEADER_BYTES + n_deflated + BGZF_FOOTER_BYTES;
    memcpy(out, header_start, sizeof header_start);
    put_u16(out + 16, (uint32_t)(size - 1));
    put_u32(out + size - 8, bgzf_engine_crc(0, raw, raw_bytes));
    put_u32(out + size - 4, (uint32_t)raw_bytes);
    return size;
}

ssize_t bgzf_block_deflate(struct bgzf_coder *coder, struct bgzf_method method,
                           const uint8_t *raw, size_t raw_bytes, uint8_t *out)
{
    if (method.level != 0) {
        ssize_t n = bgzf_engine_deflate(coder, method, raw, raw_bytes, out + BGZF_HEADER_BYTES,
                                        BGZF_MAX_BYTES - BGZF_HEADER_BYTES - BGZF_FOOTER_BYTES);
        if (n < 0) return -1;
        if (n > 0 && (size_t)n < STORED_BYTES + raw_bytes)
            return (ssize_t)finish_block(out, (size_t)n, raw, raw_bytes);
    }
    memcpy(out + BGZF_STORED_OFFSET, raw, raw_bytes);
    return (ssize_t)bgzf_block_store(out, raw_bytes);
}

int bgzf_append(struct byte_buffer *out, struct bgzf_method method, const uint8_t *raw,
                size_t raw_bytes)
{
    struct bgzf_coder coder = {0};
    ssize_t size = 0;
    for (size_t at = 0; size >= 0 && at < raw_bytes; at += BGZF_PAYLOAD_BYTES) {
        size_t n = raw_bytes - at < BGZF_PAYLOAD_BYTES ? raw_bytes - at : BGZF_PAYLOAD_BYTES;
        size = bgzf_block_deflate(&coder, method, raw + at, n,
                                  byte_buffer_reserve(out, BGZF_MAX_BYTES));
        if (size > 0) out->n_bytes += (size_t)size;
    }
    bgzf_coder_release(&coder);
    return size < 0 ? -1 : 0;
}

int bgzf_block_inflate(struct bgzf_coder *coder, const uint8_t *block, size_t block_bytes,
                       uint8_t *out)
{
    size_t start = 12 + get_u16(block + 10);
    size_t raw_bytes = bgzf_block_raw_bytes(block, block_bytes);
    uint8_t nothing;
    if (raw_bytes == 0) out = &nothing;
    if (bgzf_engine_inflate(coder, block + start, block_bytes - start - BGZF_FOOTER_BYTES, out,
                            raw_bytes) < 0)
        return -1;
    return bgzf_engine_crc(0, out, raw_bytes) == get_u32(block + block_bytes - 8) ? 0 : -1;
}

size_t bgzf_block_store(uint8_t *out, size_t raw_bytes)
{
    out[18] = 1;                        /* last block of the stream, stored */
    put_u16(out + 19, (uint32_t)raw_bytes);
    put_u16(out + 21, ~(uint32_t)raw_bytes);
    return finish_block(out, STORED_BYTES + raw_bytes, out + BGZF_STORED_OFFSET, raw_bytes);
}
