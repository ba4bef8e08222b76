/*
 * input_error.h -- what is said of a bad input: in the same words by the sort, --verify and --plan.
 *
 * Each function prints one message (diag.h). `input` is the name of the input in messages. What is
 * wrong with a record that cannot be sorted: record_problem.h. Any thread.
 */
#ifndef ROCKSORT_INPUT_INPUT_ERROR_H
#define ROCKSORT_INPUT_INPUT_ERROR_H

#include <stdint.h>

struct bam_piece;

/* A record is damaged: record_problem_print in short. The number counts from 1; the read's name is
   NULL or empty if it is not known. */
void input_error_record(const char *input, uint64_t number, const char *read_name,
                        const char *problem);

/* bam_piece_inflate failed. */
void input_error_piece(const char *input, const struct bam_piece *piece);

/* Reading failed near a byte of the file, with errno; 0: its content is bad. */
void input_error_read(const char *input, uint64_t offset);

/* htslib cannot parse the header, and has said why. */
void input_error_header(const char *input);

/* htslib did not take threads. */
void input_error_threads(const char *input);

/* A warning: the last block of BGZF or CRAM is not the one that marks the end. */
void input_warn_no_eof_marker(const char *input);

#endif
