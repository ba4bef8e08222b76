/*
 * run_compactor.h -- controls the compactions of one database: applies the plans of
 * compaction_plan.h as runs are added, and stops after a failure.
 *
 * Order of calls: starts as {0}; plan after each run, and apply if plan returned true; settle after
 * the last run.
 *
 * Ownership: the compactor borrows the database and the text `dir`. Threads: only the thread that
 * ends runs calls these functions. Errors: -1 after a message.
 */
#ifndef ROCKSORT_SPILL_RUN_COMPACTOR_H
#define ROCKSORT_SPILL_RUN_COMPACTOR_H

#include "spill/compaction_plan.h"
#include "spill/run_db.h"

struct run_compactor {          /* the caller sets db and dir, run_compactor.c the rest */
    struct run_db *db;          /* NULL until the database has its first run */
    const char *dir;            /* of the database, for messages */
    struct compaction_plan plan;
    unsigned least_width, width, max_files;     /* as RocksDB was told; 0: compactions are off */
    bool has_failed;            /* a compaction has failed, so compactions are off */
};

/* Updates the plan; `width` is for compaction_decide. `stuck`: a due compaction did not start,
   because no neighbouring files have similar sizes; then the plan allows more files. Returns true
   if the caller must call run_compactor_apply. */
bool run_compactor_plan(struct run_compactor *compactor, const struct compaction_facts *facts,
                        unsigned width, bool stuck);

/* Passes a changed plan to RocksDB, or stops compactions if one has failed. */
int run_compactor_apply(struct run_compactor *compactor);

/* After the last run: also lets RocksDB compact the remaining runs if there are many files. */
int run_compactor_settle(struct run_compactor *compactor);

/* True while a compaction runs. */
bool run_compactor_is_running(const struct run_compactor *compactor);

/* True if a compaction will begin (run_db_compaction_is_due). */
bool run_compactor_is_due(const struct run_compactor *compactor);

/* True if the next run should wait for a compaction: there are nearly most_files files, or a second
   compaction is nearly due. */
bool run_compactor_is_crowded(const struct run_compactor *compactor, unsigned most_files);

#endif
