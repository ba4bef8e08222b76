/*
 * run_store.h -- sorted runs in a temporary RocksDB.
 *
 * Order of calls: create; for each run begin, put its blocks in key order, end; then one scan over
 * the blocks of all runs in key order; destroy at any time. A run is an SST file until it ends and
 * a part of the database from then on: RocksDB's manifest lists every run that ended, durably.
 *
 * Ownership: the store copies what it is given. Keys and values that a scan shows are valid until
 * its next call. Threads: one thread at a time for the runs, one for the scan. Errors: -1 after a
 * message that names the directory.
 */
#ifndef ROCKSORT_RUN_STORE_H
#define ROCKSORT_RUN_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_store;
struct run_scan;

/* Creates the store in an existing, empty directory. */
struct run_store *run_store_create(const char *dir);

/* Closes the database; the files stay. NULL is accepted. */
void run_store_destroy(struct run_store *store);

int run_store_begin_run(struct run_store *store);
int run_store_put(struct run_store *store, const uint8_t *key, size_t key_bytes,
                  const uint8_t *value, size_t value_bytes);
int run_store_end_run(struct run_store *store);

/* Runs that have ended, and the bytes of their files. */
unsigned run_store_n_runs(const struct run_store *store);
uint64_t run_store_bytes(const struct run_store *store);

/* Starts at the first block. Returns NULL after a message. */
struct run_scan *run_scan_open(struct run_store *store);

/* Returns 1 and shows the key of the current block, 0 behind the last block, -1 on error. */
int run_scan_key(struct run_scan *scan, const uint8_t **key, size_t *key_bytes);

/* The value of the current block; only after run_scan_key returned 1. */
void run_scan_value(struct run_scan *scan, const uint8_t **value, size_t *value_bytes);

void run_scan_next(struct run_scan *scan);
void run_scan_close(struct run_scan *scan);

#endif
