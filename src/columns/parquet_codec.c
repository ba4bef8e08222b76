/* parquet_codec.c -- see parquet_codec.h. */
#include "columns/parquet_codec.h"

#include "columns/parquet_format.h"
#include "util/xalloc.h"

#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#define NOT_READ(name) "its pages are compressed by " name ", which is not read: use zstd"

static const struct {
    const char *problem;        /* NULL: it is read */
    uint32_t most_ratio;        /* bytes that one compressed byte can become, and a few more */
} codecs[] = {
    [PARQUET_CODEC_NONE] = {NULL, 1},
    [PARQUET_CODEC_SNAPPY] = {NULL, 64},        /* copies 64 bytes by 3 */
    [PARQUET_CODEC_GZIP] = {NULL, 1100},        /* a match of 258 bytes by 2 bits */
    [PARQUET_CODEC_LZO] = {NOT_READ("LZO"), 0},
    [PARQUET_CODEC_BROTLI] = {NOT_READ("Brotli"), 0},
    [PARQUET_CODEC_LZ4] = {NOT_READ("LZ4 in frames of Hadoop"), 0},
    [PARQUET_CODEC_ZSTD] = {NULL, 1 << 15},     /* a block of 128 KiB by 4 bytes */
    [PARQUET_CODEC_LZ4_RAW] = {NULL, 256},      /* a byte makes a match 255 bytes longer */
};

void parquet_decompressor_release(struct parquet_decompressor *decompressor)
{
    (void)ZSTD_freeDCtx(decompressor->zstd);
    decompressor->zstd = NULL;
}

const char *parquet_codec_problem(int64_t codec)
{
    if (codec < 0 || codec >= N_PARQUET_CODECS)
        return "its pages are compressed by a codec that rocksort does not know: use zstd";
    return codecs[codec].problem;
}

bool parquet_codec_can_make(int codec, uint64_t n_from, uint64_t n_to)
{
    enum { A_FEW = 64 };
    if (codec == PARQUET_CODEC_NONE) return n_from == n_to;
    return n_to / codecs[codec].most_ratio <= n_from + A_FEW;
}

/* Members follow each other in some files. */
static bool inflate_all(const uint8_t *from, size_t n_from, uint8_t *to, size_t n_to)
{
    enum { ANY_HEAD = 15 + 32 };        /* of gzip or zlib */
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)from, .avail_in = (uInt)n_from,
                       .next_out = to, .avail_out = (uInt)n_to};
    xalloc_require(inflateInit2(&stream, ANY_HEAD) == Z_OK);
    int r;
    do r = inflate(&stream, Z_FINISH);
    while (r == Z_STREAM_END && stream.avail_in > 0 && inflateReset(&stream) == Z_OK);
    bool is_whole = r == Z_STREAM_END && stream.avail_in == 0 && stream.avail_out == 0;
    (void)inflateEnd(&stream);
    return is_whole;
}

static bool decompress_snappy(const uint8_t *from, size_t n_from, uint8_t *to, size_t n_to)
{
    size_t n;
    const char *bytes = (const char *)from;
    return snappy_uncompressed_length(bytes, n_from, &n) == SNAPPY_OK && n == n_to &&
           snappy_uncompress(bytes, n_from, (char *)to, &n) == SNAPPY_OK && n == n_to;
}

bool parquet_decompress(struct parquet_decompressor *decompressor, int codec, const uint8_t *from,
                        size_t n_from, uint8_t *to, size_t n_to)
{
    if (n_from > INT32_MAX || n_to > INT32_MAX) return false;
    switch (codec) {
    case PARQUET_CODEC_SNAPPY: return decompress_snappy(from, n_from, to, n_to);
    case PARQUET_CODEC_GZIP: return inflate_all(from, n_from, to, n_to);
    case PARQUET_CODEC_ZSTD:
        if (!decompressor->zstd) decompressor->zstd = ZSTD_createDCtx();
        xalloc_require(decompressor->zstd != NULL);
        return ZSTD_decompressDCtx(decompressor->zstd, to, n_to, from, n_from) == n_to;
    case PARQUET_CODEC_LZ4_RAW:
        return LZ4_decompress_safe((const char *)from, (char *)to, (int)n_from, (int)n_to) ==
               (int)n_to;
    default: return false;
    }
}
