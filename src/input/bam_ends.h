/*
 * bam_ends.h -- the first and the last record of a sorted BAM file, and where its blocks are.
 *
 * Threads: any. Errors: no messages; whoever reads the whole file will find out what is wrong.
 */
#ifndef ROCKSORT_INPUT_BAM_ENDS_H
#define ROCKSORT_INPUT_BAM_ENDS_H

#include <htslib/sam.h>
#include <stdint.h>

struct bam_ends {
    uint64_t begin;             /* byte of the file where the first block of records begins */
    bam1_t *first, *last;       /* NULL: there are no records; `last`: or it was not asked for */
};

/*
 * Reads the ends of a BGZF-compressed BAM file. last_begin is a virtual offset at which one of the
 * last records begins, or 0 if the last record does not matter. Returns 0, or -1 if the file is no
 * such file, is damaged, has no EOF block, or has records in the block in which its header ends.
 * The caller releases the ends.
 */
int bam_ends_read(const char *path, uint64_t last_begin, struct bam_ends *ends);

void bam_ends_release(struct bam_ends *ends);

#endif
