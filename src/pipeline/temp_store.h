/*
 * temp_store.h -- the store of a sort: opened when the first run is spilled, or at once by a sort
 * that goes on with a checkpoint.
 *
 * temp_store_open makes the temporary directories and the databases, starts the ender of runs and
 * the thread that syncs, and writes the checkpoint file, in this order.
 *
 * Order of calls: create; open, once or more; close, when all other threads have ended; destroy.
 * Threads: one at a time. Any thread that has the lock may call temp_store_ender and n_durable.
 */
#ifndef ROCKSORT_PIPELINE_TEMP_STORE_H
#define ROCKSORT_PIPELINE_TEMP_STORE_H

#include "pipeline/checkpoint_writer.h"
#include "pipeline/durable.h"
#include "pipeline/run_ender.h"

struct temp_store;

struct temp_store_settings {
    const struct sort_settings *sort;
    struct crew *crew;
    struct batch_pool *pool;
    struct load_totals *totals;
    struct checkpoint_writer *checkpoint;
    bool reads_input;           /* runs will be added */
};

struct temp_store *temp_store_create(const struct temp_store_settings *settings);

/* Opens the store, unless it is open. Returns 0, or -1 after a message. */
int temp_store_open(struct temp_store *ts);

/* The databases. NULL while the store is not open. */
struct run_store *temp_store_runs(const struct temp_store *ts);

/* NULL before the store is open. With the lock held, or by the thread that opens the store. */
struct run_ender *temp_store_ender(const struct temp_store *ts);

/* The number of runs that a later process would find. With the lock held. */
unsigned temp_store_n_durable(const struct temp_store *ts);

/* After open: tells that the store has n_runs of an earlier process, with raw_bytes of records. */
void temp_store_set_before(struct temp_store *ts, unsigned n_runs, uint64_t raw_bytes);

/* If the sort failed (result below 0) because data could not be made durable, prints that error. */
void temp_store_tell(struct temp_store *ts, int result);

/* Ends the threads but the one that syncs, and closes the databases; if directories_stay, all runs
   are in them then. If the store was open, sets *stats. */
void temp_store_close(struct temp_store *ts, bool directories_stay,
                      struct run_store_stats *stats);

/* After that: if directories_stay, their data are made durable. */
void temp_store_end(struct temp_store *ts, bool directories_stay);

/* NULL is accepted. */
void temp_store_destroy(struct temp_store *ts);

#endif
