/*
 * temp_store.h -- the store of a sort: opened when the first run is spilled, or at once with
 * --resume. Commits runs in a thread of its own, the run committer: syncs them and adds them to
 * RocksDB.
 *
 * A written run must still reach the disk and RocksDB's manifest. This takes half a dozen syncs,
 * 0.1 s on a rotating disk, in which 30 MB could be read and sorted. So the run committer commits
 * runs while the spiller writes the next one. It also starts compactions.
 *
 * Order of calls: create; open, once or more; take for each run, drain and settle in any order;
 * close, when all other threads have ended; destroy. Threads: one at a time; any thread may call
 * temp_store_totals.
 */
#ifndef ROCKSORT_RESUME_TEMP_STORE_H
#define ROCKSORT_RESUME_TEMP_STORE_H

#include "resume/checkpoint_writer.h"
#include "spill/load_totals.h"
#include "spill/run_store.h"
#include "spill/sort_buffer_pool.h"
#include "spill/temp_codec.h"

struct temp_store;

/* Totals of the spilled runs. */
struct spill_totals {
    unsigned n_runs;            /* runs that were written; some may not be committed yet */
    uint32_t next_run, last_run;        /* numbers of runs; RUN_LABEL_NONE before the first */
    uint64_t raw_bytes;         /* in runs, uncompressed */
    size_t open_bytes;          /* of all runs (run_writer.h) */
};

/* A run that was written but not committed. */
struct written_run {
    struct stored_run *stored;
    uint64_t raw_bytes;         /* of its records */
    enum temp_codec codec;
    uint64_t n_runs_expected;   /* estimate of all runs, for compaction; 0: unknown */
};

struct committer_totals {
    unsigned n_durable;         /* runs that --resume would find */
    uint64_t raw_bytes;         /* of the records of committed runs */
    unsigned n_of_codec[TEMP_CODEC_COUNT];      /* runs that this process has committed */
    double end_seconds;         /* time the run committer took to commit */
    double wait_seconds;        /* time the spiller waited for the run committer */
};

struct temp_store_settings {    /* all borrowed */
    const struct sort_settings *sort;
    struct threads *threads;
    struct sort_buffer_pool *pool;
    struct load_totals *totals;
    struct checkpoint_writer *checkpoint;
    bool reads_input;           /* the sort will add runs */
};

struct temp_store *temp_store_create(const struct temp_store_settings *settings);

/* Opens the store and starts the run committer, unless it is open. Returns 0, or -1 after a
   message. */
int temp_store_open(struct temp_store *ts);

/* Returns the databases, or NULL if the store is not open. */
struct run_store *temp_store_runs(const struct temp_store *ts);

/* Takes the run, to commit it in the background; waits if too many runs are queued. Returns 0, or
   -1 if the thread pool has failed: then the run is dropped. */
int temp_store_take(struct temp_store *ts, const struct written_run *run);

/* Waits until all runs are committed. Returns 0, also if the store is not open, or -1 if the thread
   pool has failed. */
int temp_store_drain(struct temp_store *ts);

/* After the last run: like temp_store_drain, but also waits until compactions have ended. */
int temp_store_settle(struct temp_store *ts);

/* With the lock held: returns the totals, {0} before the store is open. The caller may add the runs
   of an interrupted sort. */
struct committer_totals *temp_store_totals(struct temp_store *ts);

/* Ends the run committer, which drops the runs in its queue after a failure, and closes the
   databases; if directories_stay, first admits all runs. If the store was open, sets *stats. */
void temp_store_close(struct temp_store *ts, bool directories_stay,
                      struct run_store_stats *stats);

/* Accepts NULL. */
void temp_store_destroy(struct temp_store *ts);

#endif
