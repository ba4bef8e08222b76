/*
 * temp_codec.h -- compression of temporary data: none, snappy, lz4 or zstd behind one interface.
 *
 * A temp_coder holds the working state of one thread (zstd contexts); it starts as {0}. Functions
 * may run in any thread, each with a coder of its own.
 */
#ifndef ROCKSORT_STORE_TEMP_CODEC_H
#define ROCKSORT_STORE_TEMP_CODEC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum temp_codec {               /* the values stand in blocks on disk: do not renumber */
    TEMP_CODEC_NONE = 0,
    TEMP_CODEC_SNAPPY = 1,
    TEMP_CODEC_LZ4 = 2,
    TEMP_CODEC_ZSTD = 3,
    TEMP_CODEC_COUNT
};

/* "none", "snappy", "lz4", "zstd". */
const char *temp_codec_name(enum temp_codec codec);

/* Returns 0 and sets *codec, or -1 if there is no codec of that name. */
int temp_codec_parse(const char *name, enum temp_codec *codec);

struct temp_coder {
    void *zstd_compressor;
    void *zstd_decompressor;
};

void temp_coder_release(struct temp_coder *coder);

/* Largest size that n_bytes can have once compressed. */
size_t temp_codec_bound(enum temp_codec codec, size_t n_bytes);

/* Compresses into out (room_bytes, at least the bound); returns the size, or -1 on failure. */
ssize_t temp_codec_compress(struct temp_coder *coder, enum temp_codec codec, const uint8_t *in,
                            size_t n_bytes, uint8_t *out, size_t room_bytes);

/* Decompresses into exactly raw_bytes at out; returns 0, or -1 if the data are not that. */
int temp_codec_decompress(struct temp_coder *coder, enum temp_codec codec, const uint8_t *in,
                          size_t n_bytes, uint8_t *out, size_t raw_bytes);

#endif
