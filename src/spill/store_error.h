/*
 * store_error.h -- RocksDB's error strings in our own words.
 *
 * Any thread may call these functions. `dir` is always the temporary directory of the database.
 */
#ifndef ROCKSORT_SPILL_STORE_ERROR_H
#define ROCKSORT_SPILL_STORE_ERROR_H

#include <stdbool.h>

/* True if RocksDB's error string says that there is no space. */
bool store_error_means_full(const char *error);

/* What the system said about the full disk, as a constant text. RocksDB's own words around it name
   files at length. */
const char *store_error_full_reason(const char *error);

/* Prints RocksDB's error as our message and frees it. doing: "read", "write" and so on, as part of
   "cannot ... the temporary data". Returns 0 if error is NULL, else -1. */
int store_error_check(const char *dir, const char *doing, char *error);

#endif
