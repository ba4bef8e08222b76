/*
 * batch_pool.h -- the memory of batches: one arena, cut into stretches of one size, and the list of
 * the batches that are full.
 *
 * The reader takes a batch, fills it and seals it. Sealed batches are listed in the order of the
 * input. The spiller takes the oldest of them, and its memory is free again once its records are in
 * the store. The merge takes those that were never spilled.
 *
 * The pool also has the part of the budget that changes while the sort runs. Batches are *retired*
 * when their memory is wanted for compactions, and runs become longer where seeks are slow.
 *
 * Order of calls: create; open before loading, if there is input; destroy with all jobs done.
 * Threads: as said at each function; the crew's lock guards everything.
 */
#ifndef ROCKSORT_PIPELINE_BATCH_POOL_H
#define ROCKSORT_PIPELINE_BATCH_POOL_H

#include "pipeline/batch.h"
#include "pipeline/crew.h"
#include "pipeline/mem_budget.h"

struct batch_pool;

struct batch_pool *batch_pool_create(struct crew *crew, const struct mem_budget *budget);

/* NULL is accepted. */
void batch_pool_destroy(struct batch_pool *pool);

/* Before loading: reserves the arena, which takes address space but no memory yet. The rules
   outlive the pool. Returns 0, or -1 after a message. */
int batch_pool_open(struct batch_pool *pool, const struct sort_rules *rules);

/* ---- the budget ---- */

/* Before batch_pool_open: takes another budget. */
void batch_pool_set_budget(struct batch_pool *pool, const struct mem_budget *budget);

/* Copies the budget as it is now. */
void batch_pool_budget(struct batch_pool *pool, struct mem_budget *budget);

/* See mem_budget_lengthen_runs. */
void batch_pool_lengthen_runs(struct batch_pool *pool);

/* With the lock held: takes n batches and their memory away for good, as soon as they are free. */
void batch_pool_retire(struct batch_pool *pool, unsigned n);

/* With the lock held: true while batches that are to be retired are still in use. */
bool batch_pool_is_retiring(const struct batch_pool *pool);

/* ---- the reader ---- */

/* Waits for a batch to fill. NULL if the crew has failed. */
struct batch *batch_pool_take(struct batch_pool *pool);

/* Makes a batch with n_bytes of its own, for records that are too large for the others. */
struct batch *batch_pool_make_large(struct batch_pool *pool, size_t n_bytes);

/* Adds a batch to the list of full ones. Its jobs may still be under way; `end` is the input
   position after its last record. */
void batch_pool_seal(struct batch_pool *pool, struct batch *batch,
                     const struct input_position *end);

/* With the lock held: true while the reader waits for a batch. */
bool batch_pool_reader_waits(const struct batch_pool *pool);

/* ---- all ---- */

/* Takes back a batch that nobody uses any more. batch_pool_free_locked: with the lock held. */
void batch_pool_free(struct batch_pool *pool, struct batch *batch);
void batch_pool_free_locked(struct batch_pool *pool, struct batch *batch);

/* Takes a sealed batch out of the list and back: nothing but its checksum was wanted. */
void batch_pool_forget(struct batch_pool *pool, struct batch *batch);

/* Gives the memory of free batches back to the kernel. */
void batch_pool_drop_free(struct batch_pool *pool);

/* ---- the spiller ---- */

/* With the lock held: the number of sealed batches that are not in the store. */
size_t batch_pool_n_kept(const struct batch_pool *pool);

/* With the lock held: the number of batches that should be spilled now, by spill_policy.h; 0: none.
   expected_bytes is the size of all records; 0: unknown. */
size_t batch_pool_n_due(const struct batch_pool *pool, uint64_t expected_bytes);

/* Waits until the n oldest batches are sorted, and copies their addresses. Returns 0, or -1 if the
   crew has failed. */
int batch_pool_oldest(struct batch_pool *pool, size_t n, struct batch **oldest);

/* The n oldest batches are in the store: their memory is free. */
void batch_pool_spilled(struct batch_pool *pool, size_t n);

/* ---- the merge, when loading has ended ---- */

/* Batches that are not in the store, in the order of the input, and the bytes that they take. */
struct batch *const *batch_pool_kept(const struct batch_pool *pool, size_t *n);
size_t batch_pool_kept_bytes(const struct batch_pool *pool);

#endif
