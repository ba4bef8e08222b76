/*
 * input_error.h -- prints messages about bad input, for the sort, --verify and --plan.
 *
 * Each function prints one message (diag.h). `input` is the name of the input in messages. For
 * messages about valid records that cannot be sorted see record_problem.h. Any thread.
 */
#ifndef ROCKSORT_INPUT_INPUT_ERROR_H
#define ROCKSORT_INPUT_INPUT_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A record is damaged. Its number counts from 1; the name of the read is NULL or empty if it is not
   known. (A short form of record_problem_print.) */
void input_error_record(const char *input, uint64_t number, const char *read_name,
                        const char *problem);

/* A second file of this format ("BAM") begins after record or byte (the unit) `number`, from 1. */
void input_error_joined(const char *input, const char *format, const char *unit, uint64_t number);

/* Reading failed near a byte of the file. errno is the reason; 0: bad content. */
void input_error_read(const char *input, uint64_t offset);

/* The header is invalid, or htslib cannot parse it; or, if text is NULL, it is missing or cannot be
   read. is_cut: the file ends within the last line. */
void input_error_header(const char *input, const char *text, bool known_types, bool is_cut);

/* A warning: the file ends within its last line of SAM, that of this read. */
void input_warn_cut(const char *input, const char *read_name);

/* A warning: BGZF or CRAM without an EOF marker. */
void input_warn_no_eof_marker(const char *input);

#endif
