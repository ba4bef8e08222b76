/*
 * temp_store.h -- the store of a sort: opened when the first run is spilled, or at once by a sort
 * that goes on with a checkpoint.
 *
 * To open it is to make the temporary directories, the databases and the record in this order, and
 * to start the ender of runs and the thread that syncs.
 *
 * Order of calls: create; open, as often as wanted; close, with all other threads ended; destroy.
 * Threads: one at a time, but temp_store_ender by any that has the lock.
 */
#ifndef ROCKSORT_PIPELINE_TEMP_STORE_H
#define ROCKSORT_PIPELINE_TEMP_STORE_H

#include "pipeline/checkpoint_writer.h"
#include "pipeline/durable.h"
#include "pipeline/run_ender.h"

struct temp_store;

struct temp_store_settings {
    struct crew *crew;
    struct batch_pool *pool;
    struct load_totals *totals;
    struct checkpoint_writer *checkpoint;
    enum compaction_mode compaction;
    const struct checkpoint *resumed;   /* its directories, and those that are added; NULL: all
                                           of them are new */
    bool reads_input;           /* runs will be added */
    bool no_resume;             /* the data need not outlive the process */
    unsigned durable_after_seconds;     /* when syncs begin; 0: at once */
};

struct temp_store *temp_store_create(const struct temp_store_settings *settings);

/* Opens it, if it is not open. Returns 0, or -1 after a message. */
int temp_store_open(struct temp_store *ts);

/* NULL while it is not open. */
struct run_store *temp_store_runs(const struct temp_store *ts);

/* NULL while it is not open. With the lock held, or by the thread that opens it. */
struct run_ender *temp_store_ender(const struct temp_store *ts);

/* Runs that another process would find. With the lock held. */
unsigned temp_store_n_durable(const struct temp_store *ts);

/* When it is open: so many runs, of so many bytes of records, were there before. */
void temp_store_set_before(struct temp_store *ts, unsigned n_runs, uint64_t raw_bytes);

/* If data could not be made durable, that is the error of a sort that failed (result below 0). */
void temp_store_tell(struct temp_store *ts, int result);

/* Ends the threads and closes the databases. directories_stay: what they have is made durable.
   *stats: what was done, if it was open. */
void temp_store_close(struct temp_store *ts, bool directories_stay,
                      struct run_store_stats *stats);

/* NULL is accepted. */
void temp_store_destroy(struct temp_store *ts);

#endif
