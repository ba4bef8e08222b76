/*
 * run_db.h -- stores sorted runs in one temporary RocksDB database and scans them.
 *
 * A run consists of one or more files. When it *ends*, these are on the disk, unless fsync is
 * skipped (resume/delayed_fsync.h). Then it is *admitted*: RocksDB ingests all of its files at once
 * and lists them durably in its manifest. Each run has a label, bytes that the caller chooses.
 * Another process can open the database and read runs and labels.
 *
 * Order of calls: create; for each run begin, put its blocks in key order, label, then end or
 * abandon; compact if that pays; then scans, which return the blocks of all runs in key order.
 * Destroy at any time.
 *
 * Ownership: the database copies its arguments. A key or value from a scan is valid until the next
 * call for that scan. Threads: one at a time begins runs, one ends runs, one puts into each file of
 * a run, and one uses each scan. Any thread may ask about compactions. Errors: RUN_DB_ERROR or NULL
 * after a message that names the directory. RUN_DB_FULL comes without a message, because the caller
 * may have another directory.
 */
#ifndef ROCKSORT_SPILL_RUN_DB_H
#define ROCKSORT_SPILL_RUN_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_db;
struct begun_run;               /* a run that has begun */
struct run_scan;

enum { RUN_DB_ERROR = -1, RUN_DB_FULL = -2 };

struct run_db_settings {
    size_t compaction_read_bytes;       /* of a file at a time; 0: the kernel's readahead */
    /* Compactions and scans use O_DIRECT. Allows one scan at a time, and no runs after it. Opens
       the database again before the first of them: otherwise RocksDB would read the end of each new
       run from the disk. */
    bool direct;
    bool existing;                      /* another process made the database */
    bool read_only;                     /* existing; no runs, no compactions, no writes */
    bool may_lack_files;                /* read_only: drops runs whose files are missing, which does
                                           write; the caller reads the input again */
    unsigned n_admitted;                /* admits at least this many runs together; more when there
                                           are many files */
    unsigned number;                    /* of the database, if the directory has several */
    unsigned n_compactions;             /* limit for all databases of the process together */
    bool few_files, long_keys;          /* see rocksdb_opts.h */
};

/* If there is no space and `full` is not NULL, prints no message but sets *full to the system's
   error, a constant text. */
struct run_db *run_db_create(const char *dir, const struct run_db_settings *settings,
                             const char **full);

/* True if the directory has a database of that number. */
bool run_db_exists(const char *dir, unsigned number);

/* Ends compactions and closes the database; its files stay. Accepts NULL. */
void run_db_destroy(struct run_db *db);

/* ---- writing runs ---- */

/* All keys of a file come before those of the next one, and each file gets at least one block. */
int run_db_begin_run(struct run_db *db, unsigned n_files, struct begun_run **writer);

int run_db_put(struct begun_run *writer, unsigned file, const uint8_t *key, size_t key_bytes,
               const uint8_t *value, size_t value_bytes);

/* Call it once for each run, after the last block of all its files. */
int run_db_label_run(struct begun_run *writer, uint32_t run, const uint8_t *label,
                     size_t label_bytes);

/* Writes the rest of the run and waits until it is on the disk. Admits the run at once, or together
   with later runs: n_admitted of them, or a 64th of the existing files, if that many end within two
   seconds. Frees the writer, also on failure. */
int run_db_end_run(struct begun_run *writer);

/* Admits all runs that have ended. */
int run_db_admit_runs(struct run_db *db);

/* Drops the run and frees the writer. Accepts NULL. */
void run_db_abandon_run(struct begun_run *writer);

/* After RUN_DB_FULL: returns the system's error, a constant text. Accepts NULL. */
const char *run_db_full_reason(const struct run_db *db);

/* ---- contents ---- */

/* Calls take(arg, ...) for the label of each run, until `take` returns -1 after a message. Returns
   0, or -1 after a message. */
int run_db_labels(struct run_db *db, int (*take)(void *arg, const uint8_t *label, size_t n_bytes),
                  void *arg);

/* The runs that have ended. */
struct run_db_totals {
    unsigned n_runs;
    unsigned n_files;           /* before compactions */
    uint64_t n_bytes;           /* of these files */
    size_t key_bytes;           /* approximate size of the longest key of a block */
};

const struct run_db_totals *run_db_totals(const struct run_db *db);

/* Returns how many of them another process would find. */
unsigned run_db_n_durable(const struct run_db *db);

/* Return how many files hold the runs now, and how many may be open when all runs that have ended
   are admitted, which can be more during compactions. For the thread that ends runs, or after the
   last run. */
unsigned run_db_n_files(const struct run_db *db);
unsigned run_db_n_open(struct run_db *db);

/* Returns how many bytes compactions have written so far. */
uint64_t run_db_compacted_bytes(const struct run_db *db);

/* ---- compactions ---- */

/* From now on, whenever there are more than max_files files, RocksDB compacts the newest
   least_width to width files of similar sizes, in the background. Returns 0, or -1 after a message.
   */
int run_db_compact(struct run_db *db, unsigned least_width, unsigned width, unsigned max_files);

/* True while a compaction runs, unless one has failed. */
bool run_db_is_compacting(const struct run_db *db);

/* True if RocksDB will begin a compaction as soon as its thread gets a CPU. False after one has
   failed. Only for the thread that calls run_db_compact. */
bool run_db_compaction_is_due(const struct run_db *db);

/* True if a compaction has failed. The runs are unchanged. RocksDB retries until
   run_db_stop_compactions is called, which warns and returns 0, or -1 after a message. */
bool run_db_compact_failed(const struct run_db *db);
int run_db_stop_compactions(struct run_db *db);

/* ---- scans ---- */

/* Makes a scan of all blocks, which starts with the first run_scan_key. It reads read_bytes of a
   file at a time (0: the kernel's readahead). */
struct run_scan *run_scan_open(struct run_db *db, size_t read_bytes);

/* Returns 1 and the key of the current block, 0 after the last block, or -1 on failure. */
int run_scan_key(struct run_scan *scan, const uint8_t **key, size_t *key_bytes);

/* Returns the value of the current block; only after run_scan_key has returned 1. */
void run_scan_value(struct run_scan *scan, const uint8_t **value, size_t *value_bytes);

/* Returns the directory of the database, for messages. */
const char *run_scan_dir(const struct run_scan *scan);

void run_scan_next(struct run_scan *scan);

/* Accepts NULL. */
void run_scan_close(struct run_scan *scan);

#endif
