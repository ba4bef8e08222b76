/*
 * input_error.h -- messages about a bad input. The sort, --verify and --plan use the same words.
 *
 * Each function prints one message (diag.h). `input` is the name of the input in messages. Messages
 * about sound records that cannot be sorted are in record_problem.h. Any thread.
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

/* A file of this format ("BAM") begins after a record or a byte (the unit) of this number, from 1.
   */
void input_error_joined(const char *input, const char *format, const char *unit, uint64_t number);

/* Reading failed near a byte of the file. errno is the reason; 0: the content of the file is
   bad. */
void input_error_read(const char *input, uint64_t offset);

/* htslib cannot parse the header with this text, or a line of it is wrong. is_cut: the file ends
   within the last line. */
void input_error_header(const char *input, const char *text, bool known_types, bool is_cut);

/* There is no header, or it cannot be read. */
void input_error_no_header(const char *input);

/* A warning: the file ends within the last line of text, which is of this read. */
void input_warn_cut(const char *input, const char *read_name);

/* A warning: the last block of BGZF or CRAM is not the one that marks the end. */
void input_warn_no_eof_marker(const char *input);

#endif
