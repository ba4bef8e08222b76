/*
 * run_store.h -- all sorted runs of a sort, in databases (run_db.h) in the temporary directories:
 * one in each directory, or several where seeks are slow (store_layout.h).
 *
 * The store chooses a directory for each run: the one with enough space that will probably finish
 * writing it first, judged by the speed of earlier runs. A directory that was found full gets no
 * more runs; those that it has stay. Each time a run ends, the store also decides what to compact
 * (compaction_plan.h, run_compactor.h).
 *
 * Order of calls: create; for each run begin, put its blocks in key order, label, end; settle; then
 * scan. There is one scan for each database; its blocks are in key order, and the caller merges the
 * scans. Destroy at any time. With `existing`, create opens the store of another process, and the
 * labels of its runs (run_db.h) tell what is in it.
 *
 * Ownership: as in run_db.h.
 * Threads: one thread begins runs and labels them. One thread at a time puts blocks into each file
 * of a run. Another thread may end the earlier runs in their order; that thread then also calls the
 * functions about compaction.
 * Errors: RUN_STORE_ERROR or NULL after a message. RUN_STORE_FULL: the directory of the run is
 * full, or nearly full while another one is not; there was no message. Then nothing more is put,
 * and run_store_make_room says what to do. RUN_STORE_AGAIN: abandon the run and begin it again.
 * Either its directory is full: then there was a warning, and the run will go to another directory.
 * Or a compaction will soon free space in the same directory: then there was no warning.
 */
#ifndef ROCKSORT_STORE_RUN_STORE_H
#define ROCKSORT_STORE_RUN_STORE_H

#include "store/compaction_plan.h"
#include "store/run_db.h"
#include "store/store_layout.h"

struct run_store;
struct stored_run;              /* a run that has begun */

enum { RUN_STORE_ERROR = RUN_DB_ERROR, RUN_STORE_FULL = RUN_DB_FULL, RUN_STORE_AGAIN = -3 };

/* What compactions and scans are planned from. */
struct run_store_means {
    uint64_t n_runs_expected;   /* 0: unknown */
    size_t scan_bytes;          /* memory that the scans read ahead into */
    size_t compaction_bytes;    /* memory for compactions, once they are on */
};

struct run_store_settings {
    const char *const *dirs;    /* exist; outlive the store */
    size_t n_dirs;
    size_t n_closed_dirs;       /* existing: this many of the first directories get no more runs and
                                   are only read */
    unsigned n_lanes;           /* databases in each directory; 0: as many as suit the disks */
    bool existing;              /* another process made the databases, n_lanes in each directory;
                                   directories without any get theirs with their first run */
    bool read_only;             /* existing, and nothing is written */
    enum compaction_mode compaction;
    bool long_keys;             /* keys may have tens of thousands of bytes */
    uint64_t input_bytes;       /* uncompressed, about; 0: unknown */
    struct run_store_means means;
    struct run_store_means slow_means;  /* used instead if a disk is slow to seek */
};

struct run_store *run_store_create(const struct run_store_settings *settings);

/* Closes the databases; their files stay. Accepts NULL. */
void run_store_destroy(struct run_store *store);

/* ---- writing runs ---- */

/* Before a run begins: raw_done bytes of the input are in runs, and about raw_left are to come.
   Messages about a full disk use this. */
void run_store_expect(struct run_store *store, uint64_t raw_done, uint64_t raw_left);

/* How many files all runs together may have (compaction_most_run_files). */
unsigned run_store_most_files(const struct run_store *store);

/* Begins a run of n_files files; see run_db_begin_run. Returns 0, RUN_STORE_ERROR or
   RUN_STORE_AGAIN; if *run is not NULL then, it is to be abandoned. */
int run_store_begin_run(struct run_store *store, unsigned n_files, struct stored_run **run);

/* Puts a block into a file of the run. Returns 0, RUN_STORE_ERROR or RUN_STORE_FULL. */
int run_store_put(struct stored_run *run, unsigned file, const uint8_t *key, size_t key_bytes,
                  const uint8_t *value, size_t value_bytes);

