/*
 * spilled_run.h -- writes sorted batches as one run into the store.
 *
 * A run is cut into *packs*, at places where all of its batches can be cut. For each pack a worker
 * merges one slice of each batch, cuts the result into blocks and compresses them. A large run
 * becomes several files, each with a range of its keys: each file has a thread that puts its packs
 * into the store in order. One thread would take 0.15 s of CPU for each million records, so loading
 * would use 10 cores at most.
 *
 * Order of calls: create; write, again and again while it returns RUN_STORE_AGAIN; destroy. One
 * thread makes these calls. The batches stay as they are until then.
 */
#ifndef ROCKSORT_PIPELINE_SPILLED_RUN_H
#define ROCKSORT_PIPELINE_SPILLED_RUN_H

#include "pipeline/batch.h"
#include "pipeline/crew.h"
#include "pipeline/mem_budget.h"
#include "pipeline/record_observers.h"
#include "store/run_label.h"
#include "store/run_store.h"
#include "store/temp_codec.h"

struct spilled_run;

struct spilled_run_settings {
    struct crew *crew;
    const struct sort_rules *rules;
    struct run_store *store;
    const struct record_observers *observers;   /* of its records */
    struct mem_budget budget;
    struct run_label label;     /* but open_bytes, which the run sets */
    enum temp_codec codec;
    size_t block_bytes;         /* uncompressed size of a block */
    size_t record_growth;       /* by so many bytes a record may get longer when it is read */
    unsigned n_files;           /* at most so many */
};

struct spilled_run *spilled_run_create(const struct spilled_run_settings *settings,
                                       struct batch *const *batches, size_t n_batches);

/* NULL is accepted. */
void spilled_run_destroy(struct spilled_run *run);

/* Writes the run. Returns 0 and the *stored run, which has not ended yet; RUN_STORE_AGAIN: call it
   again; or RUN_STORE_ERROR after a message and crew_fail. */
int spilled_run_write(struct spilled_run *run, struct stored_run **stored);

/* When it is written: how many bytes its blocks have that are open at a time in the merge. This is
   the size of its largest block, uncompressed and with the tags that records may get; but blocks of
   one record are not counted. Each further file has one block in memory as it was stored, which
   counts half as much. */
size_t spilled_run_open_bytes(const struct spilled_run *run);

#endif
