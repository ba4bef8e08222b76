/*
 * bam_index_file.h -- reads the index of a sorted BAM file, so that it can become part of the index
 * of a file that the BAM's blocks are copied into.
 *
 * Threads: any. Errors: no messages.
 */
#ifndef ROCKSORT_OUTPUT_BAM_INDEX_FILE_H
#define ROCKSORT_OUTPUT_BAM_INDEX_FILE_H

#include "output/bam_index_part.h"

struct bam_index_file {
    int32_t n_refs;
    struct bam_index_part part; /* all of the file; without its end, and without the begin of reads
                                   without a place if there are no others */
    uint64_t n_records;
    uint64_t last_begin;        /* where one of the last placed records begins; 0: there are none */
};

/*
 * Finds and reads the index of the BAM file at `path`: FILE.bam.csi, FILE.csi, FILE.bam.bai or
 * FILE.bai, if it is not older than the BAM. Returns 0, or -1 if it is missing, older, damaged, or
 * does not count records. The caller releases the part.
 */
int bam_index_file_read(const char *path, struct bam_index_file *index);

#endif
