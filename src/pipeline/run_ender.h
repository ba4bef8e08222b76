/*
 * run_ender.h -- ends runs: a separate thread that gets them onto the disk.
 *
 * A run that has been written still has to reach the disk and RocksDB's manifest. That is half a
 * dozen syncs, 0.1 s on a rotating disk, in which as much as a run of 30 MB is read and sorted. So
 * the ender's thread ends runs while the spiller writes the next one. It also has the store compact
 * them.
 *
 * Order of calls: create; take for each run, drain and settle in any order; close; destroy. All by
 * one thread, but n_durable, ended and seconds by any.
 */
#ifndef ROCKSORT_PIPELINE_RUN_ENDER_H
#define ROCKSORT_PIPELINE_RUN_ENDER_H

#include "pipeline/batch_pool.h"
#include "store/run_store.h"
#include "store/temp_codec.h"

struct run_ender;

/* A run that was written. */
struct written_run {
    struct stored_run *stored;
    uint64_t raw_bytes;         /* of its records */
    enum temp_codec codec;
    uint64_t n_runs_expected;   /* estimate of all runs, for compaction; 0: unknown */
};

/* Starts the thread. Crew, pool and store outlive it. NULL after a message. */
struct run_ender *run_ender_create(struct crew *crew, struct batch_pool *pool,
                                   struct run_store *store);

/* Takes the run, to be ended in the background; waits while too many others wait. Returns 0, or -1
   if the crew has failed: then the run is dropped. */
int run_ender_take(struct run_ender *ender, const struct written_run *run);

/* Waits until all runs have ended. Returns 0, or -1 if the crew has failed. */
int run_ender_drain(struct run_ender *ender);

/* After the last run: waits until all have ended, and for compactions. */
int run_ender_settle(struct run_ender *ender);

/* Ends the thread. After a failure the runs that it still has are dropped. NULL is accepted, also
   by destroy. */
void run_ender_close(struct run_ender *ender);
void run_ender_destroy(struct run_ender *ender);

/* Runs that another process would find. With the lock held. */
unsigned run_ender_n_durable(const struct run_ender *ender);

/* The runs that have ended. With the lock held. */
struct ended_runs {
    uint64_t raw_bytes;         /* of their records */
    unsigned n_of_codec[TEMP_CODEC_COUNT];      /* without those that were there before */
};

struct ended_runs run_ender_ended(const struct run_ender *ender);

/* Tells that n runs with raw_bytes of records were there before. With the lock held. */
void run_ender_set_before(struct run_ender *ender, unsigned n, uint64_t raw_bytes);

/* Seconds that were spent so far. With the lock held. */
struct run_ender_seconds {
    double end;                 /* the ender: ending them */
    double wait;                /* the spiller: waiting for the ender */
};

struct run_ender_seconds run_ender_seconds(const struct run_ender *ender);

#endif
