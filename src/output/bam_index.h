/*
 * bam_index.h -- BAI and CSI indexes, made while the file is written.
 *
 * Workers collect parts (bam_index_part.h), one for each segment of the output; the writer appends
 * them in the order of the segments. When a reference is complete, what the index has of it is
 * turned into the bytes that will stand in the file, and for CSI into compressed blocks, so that
 * nothing much is left to do at the end. For a million reads of 150 bp (0.35 GB uncompressed),
 * workers need 10 to 50 ns a record; the writer needs 1 ms in all where the reads lie densely, and
 * 35 ms where they are spread over a human genome, which has 4.7 MB of index. To compress those
 * for CSI takes another 0.2 s.
 *
 * The result is what `samtools index` makes of the same file, byte for byte (htslib 1.16 and 1.24;
 * a CSI before compression). Two exceptions: reading SAM, htslib takes a mapped read without CIGAR
 * for unmapped and counts it so; and it refuses a reference with two reads at position -1.
 *
 * Order of calls: create; init parts with the index's shape; append each part, in file order, when
 * the place of its segment is known; write, once; destroy, also after a failure.
 *
 * Memory: the size of the index file so far, and 40 bytes a chunk, 48 a bin, and 8 a window of the
 * reference at hand. That is 0.4 MB for each GB of BAM where reads lie densely. Where they are thin
 * every window has a bin of its own and takes 25 bytes: 4.7 MB for a human genome.
 *
 * Threads: one at a time. Errors: -1 or NULL after a message, or -1 without memory in append.
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

/* An index for files with this header's references. The header is not needed later. */
struct bam_index *bam_index_create(enum bam_index_format format, const sam_hdr_t *header);

const struct bam_index_shape *bam_index_shape(const struct bam_index *index);

/*
 * Adds the part of the segment that stands at file_offset. Segments are adjacent; one may be empty
 * of records. Returns -1 also if records are not in coordinate order.
 */
int bam_index_append(struct bam_index *index, const struct bam_index_part *part,
                     uint64_t file_offset);

/*
 * Writes the index file, after the last append, and gives it its name. Readers warn if the index is
 * older than the file, so this comes last. A file that could not be completed is removed.
 */
int bam_index_write(struct bam_index *index, const struct output_path *path);

/* NULL is accepted. */
void bam_index_destroy(struct bam_index *index);

#endif
