/*
 * run_committer.h -- commits runs in a thread of its own: syncs them and adds them to RocksDB.
 *
 * A written run must still reach the disk and RocksDB's manifest. This takes half a dozen syncs,
 * 0.1 s on a rotating disk, in which 30 MB could be read and sorted. So the run committer commits
 * runs while the spiller writes the next one. It also starts compactions.
 *
 * Order of calls: create; take for each run, drain and settle in any order; close; destroy. All by
 * one thread; any thread may call totals.
 */
#ifndef ROCKSORT_SPILL_RUN_COMMITTER_H
#define ROCKSORT_SPILL_RUN_COMMITTER_H

#include "spill/run_store.h"
#include "spill/sort_buffer_pool.h"
#include "spill/temp_codec.h"

struct run_committer;

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

/* Starts the thread. Threads, pool and store must outlive it. NULL after a message. */
struct run_committer *run_committer_create(struct threads *threads, struct sort_buffer_pool *pool,
                                           struct run_store *store);

/* Takes the run, to commit it in the background; waits if too many runs are queued. Returns 0, or
   -1 if the thread pool has failed: then the run is dropped. */
int run_committer_take(struct run_committer *committer, const struct written_run *run);

/* Waits until all runs are committed. Returns 0, or -1 if the thread pool has failed. */
int run_committer_drain(struct run_committer *committer);

/* After the last run: waits until all runs are committed and compactions have ended. */
int run_committer_settle(struct run_committer *committer);

/* Ends the thread. After a failure drops the runs in its queue. NULL is accepted, also by destroy.
   */
void run_committer_close(struct run_committer *committer);
void run_committer_destroy(struct run_committer *committer);

/* With the lock held: returns the totals. Before the first run the caller may add the runs of an
   interrupted sort. */
struct committer_totals *run_committer_totals(struct run_committer *committer);

#endif
