/* run_compactor.c -- see run_compactor.h. */
#include "spill/run_compactor.h"

#include "util/diag.h"

enum { SPARE_FILES = 10 };      /* unused files that must remain when a plan allows more files */

/* True if RocksDB must get the plan. It syncs a file for each change, so small ones are ignored. */
static bool plan_has_changed(const struct run_compactor *c)
{
    return c->plan.compact && (c->plan.max_files > c->max_files + c->max_files / 16 ||
                               c->plan.least_width < c->least_width);
}

/* True if there are nearly `width` files more than planned, including those that wait to be
   admitted. With a whole width more, RocksDB would repeatedly compact the newest files, with any
   sizes, even compacted ones. */
static bool is_behind(const struct run_compactor *c)
{
    return c->width > 0 && !c->has_failed && run_db_n_files(c->db) + 1 >= c->max_files + c->width;
}

/* Plans for more files if enough files exist but too few neighbours have similar sizes to be
   compacted. */
static void allow_more_files(struct run_compactor *c, const struct compaction_facts *facts)
{
    if (!is_behind(c) || run_db_is_compacting(c->db)) return;
    unsigned n = run_db_n_files(c->db);
    bool may_have_more = n + c->width + SPARE_FILES < compaction_most_files(facts);
    if (may_have_more && n > c->plan.max_files) c->plan.max_files = n;
}

bool run_compactor_plan(struct run_compactor *c, const struct compaction_facts *facts,
                        unsigned width, bool stuck)
{
    if (c->has_failed) return false;
    c->plan = compaction_decide(facts, width);
    if (stuck) allow_more_files(c, facts);
    return plan_has_changed(c) || (c->width > 0 && run_db_compact_failed(c->db));
}

/* Stops compactions after one has failed, usually for lack of space. Further attempts would take
   the space of runs. The database stays as it is. */
static int stop_if_failed(struct run_compactor *c)
{
    if (c->has_failed || c->width == 0 || !run_db_compact_failed(c->db)) return 0;
    c->has_failed = true;
    c->plan.compact = false;
    diag_warning("a compaction failed in '%s': there is little space, or the disk is faulty; no "
                 "more are done", c->dir);
    return run_db_stop_compactions(c->db);
}

int run_compactor_apply(struct run_compactor *c)
{
    const struct compaction_plan *plan = &c->plan;
    if (stop_if_failed(c) < 0) return -1;
    if (!plan_has_changed(c)) return 0;
    if (run_db_compact(c->db, plan->least_width, plan->width, plan->max_files) < 0) return -1;
    c->least_width = plan->least_width;
    c->width = plan->width;
    c->max_files = plan->max_files;
    return 0;
}

int run_compactor_settle(struct run_compactor *c)
{
    unsigned width = c->width, enough = c->max_files * 3 / 4;
    if (stop_if_failed(c) < 0) return -1;
    if (c->has_failed || width == 0) return 0;
    if (enough < 2 * width) enough = 2 * width;
    /* Fewer runs than the width were added after the last compaction. They are the newest files and
       neighbours. */
    unsigned n_files = run_db_n_files(c->db);
    if (n_files <= enough) return 0;
    /* Compacts no more files than needed, and only once, because some may already be compacted. */
    if (width > n_files - enough + 1) width = n_files - enough + 1;
    return run_db_compact(c->db, 2, width, n_files - 1) < 0 ? -1 : 0;
}

bool run_compactor_is_running(const struct run_compactor *c)
{
    return c->width > 0 && run_db_is_compacting(c->db);
}

bool run_compactor_is_due(const struct run_compactor *c)
{
    return c->width > 0 && run_db_compaction_is_due(c->db);
}

bool run_compactor_is_crowded(const struct run_compactor *c, unsigned most_files)
{
    /* If runs are admitted just when a compaction ends, RocksDB closes the compacted files only
       after the next compaction, so `width` more files may be open. */
    unsigned n_open = c->db ? run_db_n_open(c->db) + c->width : 0;
    return (!c->has_failed && n_open + 2 > most_files) || is_behind(c);
}
