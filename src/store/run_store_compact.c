/* run_store_compact.c -- what is compacted when. See run_store.h and compaction_plan.h. */
#include "store/run_store.h"

#include "store/run_store_internal.h"
#include "util/diag.h"

/* Settings are a file that is written and synced, so they are not changed for every run. */
static bool plan_has_changed(const struct volume *volume)
{
    unsigned applied = volume->applied_max_files;
    return volume->plan.compact && volume->plan.max_files > applied + applied / 16;
}

/* True if a width of files more than planned are there, or nearly. With a whole one RocksDB takes
   the newest files whatever their sizes, compacted ones among them, again and again. */
static bool is_behind(const struct volume *volume)
{
    unsigned width = volume->applied_width;
    unsigned margin = width > 2 * ADMITTED_WHEN_SLOW ? ADMITTED_WHEN_SLOW + 1 : 1;
    return width > 0 && !volume->compact_failed &&
           run_db_n_files(volume->db) + margin >= volume->applied_max_files + width;
}

/* Plans for more files where nothing is compacted although there are enough: among them are too few
   of one size in a row. */
static void leave_room(const struct run_store *store, struct volume *volume)
{
    if (!is_behind(volume) || run_db_is_compacting(volume->db)) return;
    unsigned n = run_db_n_files(volume->db), width = volume->applied_width;
    bool is_room = n + width + OTHER_FILES / 4 < compaction_most_files(&store->facts);
    if (is_room && n > volume->plan.max_files) volume->plan.max_files = n;
}

/* After a compaction has failed, mostly since there was no space for it, the database is left as
   it is: the next attempts would take the space of runs. */
static int stop_failed_compactions(struct volume *volume)
{
    if (volume->compact_failed || volume->applied_width == 0 || !run_db_compact_failed(volume->db))
        return 0;
    volume->compact_failed = true;
    volume->plan.compact = false;
    diag_warning("a compaction failed in '%s': there is little space, or the disk is faulty; no "
                 "more are done", volume->dir);
    return run_db_stop_compactions(volume->db);
}

bool run_store_wants_compaction(struct run_store *store, uint64_t n_runs_expected, bool stuck)
{
    bool wanted = false;
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct volume *volume = &store->volumes[i];
        uint64_t n_runs = volume->n_runs;
        if (n_runs == 0 || volume->compact_failed) continue;
        struct compaction_facts facts = store->facts;
        facts.n_runs = n_runs;
        facts.n_runs_expected = n_runs_expected * n_runs / store->n_runs;
        facts.seek_seconds = volume->disk.seek_seconds;
        facts.bytes_per_second = volume->disk.bytes_per_second;
        facts.parallel = volume->disk.parallel;
        volume->plan = compaction_decide(&facts, store->width);
        if (stuck) leave_room(store, volume);
        if (plan_has_changed(volume)) wanted = true;
        if (volume->applied_width > 0 && run_db_compact_failed(volume->db)) wanted = true;
    }
    return wanted;
}

int run_store_compact(struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct volume *volume = &store->volumes[i];
        const struct compaction_plan *plan = &volume->plan;
        if (stop_failed_compactions(volume) < 0) return RUN_STORE_ERROR;
        if (!plan_has_changed(volume)) continue;
        if (run_db_compact(volume->db, plan->least_width, plan->width, plan->max_files) < 0)
            return RUN_STORE_ERROR;
        volume->applied_width = plan->width;
        volume->applied_max_files = plan->max_files;
    }
    return 0;
}

int run_store_settle(struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct volume *volume = &store->volumes[i];
        unsigned width = volume->applied_width, enough = volume->applied_max_files * 3 / 4;
        if (stop_failed_compactions(volume) < 0) return RUN_STORE_ERROR;
        if (volume->compact_failed) continue;
        if (enough < 2 * width) enough = 2 * width;
        /* Runs that came after the last compaction: fewer than the width, but newest and in a row.
           */
        unsigned n_files = width > 0 ? run_db_n_files(volume->db) : 0;
        if (n_files <= enough) continue;
        /* No more than needed, and only once: they might be compacted ones. */
        if (width > n_files - enough + 1) width = n_files - enough + 1;
        if (run_db_compact(volume->db, 2, width, n_files - 1) < 0) return RUN_STORE_ERROR;
    }
    return 0;
}

bool run_store_is_compacting(const struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        if (volume->applied_width > 0 && run_db_is_compacting(volume->db)) return true;
    }
    return false;
}

bool run_store_compaction_is_due(const struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        if (volume->applied_width > 0 && run_db_compaction_is_due(volume->db)) return true;
    }
    return false;
}

bool run_store_is_crowded(const struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        unsigned n = volume->n_runs > 0 ? run_db_n_files(volume->db) : 0;
        /* Of the files that may be open each database has its share. */
        if (!volume->compact_failed && n + 2 > store->facts.most_files) return true;
        if (is_behind(volume)) return true;
    }
    return false;
}
