/*
 * bam_index_reader.h -- reads the index of a sorted BAM file whose blocks are copied, so that it
 * becomes part of the index of the output.
 *
 * Threads: any. Errors: no messages.
 */
#ifndef ROCKSORT_OUTPUT_BAM_INDEX_READER_H
#define ROCKSORT_OUTPUT_BAM_INDEX_READER_H

#include "output/bam_index_part.h"

struct bam_read_index {
    int32_t n_refs;
    struct bam_index_part part; /* the whole file; `end` is not set, nor unplaced_begin if all reads
                                   are unplaced */
    uint64_t n_records;
    uint64_t last_begin;        /* start of one of the last placed records; 0: there are none */
};

/*
 * Finds and reads the index of the BAM file at `path`: FILE.bam.csi, FILE.csi, FILE.bam.bai or
 * FILE.bai, if it is not older than the BAM. Returns 0, or -1 if it is missing, older, damaged, or
 * does not count records. The caller releases the part.
 */
int bam_index_read(const char *path, struct bam_read_index *index);

#endif
