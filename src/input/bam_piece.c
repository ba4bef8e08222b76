/* bam_piece.c -- see bam_piece.h. */
#include "input/bam_piece.h"

#include <stdlib.h>

int bam_piece_inflate(struct bam_piece *piece, struct bgzf_coder *coder, uint8_t *raw)
{
    const uint8_t *block = piece->compressed, *end = block + piece->compressed_bytes;
    while (block < end) {
        size_t block_bytes = bgzf_block_bytes(block);
        if (bgzf_block_inflate(coder, block, block_bytes, raw) < 0) return -1;
        raw += bgzf_block_raw_bytes(block, block_bytes);
        block += block_bytes;
    }
    return 0;
}

uint64_t bam_piece_offset(const struct bam_piece *piece, size_t raw_at)
{
    if (raw_at == piece->raw_bytes || piece->end_offset == INPUT_OFFSET_UNKNOWN)
        return piece->end_offset;
    if (piece->compressed_bytes == 0)
        return piece->file_offset << 16 | (piece->block_offset + (uint32_t)raw_at);
    const uint8_t *block = piece->compressed;
    for (;;) {
        size_t block_bytes = bgzf_block_bytes(block);
        uint32_t raw_bytes = bgzf_block_raw_bytes(block, block_bytes);
        if (raw_at < raw_bytes)
            return (piece->file_offset + (uint64_t)(block - piece->compressed)) << 16 | raw_at;
        raw_at -= raw_bytes;
        block += block_bytes;
    }
}

void bam_piece_release(struct bam_piece *piece)
{
    free(piece->compressed);
    sam_chunk_release(&piece->lines);
    *piece = (struct bam_piece){0};
}
