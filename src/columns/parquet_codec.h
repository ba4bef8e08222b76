/*
 * parquet_codec.h -- decompresses pages, by the codecs that programs write Parquet with today.
 *
 * A decompressor starts as {0}; parquet_decompressor_release frees it. One thread at a time.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_CODEC_H
#define ROCKSORT_COLUMNS_PARQUET_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct parquet_decompressor {
    void *zstd;                 /* a ZSTD_DCtx */
};

void parquet_decompressor_release(struct parquet_decompressor *decompressor);

/* Returns NULL if pages of this codec can be read; else a static text that names it. */
const char *parquet_codec_problem(int64_t codec);

/* True if n_from bytes may become as many as n_to: no codec makes more of them. To be asked before
   memory is allocated. */
bool parquet_codec_can_make(int codec, uint64_t n_from, uint64_t n_to);

/* Decompresses to exactly n_to bytes. Returns false if that is not what the bytes are. */
bool parquet_decompress(struct parquet_decompressor *decompressor, int codec, const uint8_t *from,
                        size_t n_from, uint8_t *to, size_t n_to);

#endif
