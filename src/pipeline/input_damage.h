/*
 * input_damage.h -- what is said of an input with damaged records or blocks, in the same words
 * whoever meets them: the sort, --verify, or the sample that --plan takes.
 *
 * Each function prints one error (diag.h). Any thread.
 */
#ifndef ROCKSORT_PIPELINE_INPUT_DAMAGE_H
#define ROCKSORT_PIPELINE_INPUT_DAMAGE_H

#include <stdint.h>

struct batch_problem;
struct bam_piece;

/* A record by its number, from 1. The read's name is NULL or empty if it is not known. */
void input_damage_record(const char *input, uint64_t number, const char *read_name,
                         const char *problem);

/* A whole record that cannot be sorted; the problem is to be read behind its name. */
void input_damage_unfit(const char *input, uint64_t number, const char *read_name,
                        const char *problem);

/* A record that batch_index_part does not take: one of the two. */
void input_damage_refused(const char *input, const struct batch_problem *problem);

/* A piece that bam_piece_inflate does not take. */
void input_damage_piece(const char *input, const struct bam_piece *piece);

#endif
