/*
 * bgzf_block.h -- inflates and deflates single BGZF blocks in worker threads.
 *
 * htslib's BGZF reader and writer copy every byte twice more and allocate a (de)compressor for each
 * 64 KB block; these functions work straight between the program's buffers and keep their state in
 * a bgzf_coder, one a thread, that starts as {0}. With libdeflate (HAVE_LIBDEFLATE) they use it at
 * the levels that htslib uses, so that a level means the same size; without it zlib inflates and
 * htslib's bgzf_compress deflates.
 */
#ifndef ROCKSORT_BAM_BGZF_BLOCK_H
#define ROCKSORT_BAM_BGZF_BLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    BGZF_HEADER_BYTES = 18,             /* of a block as this program and htslib write it */
    BGZF_FOOTER_BYTES = 8,              /* CRC-32 and size of the uncompressed data */
    BGZF_MAX_BYTES = 65536,             /* largest block, compressed or not */
    BGZF_PAYLOAD_BYTES = 0xff00,        /* uncompressed bytes that htslib puts into one block */
};

struct bgzf_coder {
    void *decompressor;
    void *compressor;
    int compressor_level;
};

void bgzf_coder_release(struct bgzf_coder *coder);

/*
 * Looks at the first BGZF_HEADER_BYTES of a block. Returns the size of the whole block if the first
 * extra field is BGZF's, as all writers have it; else 0.
 */
size_t bgzf_block_bytes(const uint8_t header[BGZF_HEADER_BYTES]);

/* Uncompressed size as a whole block's footer says. */
uint32_t bgzf_block_raw_bytes(const uint8_t *block, size_t block_bytes);

/*
 * Inflates a whole block to out, which has room for bgzf_block_raw_bytes, and checks its CRC.
 * Returns 0, or -1 if the block is damaged.
 */
int bgzf_block_inflate(struct bgzf_coder *coder, const uint8_t *block, size_t block_bytes,
                       uint8_t *out);

/*
 * Deflates at most BGZF_PAYLOAD_BYTES at `level` (-1 default, 0 stored, 1-9) into a block at out,
 * which has room for BGZF_MAX_BYTES. Returns the size of the block, or -1 on failure.
 */
ssize_t bgzf_block_deflate(struct bgzf_coder *coder, int level, const uint8_t *raw,
                           size_t raw_bytes, uint8_t *out);

/*
 * For level 0: the payload's place in a stored block at out, and completion of a block whose
 * payload of raw_bytes was written there (no copy). Returns the size of the block.
 */
enum { BGZF_STORED_OFFSET = BGZF_HEADER_BYTES + 5 };
size_t bgzf_block_store(uint8_t *out, size_t raw_bytes);

/* The empty block that ends a complete BGZF file (SAM specification, section 4.1.2). */
enum { BGZF_EOF_BYTES = 28 };
extern const uint8_t bgzf_eof_block[BGZF_EOF_BYTES];

/* "libdeflate 1.14" or "zlib 1.2.13": what deflates. */
const char *bgzf_deflate_library(void);

#endif
