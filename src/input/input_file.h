/*
 * input_file.h -- what the system says of an input before it is opened. An input is named by its
 * path, or by "-" for standard input, which may be a regular file, too. Any thread.
 *
 * htslib knows other names of a file, "file:///DIR/FILE" and "FILE##idx##INDEX". For the system
 * these are no files, so they are taken apart where options are parsed, and nowhere else.
 */
#ifndef ROCKSORT_INPUT_INPUT_FILE_H
#define ROCKSORT_INPUT_INPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* The name as the system knows it, to be freed; NULL without memory. */
char *input_plain_name(const char *name);

/* As stat, or as fstat of standard input. */
int input_stat(const char *path, struct stat *st);

/* As input_stat; false if it is no regular file. */
bool input_is_regular(const char *path, struct stat *st);

bool input_is_pipe(const char *path);           /* or a socket */

/* Size of a regular file; -1 of anything else. */
int64_t input_bytes(const char *path);

/* Sum of the sizes of n inputs; 0 if one of them is no regular file. */
uint64_t input_bytes_of_all(const char *const *paths, size_t n);

#endif