/* Gives run `number` its label, after the last block of all files. Returns what run_store_put
   returns. */
int run_store_label_run(struct stored_run *run, uint32_t number, const uint8_t *label,
                        size_t label_bytes);

/* After RUN_STORE_FULL: returns RUN_STORE_AGAIN, or RUN_STORE_ERROR after a message. */
int run_store_make_room(struct stored_run *run);

/* Makes the run durable, for which it waits for the disk, and frees it, also on failure. Never
   returns RUN_STORE_AGAIN. */
int run_store_end_run(struct stored_run *run);

/* Drops the run and frees it. Accepts NULL. */
void run_store_abandon_run(struct stored_run *run);

/* Adds all runs that have ended to their databases. Call it before run_store_settle and before
   scans. */
int run_store_flush(struct run_store *store);

/* ---- compactions ---- */

/*
 * After a run has ended. n_runs_expected: how many runs are expected in all by now; 0: unknown.
 * Returns true if something should be compacted: the caller then frees compaction_bytes of memory,
 * unless it has done so, and calls run_store_compact. `stuck`: the caller waited in vain for a
 * compaction that was due, because no neighbouring files have about the same size. Then the store
 * may have more files before the next one is due.
 */
bool run_store_wants_compaction(struct run_store *store, uint64_t n_runs_expected, bool stuck);
int run_store_compact(struct run_store *store);

/* After the last run: lets RocksDB compact the remaining runs, too, if there are many files. */
int run_store_settle(struct run_store *store);

/* True while a compaction runs. */
bool run_store_is_compacting(const struct run_store *store);

/* True if run_store_wants_compaction plans compactions because the limit of open files or the memory
   does not allow as many files as there are runs. */
bool run_store_lacks_files(const struct run_store *store);

/* True if a compaction will begin, as soon as RocksDB's thread gets a CPU. */
bool run_store_compaction_is_due(const struct run_store *store);

/*
 * True if the next run should wait until a compaction has ended. Either there are nearly as many
 * files as may be open, or a second compaction is due. In the second case more runs would do harm:
 * RocksDB compacts the newest files first, so it would never compact some of the files before them.
 */
bool run_store_is_crowded(const struct run_store *store);

/* ---- reading runs ---- */

/* Calls `take` for the labels of all runs; see run_db_labels. */
int run_store_labels(struct run_store *store,
                     int (*take)(void *arg, const uint8_t *label, size_t n_bytes), void *arg);

/* How much memory the scans would take to read ahead if they began now. */
size_t run_store_scan_bytes(const struct run_store *store);

/* Starts the scans, one for each database that has runs. Together they read ahead within
   scan_bytes. Returns the number of scans. The caller closes each scan, and frees the array
   *scans. */
size_t run_store_scan(struct run_store *store, struct run_scan ***scans);

/* ---- facts ---- */

/* How many databases each directory has. */
unsigned run_store_n_lanes(const struct run_store *store);

/* How many runs another process would find. Only the thread that ends runs may ask. */
unsigned run_store_n_durable(const struct run_store *store);

/* What the disks are like. Any thread may ask at any time. */
void run_store_look(struct run_store *store, struct run_store_disks *disks);

struct run_store_stats {
    unsigned n_runs;
    uint64_t run_bytes;         /* of the runs as they were written */
    unsigned n_files;           /* that hold them now */
    uint64_t compacted_bytes;   /* that compactions have written */
    size_t compaction_read_bytes, scan_read_bytes;      /* at a time; 0: as the kernel does */
    uint64_t n_seeks;           /* of compactions and of the scans, about */
    bool direct;                /* reading goes past the page cache */
    bool compacted;
    enum compaction_reason reason;
    unsigned width, max_files;  /* of compactions */
    struct disk_traits disk;    /* of the first directory */
};

/* For the report, when no other thread writes or ends runs. */
void run_store_stats(const struct run_store *store, struct run_store_stats *stats);

#endif
