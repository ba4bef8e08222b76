/*
 * run_db.h -- sorted runs in one temporary RocksDB.
 *
 * Order of calls: create; for each run begin, put its blocks in key order, end or abandon; compact
 * and settle where that is wanted; then scans over the blocks of all runs in key order; destroy at
 * any time. A run is an SST file until it ends and a part of the database from then on: RocksDB's
 * manifest lists every run that ended, durably.
 *
 * Ownership: the database copies what it is given. Keys and values that a scan shows are valid
 * until its next call. Threads: one thread at a time for the runs, one for each scan; RocksDB's own
 * thread compacts. Errors: negative after a message that names the directory; RUN_DB_FULL without
 * one, since the caller may know another place.
 */
#ifndef ROCKSORT_RUN_DB_H
#define ROCKSORT_RUN_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_db;
struct run_scan;

enum { RUN_DB_ERROR = -1, RUN_DB_FULL = -2 };

/*
 * Creates the database in an existing, empty directory. Compactions read compaction_read_bytes of a
 * file at a time (0: as the kernel does). If `direct`, reading goes past the page cache.
 */
struct run_db *run_db_create(const char *dir, size_t compaction_read_bytes, bool direct);

/* Closes the database, which ends its compactions; the files stay. NULL is accepted. */
void run_db_destroy(struct run_db *db);

int run_db_begin_run(struct run_db *db);
int run_db_put(struct run_db *db, const uint8_t *key, size_t key_bytes, const uint8_t *value,
               size_t value_bytes);
int run_db_end_run(struct run_db *db);

/* After RUN_DB_FULL: what the system said. */
const char *run_db_full_error(const struct run_db *db);

/* Drops the run that was begun, if any. */
void run_db_abandon_run(struct run_db *db);

/* Runs that have ended, and the bytes of their files. */
unsigned run_db_n_runs(const struct run_db *db);
uint64_t run_db_bytes(const struct run_db *db);

/* The path of the run that ended last, as a file of the database, or NULL; freed by the caller. */
char *run_db_last_file(const struct run_db *db);

/* Files that hold the runs now, and the bytes that compactions have written so far. */
unsigned run_db_n_files(const struct run_db *db);
uint64_t run_db_compacted_bytes(const struct run_db *db);

/*
 * From now on, whenever there are more than max_files files, least_width to width of the newest that
 * are about of one size become one, in the background. Returns 0, or -1 after a message.
 */
int run_db_compact(struct run_db *db, unsigned least_width, unsigned width, unsigned max_files);

/* True while a compaction runs or is due. False after one has failed: see run_db_compact_failed. */
bool run_db_is_compacting(const struct run_db *db);

/* True if compaction has stopped since one failed; the runs themselves are as they were. */
bool run_db_compact_failed(const struct run_db *db);

/* Starts at the first block, reading read_bytes at a time (0: as the kernel does). Returns NULL
   after a message. */
struct run_scan *run_scan_open(struct run_db *db, size_t read_bytes);

/* Returns 1 and shows the key of the current block, 0 behind the last block, -1 on error. */
int run_scan_key(struct run_scan *scan, const uint8_t **key, size_t *key_bytes);

/* The value of the current block; only after run_scan_key returned 1. */
void run_scan_value(struct run_scan *scan, const uint8_t **value, size_t *value_bytes);

/* The directory of the database, for messages. */
const char *run_scan_dir(const struct run_scan *scan);

void run_scan_next(struct run_scan *scan);
void run_scan_close(struct run_scan *scan);

#endif
