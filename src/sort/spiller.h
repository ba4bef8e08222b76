/*
 * spiller.h -- the spiller: writes sort buffers as runs into the store.
 *
 * A run is made of some consecutive sorted sort buffers. It is cut into spill chunks, at places
 * where all of the sort buffers can be cut. For each spill chunk a worker merges one slice of each
 * sort buffer, cuts the result into blocks and compresses them. Spill chunks are put into the store
 * in order.
 *
 * memory_budget.h says when a run is spilled, and of how many sort buffers.
 *
 * Order of calls: create; go_on for a resumed sort; start, when the load totals are set to loading;
 * join, when they are set to not loading; to_fit; destroy. Threads: one; spill_look and
 * spill_locked may be called by any.
 */
#ifndef ROCKSORT_SORT_SPILLER_H
#define ROCKSORT_SORT_SPILLER_H

#include "output/output_path.h"
#include "resume/sort_settings.h"
#include "resume/temp_store.h"
#include "spill/record_observers.h"
#include "spill/run_label.h"
#include "spill/store_layout.h"

struct spiller;

struct spill_settings {
    const struct sort_settings *sort;
    const struct output_path *output, *also;    /* to check free space */
    struct threads *threads;
    struct sort_buffer_pool *pool;
    struct load_totals *totals;
    struct temp_store *store;
    const struct checkpoint_writer *checkpoint;
    const struct sort_rules *rules;
    const struct record_observers *observers;   /* of records written to runs */
    size_t record_growth;       /* bytes by which tags may enlarge a record when it is read back */
    bool needs_all_runs;        /* all records must be in runs before the merge */
};

struct spiller *spill_create(const struct spill_settings *settings);

/* NULL is accepted. */
void spill_destroy(struct spiller *spiller);

/* Before start: adds the runs that are already in the store. */
void spill_go_on(struct spiller *spiller, const struct spill_totals *totals);

/* Starts a thread that spills a run whenever enough sort buffers wait. Returns 0, or -1 after a
   message. spill_join waits until that thread has ended. */
int spill_start(struct spiller *spiller);
void spill_join(struct spiller *spiller);

/* After loading: spills the oldest sort buffers until the merge has enough memory, or all of them
   if needs_all_runs. Returns 0, or -1 if the thread pool has failed. */
int spill_to_fit(struct spiller *spiller);

/* After spill_to_fit: warns if there is too little space for the output, unless that was checked
   before the first run. */
void spill_check_output(struct spiller *spiller);

/* The totals so far: spill_look copies them; call spill_locked with the lock held. */
void spill_look(struct spiller *spiller, struct spill_totals *totals);
const struct spill_totals *spill_locked(const struct spiller *spiller);

unsigned spill_n_runs(struct spiller *spiller);

/* After the last run: the reason for its codec. */
enum codec_reason spill_codec_reason(const struct spiller *spiller);

#endif
