/*
 * bam_index.h -- makes the BAI or CSI index of the output while the output is written.
 *
 * Workers collect parts (bam_index_part.h), one for each output chunk. The writer appends them in
 * order. When a reference is complete, its bytes of the index file are made; in a CSI, those that
 * fill blocks are compressed. For a million short reads the bytes take 1 to 35 ms, and to compress
 * a CSI takes 0.2 s.
 *
 * The result is byte for byte that of `samtools index` for the same file (htslib 1.16 and 1.24; CSI
 * is compared before compression), with two exceptions. When htslib indexes SAM, it counts a mapped
 * read without CIGAR as unmapped. And it refuses a reference with two reads at position -1.
 *
 * Order of calls: create; init parts with the index's shape; append each part, in file order, when
 * the file offset of its output chunk is known; write, once; destroy, also after a failure.
 *
 * Memory: the size of the index file so far, at most 4.7 MB for a human genome; and for the current
 * reference its size in the index, 40 bytes for each chunk, 48 for each bin, and 8 for each window.
 * Threads: one at a time. Errors: -1 or NULL after a message.
 */
#ifndef ROCKSORT_OUTPUT_BAM_INDEX_H
#define ROCKSORT_OUTPUT_BAM_INDEX_H

#include "output/bam_index_part.h"
#include "output/output_path.h"

#include <htslib/sam.h>

enum bam_index_format {
    BAM_INDEX_BAI,                      /* references of at most 2^29 bases */
    BAM_INDEX_CSI,
};

struct bam_index;

/* Makes an index for a file with the references of the header. Does not keep the header. */
struct bam_index *bam_index_create(enum bam_index_format format, const sam_hdr_t *header);

const struct bam_index_shape *bam_index_shape(const struct bam_index *index);

/* Adds the part of the output chunk at file_offset. Output chunks follow each other without gaps,
   and may have no records. Returns 0, or -1 after a message, for instance if records are not in
   coordinate order. */
int bam_index_append(struct bam_index *index, const struct bam_index_part *part,
                     uint64_t file_offset);

/* Writes and commits (output_path.h) the index file, after the last append. Call it when the output
   is closed: readers warn if the index is older than its file. Removes the index file on
   failure. */
int bam_index_write(struct bam_index *index, struct output_path *path);

/* Accepts NULL. */
void bam_index_destroy(struct bam_index *index);

#endif
