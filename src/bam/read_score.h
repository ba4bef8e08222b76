/*
 * read_score.h -- computes the score of a read, the sum of its good base qualities. Of several
 * duplicates, samtools markdup keeps the one with the highest score.
 */
#ifndef ROCKSORT_BAM_READ_SCORE_H
#define ROCKSORT_BAM_READ_SCORE_H

#include <stddef.h>
#include <stdint.h>

/* Returns the sum of the qualities that are 15 or more. A missing quality counts as 255. Pure; any
   thread. */
uint32_t read_score(const uint8_t *quals, size_t n);

#endif
