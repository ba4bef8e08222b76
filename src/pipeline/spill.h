/*
 * spill.h -- the spiller: writes batches as runs into the store.
 *
 * A run is made of some consecutive sorted batches. It is cut into *packs*, at places where all of
 * the batches can be cut. For each pack a worker merges one slice of each batch, cuts the result
 * into blocks and compresses them. Packs are put into the store in order.
 *
 * spill_policy.h decides when a run is spilled, and of how many batches.
 *
 * Order of calls: create; go_on for a sort that goes on with a checkpoint; start, when the load
 * totals are set to loading; join, when they are set to not loading; to_fit; destroy. One thread
 * makes these calls. Any thread may look at what has been spilled.
 */
#ifndef ROCKSORT_PIPELINE_SPILL_H
#define ROCKSORT_PIPELINE_SPILL_H

#include "output/output_path.h"
#include "pipeline/record_observers.h"
#include "pipeline/sort_settings.h"
#include "pipeline/temp_store.h"
#include "store/store_layout.h"
#include "store/run_label.h"

struct spiller;

struct spill_settings {
    const struct sort_settings *sort;
    const struct output_path *output, *also;    /* looked at when space is checked */
    struct crew *crew;
    struct batch_pool *pool;
    struct load_totals *totals;
    struct temp_store *store;
    const struct sort_rules *rules;
    const struct record_observers *observers;   /* of the records of runs */
    size_t record_growth;       /* by so many bytes a record may get longer when it is read */
    bool needs_all_runs;        /* all records must be in runs before the merge */
};

struct spiller *spill_create(const struct spill_settings *settings);

/* NULL is accepted. */
void spill_destroy(struct spiller *spiller);

/* Before start: the store has these runs already. */
void spill_go_on(struct spiller *spiller, const struct spill_totals *totals);

/* Starts a thread that spills runs during the load, whenever enough batches wait. Returns 0, or -1
   after a message. spill_join waits until that thread has ended. */
int spill_start(struct spiller *spiller);
void spill_join(struct spiller *spiller);

/* After loading: spills the oldest batches until the merge has the memory that it needs, or all
   batches if the checkpoint needs all records in runs. Returns 0, or -1 if the crew has failed. */
int spill_to_fit(struct spiller *spiller);

/* After spill_to_fit: warns if there is too little space for the output, unless that was checked
   before the first run. */
void spill_check_output(struct spiller *spiller);

/* What has been spilled so far: spill_look copies it; spill_locked is called with the lock held. */
void spill_look(struct spiller *spiller, struct spill_totals *totals);
const struct spill_totals *spill_locked(const struct spiller *spiller);

unsigned spill_n_runs(struct spiller *spiller);

/* After the last run: why that run has its codec. */
enum codec_reason spill_codec_reason(const struct spiller *spiller);

#endif
