/*
 * input_file.h -- what the system knows about an input before it is opened.
 *
 * An input is named by its path, or by "-" for standard input, which may be a regular file, too.
 * htslib also takes "file:///DIR/FILE" and "FILE##idx##INDEX". The system does not know such names:
 * the parser of options turns them into plain ones, so that nobody else meets them.
 *
 * Threads: any. Errors: no messages.
 */
#ifndef ROCKSORT_INPUT_INPUT_FILE_H
#define ROCKSORT_INPUT_INPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* What messages call the input: its path, or "standard input". */
const char *input_shown_name(const char *path);

/* The name that the system knows; the caller frees it. */
char *input_plain_name(const char *name);

/* As stat, or as fstat of standard input. Returns 0, or -1 with errno. */
int input_stat(const char *path, struct stat *st);

/* True if the input is a regular file; st is set then. */
bool input_is_regular(const char *path, struct stat *st);

/* True for a pipe or a socket. */
bool input_is_pipe(const char *path);

/* The size of a regular file; -1 if it is anything else. */
int64_t input_bytes(const char *path);

/* The sum of the sizes of n inputs; 0 if one of them is no regular file. */
uint64_t input_bytes_of_all(const char *const *paths, size_t n);

#endif
