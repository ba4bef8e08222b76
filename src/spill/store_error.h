/*
 * store_error.h -- converts RocksDB's error strings to our messages.
 *
 * Any thread. `dir` is the temporary directory of the database.
 */
#ifndef ROCKSORT_SPILL_STORE_ERROR_H
#define ROCKSORT_SPILL_STORE_ERROR_H

/* Returns the system's error, a constant text, if RocksDB's error string means a full disk; else
   NULL. */
const char *store_error_full(const char *error);

/* Prints RocksDB's error as our message and frees it. doing: "read", "write" and so on, as part of
   "cannot ... the temporary data". Returns 0 if error is NULL, else -1. */
int store_error_check(const char *dir, const char *doing, char *error);

#endif
