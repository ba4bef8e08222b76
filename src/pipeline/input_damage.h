/*
 * input_damage.h -- what is said of an input with damaged records or blocks, in the same words
 * whoever meets them: the sort, --verify, or the sample that --plan takes.
 *
 * Each function prints one error (diag.h). Any thread.
 */
#ifndef ROCKSORT_PIPELINE_INPUT_DAMAGE_H
#define ROCKSORT_PIPELINE_INPUT_DAMAGE_H

#include <stdint.h>

struct bam_piece;

/* A record by its number, from 1. The read's name is NULL or empty if it is not known. */
void input_damage_record(const char *input, uint64_t number, const char *read_name,
                         const char *problem);

/* A piece that bam_piece_inflate does not take. */
void input_damage_piece(const char *input, const struct bam_piece *piece);

#endif
