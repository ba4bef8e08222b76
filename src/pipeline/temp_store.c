/* temp_store.c -- see temp_store.h. */
#include "pipeline/temp_store.h"

#include "pipeline/leftovers.h"
#include "util/xalloc.h"

#include <stdlib.h>

struct temp_store {
    struct temp_store_settings settings;
    struct run_store *runs;
    struct durable *durable;
    struct run_ender *ender;    /* set under the crew's lock */
};

struct temp_store *temp_store_create(const struct temp_store_settings *settings)
{
    struct temp_store *ts = xcalloc(1, sizeof *ts);
    ts->settings = *settings;
    return ts;
}

/* The memory and number of runs that the databases may plan with, under this budget. */
static struct run_store_means plan_means(uint64_t expected_bytes, const struct mem_budget *budget)
{
    return (struct run_store_means){
        .n_runs_expected = mem_budget_expect_runs(budget, expected_bytes, 0, 0),
        .scan_bytes = mem_budget_scan_bytes(budget),
        .compaction_bytes = mem_budget_compaction_bytes(budget),
    };
}

static int open_databases(struct temp_store *ts)
{
    const struct temp_store_settings *s = &ts->settings;
    const struct checkpoint *resumed = s->sort->resumed;
    struct mem_budget budget, long_runs;
    batch_pool_budget(s->pool, &budget);
    long_runs = budget;
    mem_budget_lengthen_runs(&long_runs);
    struct load_counts counts;
    load_totals_look(s->totals, &counts);
    struct run_store_settings settings = {
        .n_lanes = resumed ? resumed->file.n_lanes : 0,
        .existing = resumed != NULL,
        .read_only = !s->reads_input,
        .compaction = s->sort->compaction,
        .long_keys = sort_order_has_long_keys(s->sort->rules.order),
        .input_bytes = counts.expected_bytes,
        .means = plan_means(counts.expected_bytes, &budget),
        .slow_means = plan_means(counts.expected_bytes, &long_runs),
    };
    settings.dirs = checkpoint_writer_directories(s->checkpoint, &settings.n_dirs);
    /* A user who adds a directory to a checkpoint has too little space in the others, or wants no
       more data there. So no new data are put into these. */
    size_t n_adopted = checkpoint_writer_n_adopted(s->checkpoint);
    if (settings.n_dirs > n_adopted) settings.n_closed_dirs = n_adopted;
    ts->runs = run_store_create(&settings);
    if (!ts->runs) return -1;
    struct run_store_disks disks;
    run_store_look(ts->runs, &disks);
    /* The merge seeks for each read from each run: fewer, longer runs need fewer seeks. */
    if (disks.slow_to_seek) batch_pool_lengthen_runs(s->pool);
    return 0;
}

static int start_ender(struct temp_store *ts)
{
    struct crew *crew = ts->settings.crew;
    struct run_ender *ender = run_ender_create(crew, ts->settings.pool, ts->runs);
    crew_lock(crew);
    ts->ender = ender;
    crew_unlock(crew);
    return ender ? 0 : -1;
}

static int start_syncing(struct temp_store *ts)
{
    const struct temp_store_settings *s = &ts->settings;
    /* If an input is overwritten, its records will exist only here. */
    bool at_once = checkpoint_writer_overwrites_input(s->checkpoint);
    ts->durable = durable_begin(s->sort, s->crew,
                                checkpoint_writer_absolute_directories(s->checkpoint), at_once);
    return ts->durable ? 0 : -1;
}

static void tell_leftovers(const struct temp_store *ts)
{
    struct checkpoint_writer *checkpoint = ts->settings.checkpoint;
    char *output = checkpoint_writer_output_name(checkpoint);
    struct leftovers_sort sort = {.output = output};
    sort.inputs = checkpoint_writer_inputs(checkpoint, &sort.n_inputs);
    size_t n;
    const char *const *directories = checkpoint_writer_directories(checkpoint, &n);
    leftovers_tell(&sort, directories, n);
    free(output);
}

int temp_store_open(struct temp_store *ts)
{
    const struct temp_store_settings *s = &ts->settings;
    if (ts->runs) return 0;
    if (checkpoint_writer_make_directories(s->checkpoint) < 0) return -1;
    if (open_databases(ts) < 0 || start_ender(ts) < 0 || start_syncing(ts) < 0) return -1;
    if (s->sort->resumed) return 0;
    tell_leftovers(ts);
    return checkpoint_writer_begin(s->checkpoint, run_store_n_lanes(ts->runs));
}

struct run_store *temp_store_runs(const struct temp_store *ts)
{
    return ts->runs;
}

struct run_ender *temp_store_ender(const struct temp_store *ts)
{
    return ts->ender;
}

unsigned temp_store_n_durable(const struct temp_store *ts)
{
    crew_assert_locked(ts->settings.crew);
    return ts->ender ? run_ender_totals(ts->ender)->n_durable : 0;
}

void temp_store_set_before(struct temp_store *ts, unsigned n_runs, uint64_t raw_bytes)
{
    crew_lock(ts->settings.crew);
    run_ender_totals(ts->ender)->n_durable = n_runs;
    run_ender_totals(ts->ender)->raw_bytes = raw_bytes;
    crew_unlock(ts->settings.crew);
}

void temp_store_tell(struct temp_store *ts, int result)
{
    durable_tell(ts->durable, result);
}

void temp_store_close(struct temp_store *ts, bool directories_stay,
                      struct run_store_stats *stats)
{
    run_ender_close(ts->ender);
    if (ts->runs) run_store_stats(ts->runs, stats);
    /* Runs that have ended may not be in the database yet: several are added at once. */
    if (ts->runs && directories_stay) (void)run_store_flush(ts->runs);
    run_store_destroy(ts->runs);
    ts->runs = NULL;
}

void temp_store_end(struct temp_store *ts, bool directories_stay)
{
    durable_end(ts->durable, directories_stay);
    ts->durable = NULL;
}

void temp_store_destroy(struct temp_store *ts)
{
    if (!ts) return;
    run_ender_destroy(ts->ender);
    free(ts);
}
