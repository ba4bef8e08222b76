/*
 * run_db.h -- sorted runs in one temporary RocksDB.
 *
 * Order of calls: create; for each run begin, put its blocks in key order, label, end or abandon;
 * compact where that is wanted; then scans over the blocks of all runs in key order; destroy at any
 * time. A run is an SST file until it ends and a part of the database from then on: RocksDB's
 * manifest lists every run that ended, durably, and the label, bytes of the caller's, with it.
 * Another process can open the database then, and ask for the labels of all runs.
 *
 * Ownership: the database copies what it is given. Keys and values that a scan shows are valid
 * until its next call. Threads: one at a time begins runs, one ends them, one puts into each; one
 * for each scan; RocksDB's own thread compacts; any thread may ask for files and compactions.
 * Errors: negative after a message that names the directory; RUN_DB_FULL without one, since the
 * caller may know another place.
 */
#ifndef ROCKSORT_STORE_RUN_DB_H
#define ROCKSORT_STORE_RUN_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_db;
struct run_writer;              /* a run that has begun */
struct run_scan;

enum { RUN_DB_ERROR = -1, RUN_DB_FULL = -2 };

struct run_db_settings {
    size_t compaction_read_bytes;       /* of a file at a time; 0: as the kernel does */
    /* Compactions and scans read past the page cache; a single scan then, and no runs after it. The
       database is opened again for the first of them: were it open in this way from the start,
       RocksDB would read the ends of each new run from the disk. */
    bool direct;
    bool existing;                      /* made by another process */
    bool read_only;                     /* existing; no runs, no compactions, nothing is written */
    unsigned n_admitted;                /* runs that become part of the database together */
    unsigned number;                    /* of the database, if there are several in the directory */
    unsigned n_compactions;             /* that databases of the process may run at a time */
};

/* Creates the database in a directory, or opens the existing one. Returns NULL after a message, or,
   unless `full` is NULL, without one and with what the system said, a constant, in *full when there
   is no space for it. */
struct run_db *run_db_create(const char *dir, const struct run_db_settings *settings,
                             const char **full);

/* True if there is a database of that number in the directory. */
bool run_db_exists(const char *dir, unsigned number);

/* Closes the database, which ends its compactions; the files stay. NULL is accepted. */
void run_db_destroy(struct run_db *db);

int run_db_begin_run(struct run_db *db, struct run_writer **writer);
int run_db_put(struct run_writer *writer, const uint8_t *key, size_t key_bytes,
               const uint8_t *value, size_t value_bytes);

/* After the last block, once: what the run, which has this number, says of itself. */
int run_db_label_run(struct run_writer *writer, uint32_t run, const uint8_t *label,
                     size_t label_bytes);

/* Shows the labels of all runs to take(arg, ...), which returns 0, or -1 after a message to stop.
   Returns 0, or -1. */
int run_db_labels(struct run_db *db, int (*take)(void *arg, const uint8_t *label, size_t n_bytes),
                  void *arg);

/* Writes the run to the end and to the disk. It becomes part of the database at once, or together
   with those after it; see run_db_create. Frees the writer, also after an error. */
int run_db_end_run(struct run_writer *writer);

/* Makes all runs that have ended part of the database. */
int run_db_admit_runs(struct run_db *db);

/* Drops the run and frees the writer; NULL is accepted. */
void run_db_abandon_run(struct run_writer *writer);

/* After RUN_DB_FULL: what the system said; NULL is accepted. */
const char *run_db_full_error(const struct run_db *db);

/* Runs that have ended, those of them that are durable, and the bytes of their files. */
unsigned run_db_n_runs(const struct run_db *db);
unsigned run_db_n_durable(const struct run_db *db);
uint64_t run_db_bytes(const struct run_db *db);

/* Files that hold the runs now, and the bytes that compactions have written so far. */
unsigned run_db_n_files(const struct run_db *db);
uint64_t run_db_compacted_bytes(const struct run_db *db);

/*
 * From now on, whenever there are more than max_files files, least_width to width of the newest
 * that are about of one size become one, in the background. Returns 0, or -1 after a message.
 */
int run_db_compact(struct run_db *db, unsigned least_width, unsigned width, unsigned max_files);

/* True while a compaction runs. False after one has failed: see run_db_compact_failed. */
bool run_db_is_compacting(const struct run_db *db);

/* True if there are more than max_files files that no compaction has taken: the next one will begin
   soon, unless there is no row of files for it. */
bool run_db_compaction_is_due(const struct run_db *db);

/* True if a compaction has failed; the runs themselves are as they were. RocksDB tries again, until
   run_db_stop_compactions, which returns 0, or -1 after a message. */
bool run_db_compact_failed(const struct run_db *db);
int run_db_stop_compactions(struct run_db *db);

/* A scan of all blocks, which begins, and reads, with the first run_scan_key, reading read_bytes at
   a time (0: as the kernel does). Returns NULL after a message. */
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
