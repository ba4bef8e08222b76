/*
 * bgzf_block.h -- inflates and deflates single BGZF blocks directly between the caller's buffers.
 * htslib's BGZF reader and writer copy every byte twice more and allocate a (de)compressor for each
 * block. With libdeflate a level gives the same size as in an htslib with libdeflate.
 *
 * To read a block: bgzf_block_bytes of its header, bgzf_block_raw_bytes once the block is whole,
 * bgzf_block_inflate. To write one: bgzf_block_deflate, or bgzf_block_store for level 0. A file
 * ends with bgzf_end_block.
 *
 * Threads: a bgzf_coder (bgzf_engine.h) is used by one at a time. The other functions are pure.
 */
#ifndef ROCKSORT_BAM_BGZF_BLOCK_H
#define ROCKSORT_BAM_BGZF_BLOCK_H

#include "bam/bgzf_engine.h"
#include "util/byte_buffer.h"

enum {
    BGZF_HEADER_BYTES = 18,             /* as this program and htslib write it */
    BGZF_FOOTER_BYTES = 8,              /* CRC-32 and size of the uncompressed data */
    BGZF_MAX_BYTES = 65536,             /* largest block, compressed or not */
    BGZF_PAYLOAD_BYTES = 0xff00,        /* uncompressed bytes that htslib puts into one block */
};

/* Returns the size of the block with this header, or 0 if it is not a BGZF header. The first extra
   field must be BGZF's, as all programs write it. */
size_t bgzf_block_bytes(const uint8_t header[BGZF_HEADER_BYTES]);

/* The empty block that marks the end of a complete file (SAM specification, section 4.1.2). */
enum { BGZF_END_BYTES = 28 };
extern const uint8_t bgzf_end_block[BGZF_END_BYTES];

/* Returns the uncompressed size that the footer of a whole block claims. */
uint32_t bgzf_block_raw_bytes(const uint8_t *block, size_t block_bytes);

/*
 * Inflates a whole block to out, which has room for bgzf_block_raw_bytes, and checks its CRC.
 * Returns 0, or -1 if the block is damaged.
 */
int bgzf_block_inflate(struct bgzf_coder *coder, const uint8_t *block, size_t block_bytes,
                       uint8_t *out);

/*
 * Deflates at most BGZF_PAYLOAD_BYTES into a block at out, which has room for BGZF_MAX_BYTES. Bytes
 * that do not get smaller are stored. Returns the size of the block, or -1 if the library fails.
 */
ssize_t bgzf_block_deflate(struct bgzf_coder *coder, struct bgzf_method method,
                           const uint8_t *raw, size_t raw_bytes, uint8_t *out);

/* Appends any number of bytes to `out`, in blocks. Returns 0, or -1 if the library fails. */
int bgzf_append(struct byte_buffer *out, struct bgzf_method method, const uint8_t *raw,
                size_t raw_bytes);

/*
 * Level 0 without a copy: the caller writes raw_bytes to out + BGZF_STORED_OFFSET, then
 * bgzf_block_store turns them into the block at out. Returns the size of the block.
 */
enum { BGZF_STORED_OFFSET = BGZF_HEADER_BYTES + 5 };
size_t bgzf_block_store(uint8_t *out, size_t raw_bytes);

#endif
