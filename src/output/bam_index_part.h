/*
 * bam_index_part.h -- collects the index of one output chunk (bam_index.h joins them).
 *
 * A worker knows the offset of each record in its output chunk, but not the offset of the output
 * chunk in the file. It collects a part with virtual offsets within the output chunk;
 * bam_index_append adds the offset of the output chunk. Parts are small: consecutive records of a
 * bin share a chunk, and the linear index has an entry only where a record reaches further than all
 * records before it.
 *
 * Order of calls: init; add for every record in order; end; bam_index_append; release. A zeroed
 * part may be released, too.
 *
 * A virtual offset (bam_index_voffset) is the offset of a BGZF block, here from the start of the
 * output chunk, and an offset in the block's uncompressed data. There are no gaps, and an output
 * chunk starts with a block, so a record ends where the next one begins. After a full block the
 * next record begins at offset 0 of the next block, even if that does not exist yet. In a SAM file
 * a line is a record.
 *
 * The reference length of a record is that of its CIGAR; if that is in the CG tag, that of the N
 * operation in the placeholder CIGAR (bam_long.h). As in htslib, a read that is unmapped or whose
 * CIGAR consumes no reference has length 1, and position -1 counts as 0.
 *
 * Threads: a part has one owner at a time. Errors: -1 after a message that names the record.
 */
#ifndef ROCKSORT_OUTPUT_BAM_INDEX_PART_H
#define ROCKSORT_OUTPUT_BAM_INDEX_PART_H

#include "bam/bam_fields.h"

#include <stddef.h>
#include <stdint.h>

enum { BAM_INDEX_MAX_DEPTH = 9 };       /* with more, bin numbers exceed 32 bits in htslib */

/* The tree of bins. Level 0 is one bin, and each further level has 8 times as many. A bin of the
   last level, number `depth`, holds 2^min_shift bases; so does a window of the linear index. */
struct bam_index_shape {
    int min_shift;
    int depth;
};

/* The fixed shape of a BAI. */
enum { BAM_INDEX_BAI_MIN_SHIFT = 14, BAM_INDEX_BAI_DEPTH = 5 };

/* The number of the first bin of a level, which is also the number of all bins above the level. */
static inline uint32_t bam_index_first_bin(int level)
{
    return (uint32_t)(((UINT64_C(1) << (3 * level)) - 1) / 7);
}

/* The number of the pseudo-bin, which holds the start, end and counts of a reference. */
static inline uint32_t bam_index_pseudo_bin(const struct bam_index_shape *shape)
{
    return bam_index_first_bin(shape->depth + 1) + 1;
}

/* The first window of a bin of a level, and the one after its last. */
static inline uint64_t bam_index_first_window(const struct bam_index_shape *shape, uint32_t bin,
                                              int level)
{
    return (uint64_t)(bin - bam_index_first_bin(level)) << 3 * (shape->depth - level);
}

static inline uint64_t bam_index_end_window(const struct bam_index_shape *shape, uint32_t bin,
                                            int level)
{
    return bam_index_first_window(shape, bin + 1, level);
}

static inline uint64_t bam_index_voffset(uint64_t block_offset, uint64_t in_block)
{
    return block_offset << 16 | in_block;
}

struct bam_index_chunk {                /* a part of the file that has records of a bin */
    uint64_t begin, end;                /* virtual offsets */
    uint32_t bin;
    int level;                          /* of the bin */
};

struct bam_index_windows {              /* windows that a record is the first to touch */
    uint64_t begin;                     /* of the record */
    uint32_t first, last;
};

struct bam_index_ref {                  /* one reference, and its share of the lists */
    int32_t tid;
    uint64_t begin;                     /* of its first record */
    size_t n_chunks, n_windows;
    uint64_t n_mapped, n_unmapped;
};

struct bam_index_part {
    struct bam_index_shape shape;
    /* the result */
    struct bam_index_ref *refs;
    size_t n_refs, refs_room;
    struct bam_index_chunk *chunks;     /* of each reference, in order of `begin` */
    size_t n_chunks, chunks_room;
    struct bam_index_windows *windows;
    size_t n_windows, windows_room;
    uint64_t n_unplaced;                /* records without a reference */
    uint64_t unplaced_begin;            /* of the first of them */
    uint64_t end;                       /* of the output chunk */
    /* while records are added: the current reference */
    int32_t tid;                        /* -1: none */
    uint32_t bin;                       /* of the record before */
    int64_t last_window;                /* -1: no record yet */
    size_t open_chunk;
    size_t level_chunk[BAM_INDEX_MAX_DEPTH + 1];        /* the last chunk of each level */
};

/* The shape is that of the index to which the part will be appended: bam_index_shape. */
void bam_index_part_init(struct bam_index_part *part, const struct bam_index_shape *shape);
void bam_index_part_release(struct bam_index_part *part);

/* Adds a checked record that begins at the virtual offset. Records come in coordinate order. */
int bam_index_part_add(struct bam_index_part *part, const uint8_t *rec, uint64_t begin);

/* The output chunk ends here: bam_index_voffset(its size in bytes, 0). */
void bam_index_part_end(struct bam_index_part *part, uint64_t end);

#endif
