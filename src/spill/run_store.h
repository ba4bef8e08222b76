/*
 * run_store.h -- stores all sorted runs of a sort in databases (run_db.h) in the temporary
 * directories: one in each directory, or several if seeks are slow (store_layout.h).
 *
 * Each run goes to the directory with enough space that will probably finish writing it first,
 * judged by the speed of earlier runs. A full directory gets no more runs. Each time a run ends,
 * the store decides what to compact (compaction_plan.h).
 *
 * Order of calls: create; for each run begin, put its blocks in key order, label, end; settle; then
 * scan each database, and merge the scans. Destroy at any time.
 *
 * Ownership: as in run_db.h. Threads: one begins and labels runs; one at a time puts blocks into
 * each file of a run; one ends runs in their order and calls the functions for compaction.
 * Errors: RUN_STORE_ERROR or NULL after a message. RUN_STORE_FULL, without a message: the directory
 * is full, or nearly full while another one is not; call run_store_make_room. RUN_STORE_AGAIN:
 * abandon the run and begin it again, either in another directory, after a warning, or in the same
 * one, where a compaction will soon free space.
 */
#ifndef ROCKSORT_SPILL_RUN_STORE_H
#define ROCKSORT_SPILL_RUN_STORE_H

#include "spill/compaction_plan.h"
#include "spill/memory_budget.h"
#include "spill/run_db.h"
#include "spill/store_layout.h"

struct run_store;
struct stored_run;              /* a run that has begun */

enum { RUN_STORE_ERROR = RUN_DB_ERROR, RUN_STORE_FULL = RUN_DB_FULL, RUN_STORE_AGAIN = -3 };

struct run_store_settings {
    const char *const *dirs;    /* exist; outlive the store */
    size_t n_dirs;
    size_t n_closed_dirs;       /* existing: the first n_closed_dirs directories are only read */
    unsigned n_lanes;           /* databases in each directory; 0: chosen for the disks */
    bool existing;              /* another process made the databases, n_lanes in each directory;
                                   directories without any get theirs with their first run */
    bool read_only;             /* existing, and nothing is written */
    enum compaction_mode compaction;
    bool long_keys;             /* keys may have tens of thousands of bytes */
    uint64_t input_bytes;       /* estimated uncompressed size; 0: unknown */
    const struct memory_budget *budget; /* for run_store_create, which lengthens the runs if a disk
                                           is slow to seek */
};

struct run_store *run_store_create(const struct run_store_settings *settings);

/* Closes the databases; their files stay. Accepts NULL. */
void run_store_destroy(struct run_store *store);

/* ---- writing runs ---- */

/* For messages about a full disk: raw_done bytes of the input are in runs, raw_left are not yet. */
void run_store_expect(struct run_store *store, uint64_t raw_done, uint64_t raw_left);

/* Returns how many files all runs together may have (compaction_most_run_files). */
unsigned run_store_most_files(const struct run_store *store);

/* See run_db_begin_run. Returns 0, RUN_STORE_ERROR or RUN_STORE_AGAIN; after these two the caller
   must abandon *run unless it is NULL. */
int run_store_begin_run(struct run_store *store, unsigned n_files, struct stored_run **run);

/* Return 0, RUN_STORE_ERROR or RUN_STORE_FULL. The label comes after the last block. */
int run_store_put(struct stored_run *run, unsigned file, const uint8_t *key, size_t key_bytes,
                  const uint8_t *value, size_t value_bytes);

int run_store_label_run(struct stored_run *run, uint32_t number, const uint8_t *label,
                        size_t label_bytes);

/* After RUN_STORE_FULL: returns RUN_STORE_AGAIN, or RUN_STORE_ERROR after a message. */
int run_store_make_room(struct stored_run *run);

/* Waits until the run is on the disk; frees it, also on failure. Returns 0 or RUN_STORE_ERROR. */
int run_store_end_run(struct stored_run *run);

/* Drops the run and frees it. Accepts NULL. */
void run_store_abandon_run(struct stored_run *run);

/* Admits all runs that have ended. Call it before settle and scan. */
int run_store_flush(struct run_store *store);

/* ---- compactions ---- */

/* Call it after a run has ended. n_runs_expected: of all runs; 0: unknown. If it returns true, the
   caller frees compaction_bytes of memory, once, and calls run_store_compact. */
bool run_store_wants_compaction(struct run_store *store, uint64_t n_runs_expected);
int run_store_compact(struct run_store *store);

/* After the last run: also lets RocksDB compact the remaining runs if there are many files. */
int run_store_settle(struct run_store *store);

/* Returns the bits of enum compaction_state that are true for some database. */
unsigned run_store_compactions(const struct run_store *store);

/* ---- reading runs ---- */

/* Calls `take` for the labels of all runs; see run_db_labels. */
int run_store_labels(struct run_store *store,
                     int (*take)(void *arg, const uint8_t *label, size_t n_bytes), void *arg);

/* Returns the read-ahead memory of the scans if they began now. */
size_t run_store_scan_bytes(const struct run_store *store);

/* Starts a scan of each database that has runs; together they use scan_bytes for read-ahead.
   Returns their number. The caller closes each scan and frees the array *scans. */
size_t run_store_scan(struct run_store *store, struct run_scan ***scans);

/* ---- facts ---- */

/* Returns how many databases each directory has. */
unsigned run_store_n_lanes(const struct run_store *store);

/* Returns how many runs another process would find. Only for the thread that ends runs. */
unsigned run_store_n_durable(const struct run_store *store);

/* Stores the traits of the disks. Any thread, at any time. */
void run_store_look(struct run_store *store, struct run_store_disks *disks);

struct run_store_stats {
    unsigned n_runs;
    uint64_t run_bytes;         /* of the runs as they were written */
    unsigned n_files;           /* now, after compactions */
    uint64_t compacted_bytes;   /* that compactions have written */
    size_t compaction_read_bytes, scan_read_bytes;      /* at a time; 0: the kernel's readahead */
    uint64_t n_seeks;           /* of compactions and scans, estimated */
    bool direct;                /* reads use O_DIRECT */
    bool compacted;
    enum compaction_reason reason;
    unsigned width, max_files;  /* of compactions */
    struct disk_traits disk;    /* of the first directory */
};

/* For the report, when no other thread writes or ends runs. */
void run_store_stats(const struct run_store *store, struct run_store_stats *stats);

#endif
