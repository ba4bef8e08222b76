/*
 * bam_piece.h -- a piece of an input, as a worker gets it from the reader.
 *
 * A piece has one of three forms:
 *   - whole BGZF blocks, which a worker inflates directly to the place where the records stay;
 *   - whole lines of SAM, which a worker parses into a buffer of the piece (sam_chunk.h);
 *   - raw bytes that are in place already.
 * The raw bytes of a piece continue those of the piece before it. A record may begin in one piece
 * and end in the next, except in SAM, and where the records were read one by one.
 *
 * Threads: any, each piece one at a time. Errors: -1 without a message.
 */
#ifndef ROCKSORT_INPUT_BAM_PIECE_H
#define ROCKSORT_INPUT_BAM_PIECE_H

#include "bam/bgzf_block.h"
#include "bam/input_position.h"
#include "input/sam_chunk.h"

struct bam_piece {              /* starts as {0} */
    uint8_t *compressed;        /* BGZF blocks, owned by the piece */
    size_t compressed_bytes;    /* 0: the raw bytes are in place already */
    size_t compressed_room;
    size_t raw_bytes;
    uint64_t file_offset;       /* of the BGZF block in which the raw bytes begin */
    uint32_t block_offset;      /* where in that block they begin; 0 for compressed pieces */
    uint64_t end_offset;        /* BGZF virtual offset of the piece's end; often unknown */
    struct sam_chunk lines;     /* SAM only */
};

/* Inflates the blocks to raw. Returns 0, or -1 if a block is damaged. */
int bam_piece_inflate(struct bam_piece *piece, struct bgzf_coder *coder, uint8_t *raw);

/* The BGZF virtual offset of a raw byte of the piece, or of its end (raw_at is raw_bytes).
   INPUT_OFFSET_UNKNOWN unless the reader can seek. */
uint64_t bam_piece_offset(const struct bam_piece *piece, size_t raw_at);

void bam_piece_release(struct bam_piece *piece);

#endif
