/*
 * read_score.h -- computes the score of a read, the sum of its good base qualities. Of several
 * duplicates, samtools markdup keeps the one with the highest score.
 */
#ifndef ROCKSORT_BAM_READ_SCORE_H
#define ROCKSORT_BAM_READ_SCORE_H

#include "bam/bam_fields.h"

/* Returns the sum of the qualities of a checked record that are 15 or more. A missing quality
   counts as 255. Pure; any thread. */
uint32_t read_score(const uint8_t *rec);

#endif
