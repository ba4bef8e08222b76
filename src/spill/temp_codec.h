/*
 * temp_codec.h -- compresses temporary data with none, snappy, lz4 or zstd.
 *
 * A temp_coder holds the state of one thread (zstd contexts). It starts as {0}; temp_coder_release
 * frees it. Any thread, with its own coder.
 */
#ifndef ROCKSORT_SPILL_TEMP_CODEC_H
#define ROCKSORT_SPILL_TEMP_CODEC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum temp_codec {               /* stored in blocks on disk: do not change the numbers */
    TEMP_CODEC_NONE = 0,
    TEMP_CODEC_SNAPPY = 1,
    TEMP_CODEC_LZ4 = 2,
    TEMP_CODEC_ZSTD = 3,
    TEMP_CODEC_COUNT
};

/* Returns "none", "snappy", "lz4" or "zstd". */
const char *temp_codec_name(enum temp_codec codec);

/* Returns 0 and sets *codec, or -1 if no codec has this name. */
int temp_codec_parse(const char *name, enum temp_codec *codec);

struct temp_coder {
    void *zstd_compressor;
    void *zstd_decompressor;
};

void temp_coder_release(struct temp_coder *coder);

/* Returns the maximum compressed size of n_bytes. */
size_t temp_codec_bound(enum temp_codec codec, size_t n_bytes);

/* Compresses into out, which has room_bytes, at least the bound. Returns the size, or -1 if the
   codec fails. */
ssize_t temp_codec_compress(struct temp_coder *coder, enum temp_codec codec, const uint8_t *in,
                            size_t n_bytes, uint8_t *out, size_t room_bytes);

/* Decompresses into exactly raw_bytes at out. Returns 0, or -1 if the data have another size or are
   damaged. */
int temp_codec_decompress(struct temp_coder *coder, enum temp_codec codec, const uint8_t *in,
                          size_t n_bytes, uint8_t *out, size_t raw_bytes);

#endif
