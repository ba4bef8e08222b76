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
    bam1_t *after;              /* at placed_end; NULL: the file ends there, or nobody asked */
};

struct bam_ends_places {        /* virtual offsets, from an index; 0: this end does not matter */
    uint64_t placed_end;        /* where the last record with a place ends */
    uint64_t last_begin;        /* where one of the last records begins */
};

/*
 * Reads the ends of a BGZF-compressed BAM file. Returns 0, or -1 if the file is no such file, is
 * damaged, has no EOF block, or has records in the block in which its header ends, or if no records
 * begin at the places. The caller releases the ends.
 */
int bam_ends_read(const char *path, const struct bam_ends_places *places, struct bam_ends *ends);

void bam_ends_release(struct bam_ends *ends);

#endif
