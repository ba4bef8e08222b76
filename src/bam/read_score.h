/*
 * read_score.h -- how good a read is: the sum of its good qualities, by which samtools markdup
 * chooses the best of several duplicates.
 */
#ifndef ROCKSORT_BAM_READ_SCORE_H
#define ROCKSORT_BAM_READ_SCORE_H

#include <stddef.h>
#include <stdint.h>

/* Sum of those of n qualities that are 15 or more. Missing qualities, of 255, count as they are.
   Pure; any thread. */
uint32_t read_score(const uint8_t *quals, size_t n);

#endif
