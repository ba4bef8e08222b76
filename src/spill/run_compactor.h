/*
 * run_compactor.h -- the compactions of one database: follows the plans of compaction_plan.h while
 * runs come, and stops when one fails.
 *
 * Order of calls: starts as {0}; plan after each run, and apply if plan returned true; settle after
 * the last run.
 *
 * Ownership: the compactor borrows the database and the text `dir`.
 * Threads: only the thread that ends runs calls these functions. Errors: -1 after a message.
 */
#ifndef ROCKSORT_SPILL_RUN_COMPACTOR_H
#define ROCKSORT_SPILL_RUN_COMPACTOR_H

#include "spill/compaction_plan.h"
#include "spill/run_db.h"

struct run_compactor {          /* the caller sets db and dir, run_compactor.c the rest */
    struct run_db *db;          /* NULL until the database has its first run */
    const char *dir;            /* of the database, for messages */
    struct compaction_plan plan;
    unsigned least_width, width, max_files;     /* of the compactions that are on; 0: none */
    bool has_failed;            /* a compaction has failed, and compactions are switched off */
};

/* Plans anew; `width` is for compaction_decide. `stuck`: the caller waited in vain for a compaction
   that was due, because no neighbouring files have about the same size; then the plan allows more
   files. Returns true if run_compactor_apply has something to do. */
bool run_compactor_plan(struct run_compactor *compactor, const struct compaction_facts *facts,
                        unsigned width, bool stuck);

/* Tells RocksDB the plan if it has changed, or to stop if a compaction has failed. */
int run_compactor_apply(struct run_compactor *compactor);

/* After the last run: lets RocksDB compact the remaining runs, too, if there are many files. */
int run_compactor_settle(struct run_compactor *compactor);

/* True while a compaction runs. */
bool run_compactor_is_running(const struct run_compactor *compactor);

/* True if a compaction will begin (run_db_compaction_is_due). */
bool run_compactor_is_due(const struct run_compactor *compactor);

/* True if the next run should wait for a compaction: there are nearly most_files files, or so many
   that a second compaction is nearly due. */
bool run_compactor_is_crowded(const struct run_compactor *compactor, unsigned most_files);

#endif
