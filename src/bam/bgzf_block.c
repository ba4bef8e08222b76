/*
 * bgzf_block.c -- see bgzf_block.h. The format is in section 4.1 of the SAM specification: a gzip
 * member whose extra field "BC" holds the size of the member less one.
 */
#include "bam/bgzf_block.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <htslib/bgzf.h>
#include <string.h>
#include <zlib.h>
#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

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

#ifdef HAVE_LIBDEFLATE

void bgzf_coder_release(struct bgzf_coder *coder)
{
    libdeflate_free_decompressor(coder->decompressor);
    libdeflate_free_compressor(coder->compressor);
    *coder = (struct bgzf_coder){0};
}

static uint32_t crc(const uint8_t *raw, size_t raw_bytes)
{
    return libdeflate_crc32(0, raw, raw_bytes);
}

static int inflate_raw(struct bgzf_coder *coder, const uint8_t *in, size_t in_bytes, uint8_t *out,
                       size_t out_bytes)
{
    if (!coder->decompressor) coder->decompressor = libdeflate_alloc_decompressor();
    xalloc_require(coder->decompressor);
    return libdeflate_deflate_decompress(coder->decompressor, in, in_bytes, out, out_bytes,
                                         NULL) == LIBDEFLATE_SUCCESS ? 0 : -1;
}

ssize_t bgzf_block_deflate(struct bgzf_coder *coder, int level, const uint8_t *raw,
                           size_t raw_bytes, uint8_t *out)
{
    /* The same levels as in htslib: they give about the same sizes as zlib's levels 0 to 9. */
    static const int libdeflate_level[10] = {0, 1, 2, 3, 5, 6, 7, 8, 10, 12};
    if (level < 0 || level > 9) level = 6;
    if (level > 0) {
        if (coder->compressor && coder->compressor_level != level) {
            libdeflate_free_compressor(coder->compressor);
            coder->compressor = NULL;
        }
        if (!coder->compressor)
            coder->compressor = libdeflate_alloc_compressor(libdeflate_level[level]);
        xalloc_require(coder->compressor);
        coder->compressor_level = level;
        size_t room = BGZF_MAX_BYTES - BGZF_HEADER_BYTES - BGZF_FOOTER_BYTES;
        size_t n = libdeflate_deflate_compress(coder->compressor, raw, raw_bytes,
                                               out + BGZF_HEADER_BYTES, room);
        if (n > 0) {
            size_t size = n + BGZF_HEADER_BYTES + BGZF_FOOTER_BYTES;
            memcpy(out, header_start, sizeof header_start);
            put_u16(out + 16, (uint32_t)(size - 1));
            put_u32(out + size - 8, crc(raw, raw_bytes));
            put_u32(out + size - 4, (uint32_t)raw_bytes);
            return (ssize_t)size;
        }
    }
    memcpy(out + BGZF_STORED_OFFSET, raw, raw_bytes);
    return (ssize_t)bgzf_block_store(out, raw_bytes);
}

const char *bgzf_deflate_library(void)
{
    return "libdeflate " LIBDEFLATE_VERSION_STRING;
}

#else

void bgzf_coder_release(struct bgzf_coder *coder)
{
    *coder = (struct bgzf_coder){0};
}

static uint32_t crc(const uint8_t *raw, size_t raw_bytes)
{
    return (uint32_t)crc32(crc32(0, NULL, 0), raw, (uInt)raw_bytes);
}

static int inflate_raw(struct bgzf_coder *coder, const uint8_t *in, size_t in_bytes, uint8_t *out,
                       size_t out_bytes)
{
    (void)coder;
    z_stream zs = {.next_in = (Bytef *)(uintptr_t)in, .avail_in = (uInt)in_bytes,
                   .next_out = out, .avail_out = (uInt)out_bytes};
    if (inflateInit2(&zs, -15) != Z_OK) return -1;
    int r = inflate(&zs, Z_FINISH);
    size_t n = zs.total_out;
    if (inflateEnd(&zs) != Z_OK) return -1;
    return r == Z_STREAM_END && n == out_bytes ? 0 : -1;
}

ssize_t bgzf_block_deflate(struct bgzf_coder *coder, int level, const uint8_t *raw,
                           size_t raw_bytes, uint8_t *out)
{
    (void)coder;
    size_t size = BGZF_MAX_BYTES;
    return bgzf_compress(out, &size, raw, raw_bytes, level) == 0 ? (ssize_t)size : -1;
}

const char *bgzf_deflate_library(void)
{
    return "zlib " ZLIB_VERSION;
}

#endif

int bgzf_block_inflate(struct bgzf_coder *coder, const uint8_t *block, size_t block_bytes,
                       uint8_t *out)
{
    size_t start = 12 + get_u16(block + 10);
    size_t raw_bytes = bgzf_block_raw_bytes(block, block_bytes);
    uint8_t nothing;
    if (raw_bytes == 0) out = &nothing;
    if (inflate_raw(coder, block + start, block_bytes - start - BGZF_FOOTER_BYTES, out,
                    raw_bytes) < 0)
        return -1;
    return crc(out, raw_bytes) == get_u32(block + block_bytes - 8) ? 0 : -1;
}

size_t bgzf_block_store(uint8_t *out, size_t raw_bytes)
{
    size_t size = BGZF_STORED_OFFSET + raw_bytes + BGZF_FOOTER_BYTES;
    memcpy(out, header_start, sizeof header_start);
    put_u16(out + 16, (uint32_t)(size - 1));
    out[18] = 1;                        /* last block of the stream, stored */
    put_u16(out + 19, (uint32_t)raw_bytes);
    put_u16(out + 21, ~(uint32_t)raw_bytes);
    put_u32(out + size - 8, crc(out + BGZF_STORED_OFFSET, raw_bytes));
    put_u32(out + size - 4, (uint32_t)raw_bytes);
    return size;
}
