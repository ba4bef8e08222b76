/*
 * run_committer.h -- ends runs: a separate thread that gets them onto the disk.
 *
 * A run that has been written still has to reach the disk and RocksDB's manifest. That is half a
 * dozen syncs, 0.1 s on a rotating disk, in which as much as a run of 30 MB is read and sorted. So
 * the run committer's thread ends runs while the spiller writes the next one. It also has the store
 * compact them.
 *
 * Order of calls: create; take for each run, drain and settle in any order; close; destroy. All by
 * one thread, but totals by any.
 */
#ifndef ROCKSORT_SPILL_RUN_COMMITTER_H
#define ROCKSORT_SPILL_RUN_COMMITTER_H

#include "spill/run_store.h"
#include "spill/sort_buffer_pool.h"
#include "spill/temp_codec.h"

struct run_committer;

/* A run that was written. */
struct written_run {
    struct stored_run *stored;
    uint64_t raw_bytes;         /* of its records */
    enum temp_codec codec;
    uint64_t n_runs_expected;   /* estimate of all runs, for compaction; 0: unknown */
};

struct ender_totals {
    unsigned n_durable;         /* runs that another process would find */
    uint64_t raw_bytes;         /* of the records of the runs that have ended */
    unsigned n_of_codec[TEMP_CODEC_COUNT];      /* of these runs, by this process */
    double end_seconds;         /* the run committer: ending runs */
    double wait_seconds;        /* the spiller: waiting for the run committer */
};

/* Starts the thread. Crew, pool and store outlive it. NULL after a message. */
struct run_committer *run_committer_create(struct threads *threads, struct sort_buffer_pool *pool,
                                           struct run_store *store);

/* Takes the run, to be ended in the background; waits while too many others wait. Returns 0, or -1
   if the thread pool has failed: then the run is dropped. */
int run_committer_take(struct run_committer *ender, const struct written_run *run);

/* Waits until all runs have ended. Returns 0, or -1 if the thread pool has failed. */
int run_committer_drain(struct run_committer *ender);

/* After the last run: waits until all have ended, and for compactions. */
int run_committer_settle(struct run_committer *ender);

/* Ends the thread. After a failure the runs that it still has are dropped. NULL is accepted, also
   by destroy. */
void run_committer_close(struct run_committer *ender);
void run_committer_destroy(struct run_committer *ender);

/* What was done so far. With the lock held; before the first run the caller may count those of an
   earlier process. */
struct ender_totals *run_committer_totals(struct run_committer *ender);

#endif
