/*
 * temp_store.h -- opens the store of a sort when the first run is spilled, or at once with
 * --resume, and closes it.
 *
 * The room resume makes the temporary directories and is told when the databases in them are open:
 * struct temp_store_hooks.
 *
 * Order of calls: create; open, once or more; close, when all other threads have ended; destroy.
 * Threads: one at a time. Any thread that holds the lock may call temp_store_committer and
 * temp_store_n_durable.
 */
#ifndef ROCKSORT_SPILL_TEMP_STORE_H
#define ROCKSORT_SPILL_TEMP_STORE_H

#include "spill/load_totals.h"
#include "spill/run_committer.h"

struct temp_store;

struct temp_dirs {
    const char *const *paths;
    size_t n;
    size_t n_closed;            /* the first n_closed of them get no new data */
};

/* Totals of the spilled runs. */
struct spill_totals {
    unsigned n_runs;            /* runs that were written; some may not be committed yet */
    uint32_t next_run, last_run;        /* numbers of runs; RUN_LABEL_NONE before the first */
    uint64_t raw_bytes;         /* in runs, uncompressed */
    size_t open_bytes;          /* sum over runs (run_writer.h) */
};

struct temp_store_hooks {
    /* Makes the directories. Returns 0, or -1 after a message. */
    int (*make_directories)(void *arg, struct temp_dirs *dirs);
    /* Called when the databases are open, n_lanes in each directory. Returns 0, or -1 if the thread
       pool has failed. */
    int (*is_open)(void *arg, unsigned n_lanes);
    /* True if all sort buffers must be in runs before the merge. */
    bool (*needs_all_runs)(void *arg);
    void *arg;
};

struct temp_store_settings {
    struct threads *threads;
    struct sort_buffer_pool *pool;
    struct load_totals *totals;
    struct temp_store_hooks hooks;
    enum compaction_mode compaction;
    bool long_keys;             /* keys may have tens of thousands of bytes */
    unsigned n_lanes;           /* existing databases in each directory; 0: makes new ones */
    bool reads_input;           /* the sort will add runs */
};

struct temp_store *temp_store_create(const struct temp_store_settings *settings);

/* Opens the store unless it is open. Returns 0, or -1 after a message. */
int temp_store_open(struct temp_store *ts);

/* Returns the databases, or NULL if the store is not open. */
struct run_store *temp_store_runs(const struct temp_store *ts);

/* Returns the directories of an open store. */
const struct temp_dirs *temp_store_dirs(const struct temp_store *ts);

/* See struct temp_store_hooks. */
bool temp_store_needs_all_runs(const struct temp_store *ts);

/* Returns NULL before the store is open. With the lock held, or by the thread that opens it. */
struct run_committer *temp_store_committer(const struct temp_store *ts);

/* With the lock held: returns the number of runs that --resume would find. */
unsigned temp_store_n_durable(const struct temp_store *ts);

/* After open: sets the totals to n_runs of the interrupted sort, with raw_bytes of records. */
void temp_store_set_before(struct temp_store *ts, unsigned n_runs, uint64_t raw_bytes);

/* Ends the run committer and closes the databases; if directories_stay, first admits all runs. If
   the store was open, sets *stats. */
void temp_store_close(struct temp_store *ts, bool directories_stay,
                      struct run_store_stats *stats);

/* NULL is accepted. */
void temp_store_destroy(struct temp_store *ts);

#endif
