/*
 * input_file.h -- finds out type, size and name of an input before it is opened.
 *
 * An input is named by its path, or by "-" for standard input, which may be a regular file, too.
 * htslib also takes "file:///DIR/FILE" and "FILE##idx##INDEX", which the option parser converts to
 * paths (input_plain_name). Any thread. No messages.
 */
#ifndef ROCKSORT_INPUT_INPUT_FILE_H
#define ROCKSORT_INPUT_INPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* The name of the input in messages: its path, or "standard input". */
const char *input_shown_name(const char *path);

/* Converts htslib's form of a name to a path; the caller frees it. */
char *input_plain_name(const char *name);

/* Like stat, or like fstat for standard input. Returns 0, or -1 with errno set. */
int input_stat(const char *path, struct stat *st);

/* True if the input is a regular file; st is set then. */
bool input_is_regular(const char *path, struct stat *st);

/* True if `file` is a regular file and one of n inputs. */
bool input_is_among(const char *const *paths, size_t n, const char *file);

/* True for a pipe or a socket. */
bool input_is_pipe(const char *path);

/* The size of a regular file; -1 if it is anything else. */
int64_t input_bytes(const char *path);

/* The sum of the sizes of n inputs; 0 if one of them is not a regular file. */
uint64_t input_bytes_of_all(const char *const *paths, size_t n);

#endif
